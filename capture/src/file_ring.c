/* SPDX-License-Identifier: Apache-2.0 */
#include "file_ring.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

void file_ring_open(struct file_ring *ring, const struct settings *settings) {
    *ring = (struct file_ring){.files_max = settings->ring_files,
                               .bytes_max = settings->ring_total_bytes,
                               .reserve = settings->file_bytes};
    if (ring->reserve > ring->bytes_max / 2)
        ring->reserve = 0;
    pthread_mutex_init(&ring->lock, NULL);
}

void file_ring_close(struct file_ring *ring) {
    for (size_t i = 0; i < ring->count; i++)
        free(ring->files[ring->first + i].name);
    free(ring->files);
    pthread_mutex_destroy(&ring->lock);
}

bool file_ring_is_bounded(const struct file_ring *ring) {
    return ring->files_max || ring->bytes_max;
}

static bool make_space(struct file_ring *ring) {
    if (ring->first + ring->count < ring->room)
        return true;
    if (ring->first > ring->room / 2) {
        memmove(ring->files, ring->files + ring->first, ring->count * sizeof *ring->files);
        ring->first = 0;
        return true;
    }
    size_t room = 2 * ring->room + 64;
    struct ring_file *files = realloc(ring->files, room * sizeof *files);
    if (!files)
        return false;
    ring->files = files;
    ring->room = room;
    return true;
}

static bool append(struct file_ring *ring, const char *name, uint64_t bytes) {
    char *copy = strdup(name);
    if (!copy || !make_space(ring)) {
        free(copy);
        return false;
    }
    ring->files[ring->first + ring->count++] = (struct ring_file){copy, bytes};
    ring->bytes += bytes;
    return true;
}

static void remove_oldest(struct file_ring *ring, int folder_fd) {
    struct ring_file *oldest = &ring->files[ring->first];
    if (!unlinkat(folder_fd, oldest->name, 0))
        ring->removed++;
    ring->bytes -= oldest->bytes;
    free(oldest->name);
    ring->first++;
    ring->count--;
}

static bool is_too_much(const struct file_ring *ring) {
    if (ring->count <= 1)
        return false;
    return (ring->files_max && ring->count > ring->files_max) ||
           (ring->bytes_max && ring->bytes + ring->reserve > ring->bytes_max);
}

static int by_time(const void *a, const void *b) {
    return strcmp(((const struct ring_file *)a)->name, ((const struct ring_file *)b)->name);
}

/* The last one goes to where its name puts it. */
static void sort_in_last(struct file_ring *ring) {
    struct ring_file *first = ring->files + ring->first, last = first[ring->count - 1];
    size_t at = ring->count - 1;
    for (; at && by_time(&last, &first[at - 1]) < 0; at--)
        first[at] = first[at - 1];
    first[at] = last;
}

void file_ring_add(struct file_ring *ring, int folder_fd, const char *name, uint64_t bytes,
                   bool earlier) {
    if (!file_ring_is_bounded(ring))
        return;
    pthread_mutex_lock(&ring->lock);
    if (!append(ring, name, bytes))
        log_warning("out of memory: %s stays beyond the ring", name);
    else if (earlier)
        sort_in_last(ring);
    while (is_too_much(ring))
        remove_oldest(ring, folder_fd);
    pthread_mutex_unlock(&ring->lock);
}

bool file_ring_make_room(struct file_ring *ring, int folder_fd) {
    if (!file_ring_is_bounded(ring))
        return false;
    pthread_mutex_lock(&ring->lock);
    bool any = ring->count;
    if (any)
        remove_oldest(ring, folder_fd);
    pthread_mutex_unlock(&ring->lock);
    return any;
}

void file_ring_scan(struct file_ring *ring, const struct folder *folder) {
    if (!file_ring_is_bounded(ring))
        return;
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing)
        return;
    pthread_mutex_lock(&ring->lock);
    for (struct dirent *entry; (entry = readdir(listing));) {
        struct stat told;
        if (folder_is_own(folder, entry->d_name) &&
            !fstatat(folder->fd, entry->d_name, &told, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(told.st_mode))
            append(ring, entry->d_name, (uint64_t)told.st_size);
    }
    if (ring->count)
        qsort(ring->files + ring->first, ring->count, sizeof *ring->files, by_time);
    while (is_too_much(ring))
        remove_oldest(ring, folder->fd);
    pthread_mutex_unlock(&ring->lock);
    closedir(listing);
}
