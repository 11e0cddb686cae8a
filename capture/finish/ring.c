/* SPDX-License-Identifier: Apache-2.0 */
/* An array of names, oldest first; `first` advances as files are removed. Names sort by time, as
 * they contain it, so files of earlier runs can be put in order without their dates. */
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

/* Removed files leave free entries in front, which are reclaimed before the array grows. */
static bool make_space(struct ring *ring) {
    if (ring->first + ring->count < ring->capacity)
        return true;
    if (ring->first > ring->capacity / 2) {
        memmove(ring->files, ring->files + ring->first, ring->count * sizeof *ring->files);
        ring->first = 0;
        return true;
    }
    size_t capacity = 2 * ring->capacity + 64;
    struct ring_file *files = realloc(ring->files, capacity * sizeof *files);
    if (!files)
        return false;
    ring->files = files;
    ring->capacity = capacity;
    return true;
}

/* Adds a name at the end. Returns false if memory is short. */
static bool append(struct ring *ring, const char *name, uint64_t bytes) {
    char *copy = strdup(name);
    if (!copy || !make_space(ring)) {
        free(copy);
        return false;
    }
    ring->files[ring->first + ring->count++] = (struct ring_file){copy, bytes};
    ring->bytes += bytes;
    return true;
}

/* A file that others have removed already is only taken off the list. */
static void remove_oldest(struct ring *ring, int directory_fd) {
    struct ring_file *oldest = &ring->files[ring->first];
    unlinkat(directory_fd, oldest->name, 0);
    ring->bytes -= oldest->bytes;
    free(oldest->name);
    ring->first++;
    ring->count--;
}

/* The newest file is never removed, whatever its size. */
static bool is_too_much(const struct ring *ring) {
    if (ring->count <= 1)
        return false;
    return (ring->max_files && ring->count > ring->max_files) ||
           (ring->max_bytes && ring->bytes + ring->reserve > ring->max_bytes);
}

static int by_time(const void *a, const void *b) {
    return strcmp(((const struct ring_file *)a)->name, ((const struct ring_file *)b)->name);
}

/* Moves the last file to the position of its name. */
static void sort_in_last(struct ring *ring) {
    struct ring_file *first = ring->files + ring->first, last = first[ring->count - 1];
    size_t at = ring->count - 1;
    for (; at && by_time(&last, &first[at - 1]) < 0; at--)
        first[at] = first[at - 1];
    first[at] = last;
}

void ring_add(struct ring *ring, int directory_fd, const char *name, uint64_t bytes, bool earlier) {
    if (!ring_is_bounded(ring))
        return;
    pthread_mutex_lock(&ring->lock);
    if (!append(ring, name, bytes))
        log_warning("out of memory: %s is not in the ring", name);
    else if (earlier)
        sort_in_last(ring);
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

/* Lists the directory through a second descriptor, because closedir() closes the one that it has.
 */
void ring_scan(struct ring *ring, const struct directory *directory) {
    if (!ring_is_bounded(ring))
        return;
    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing)
        return;
    pthread_mutex_lock(&ring->lock);
    for (struct dirent *entry; (entry = readdir(listing));) {
        struct stat info;
        if (directory_owns_name(directory, entry->d_name) &&
            !fstatat(directory->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(info.st_mode))
            append(ring, entry->d_name, (uint64_t)info.st_size);
    }
    if (ring->count)
        qsort(ring->files + ring->first, ring->count, sizeof *ring->files, by_time);
    while (is_too_much(ring))
        remove_oldest(ring, directory->fd);
    pthread_mutex_unlock(&ring->lock);
    closedir(listing);
}
