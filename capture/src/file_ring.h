/* SPDX-License-Identifier: Apache-2.0 */
/* The finished files of a ring, oldest first: those of earlier runs with the same prefix, too. Only
 * names of the exact shape that this program makes are ever removed. */
#ifndef WIRETALE_FILE_RING_H
#define WIRETALE_FILE_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "folder.h"

struct ring_file {
    char *name;
    uint64_t bytes;
};

struct file_ring {
    pthread_mutex_t lock;
    uint64_t files_max, bytes_max; /* 0: no bound */
    uint64_t reserve;              /* bytes kept free of bytes_max for the file being written */
    struct ring_file *files;
    size_t first, count, room;
    uint64_t bytes;
    uint64_t removed;
};

void file_ring_open(struct file_ring *ring, const struct settings *settings);
void file_ring_close(struct file_ring *ring);
void file_ring_scan(struct file_ring *ring, const struct folder *folder);
bool file_ring_is_bounded(const struct file_ring *ring);
/* Adds a file that was published, the newest unless it is of an `earlier` run, and removes what is
 * now too much. */
void file_ring_add(struct file_ring *ring, int folder_fd, const char *name, uint64_t bytes,
                   bool earlier);
/* The disk is full: removes the oldest. False when there is none, or no ring was asked for. */
bool file_ring_make_room(struct file_ring *ring, int folder_fd);

#endif
