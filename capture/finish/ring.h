/* SPDX-License-Identifier: Apache-2.0 */
/* The finished files of a ring, oldest first, with those of earlier runs that have the same prefix.
 * Files are removed only if their name has the exact form that this program gives. */
#ifndef WIRETALE_CAPTURE_RING_H
#define WIRETALE_CAPTURE_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "directory/directory.h"

struct ring_file {
    char *name;
    uint64_t bytes;
};

struct ring {
    pthread_mutex_t lock;
    uint64_t max_files, max_bytes; /* 0: no bound */
    uint64_t reserve;              /* part of max_bytes that is kept for the file being written */
    struct ring_file *files;
    size_t count, capacity;
    uint64_t bytes; /* of all files */
};

/* Takes the bounds of the settings. */
void ring_open(struct ring *ring, const struct settings *settings);

/* Adds the files of earlier runs, and removes the oldest if they exceed a bound. */
void ring_scan(struct ring *ring, const struct directory *directory);

/* Returns whether there is a bound; without one, files are not even listed. */
bool ring_is_bounded(const struct ring *ring);

/* Adds a published file and removes the oldest ones that then exceed a bound. The file is the
 * newest unless it is of an `earlier` run. */
void ring_add(struct ring *ring, int directory_fd, const char *name, uint64_t bytes, bool earlier);

/* Removes the oldest file. Returns false if there is none, or if the ring has no bounds. */
bool ring_make_room(struct ring *ring, int directory_fd);

#endif
