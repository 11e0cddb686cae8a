/* SPDX-License-Identifier: Apache-2.0 */
/* An array of names, oldest first. Names sort by time, as they contain it, so files of earlier runs
 * can be put in order without their dates. */
#include "finish/ring.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

/* Half of a bound on bytes is the most that is reserved for the open file; with larger files the
 * bound is kept only when they are finished. */
void ring_open(struct ring *ring, const struct settings *settings) {
    *ring = (struct ring){.max_files = settings->ring_files,
                          .max_bytes = settings->ring_total_bytes,
                          .reserve = settings->file_bytes};
    if (ring->reserve > ring->max_bytes / 2)
        ring->reserve = 0;
    pthread_mutex_init(&ring->lock, NULL);
}

bool ring_is_bounded(const struct ring *ring) {
    return ring->max_files || ring->max_bytes;
}

/* A file that others have removed already is only taken off the list. */
static void remove_oldest(struct ring *ring, int directory_fd) {
    unlinkat(directory_fd, ring->files->name, 0);
    ring->bytes -= ring->files->bytes;
    free(ring->files->name);
    memmove(ring->files, ring->files + 1, --ring->count * sizeof *ring->files);
}

/* The newest file is never removed, whatever its size. */
static bool is_too_much(const struct ring *ring) {
    if (ring->count <= 1)
        return false;
    return (ring->max_files && ring->count > ring->max_files) ||
           (ring->max_bytes && ring->bytes + ring->reserve > ring->max_bytes);
}

/* Inserts a copy of the name, in its order if `earlier`, else at the end. Returns false if memory
 * is short. */
static bool insert(struct ring *ring, const char *name, uint64_t bytes, bool earlier) {
    if (ring->count == ring->capacity) {
        size_t capacity = 2 * ring->capacity + 64;
        struct ring_file *files = realloc(ring->files, capacity * sizeof *files);
        if (!files)
            return false;
        ring->files = files;
        ring->capacity = capacity;
    }
    char *copy = strdup(name);
    size_t at = ring->count;
    if (!copy)
        return false;
    while (earlier && at && strcmp(name, ring->files[at - 1].name) < 0)
        at--;
    memmove(ring->files + at + 1, ring->files + at, (ring->count - at) * sizeof *ring->files);
    ring->files[at] = (struct ring_file){copy, bytes};
    ring->count++;
    ring->bytes += bytes;
    return true;
}

void ring_add(struct ring *ring, int directory_fd, const char *name, uint64_t bytes, bool earlier) {
    if (!ring_is_bounded(ring))
        return;
    pthread_mutex_lock(&ring->lock);
    if (!insert(ring, name, bytes, earlier))
        log_warning("out of memory: %s is not in the ring", name);
    while (is_too_much(ring))
        remove_oldest(ring, directory_fd);
    pthread_mutex_unlock(&ring->lock);
}

/* For a full disk: removes a file although no bound is exceeded. */
bool ring_make_room(struct ring *ring, int directory_fd) {
    if (!ring_is_bounded(ring))
        return false;
    pthread_mutex_lock(&ring->lock);
    bool any = ring->count;
    if (any)
        remove_oldest(ring, directory_fd);
    pthread_mutex_unlock(&ring->lock);
    return any;
}

void ring_scan(struct ring *ring, const struct directory *directory) {
    struct dirent **names;
    int count = ring_is_bounded(ring) ? scandirat(directory->fd, ".", &names, NULL, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        struct stat info;
        if (directory_owns_name(directory, name) &&
            !fstatat(directory->fd, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode))
            ring_add(ring, directory->fd, name, (uint64_t)info.st_size, true);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}
