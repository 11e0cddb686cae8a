/* SPDX-License-Identifier: Apache-2.0 */
/* The finished files that this program may remove, in the order in which they were captured, and
 * the bounds that decide when it does: number, size, age and free space, all at once. They include
 * the files of earlier runs, also of other interfaces (directory_owns_name()). Files are removed
 * only if their name has the exact form that this program gives.
 *
 * A file whose --on-close command has not succeeded is removed only for space, and counted then.
 * One with a marker .NAME.keep beside it is never removed. */
#ifndef WIRETALE_CAPTURE_RING_H
#define WIRETALE_CAPTURE_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "directory/directory.h"

struct ring_file {
    char *name;
    uint64_t bytes;
    int64_t closed_ns; /* CLOCK_BOOTTIME, which no step of the clock changes */
    bool is_pending;   /* its command has not succeeded */
};

struct ring {
    pthread_mutex_t lock;
    const struct settings *settings;
    uint64_t reserve; /* part of the bound on bytes that is kept for the file being written */
    const struct directory *directory;
    int directory_fd; /* of the newest file */
    struct ring_file *files;
    size_t count, capacity;
    uint64_t bytes;      /* of all files */
    int64_t freed_at_ns; /* CLOCK_MONOTONIC of the last removal for --min-free */
    /* Any thread may read these: */
    _Atomic uint64_t removed, removed_pending; /* files */
    _Atomic uint64_t file_count, byte_count;   /* of the files that are there */
    _Atomic int64_t oldest_begun_ns,
        oldest_closed_ns; /* CLOCK_REALTIME, -1: none; CLOCK_BOOTTIME */
};

/* Takes the bounds of the settings. */
void ring_open(struct ring *ring, const struct settings *settings,
               const struct directory *directory);

/* Adds the files of earlier runs, and removes those that exceed a bound. */
void ring_scan(struct ring *ring);

/* Returns whether there is a bound; without one, files are not even listed. */
bool ring_is_bounded(const struct ring *ring);

/* Returns whether ring_check() must be called each second: for the age or free space. */
bool ring_needs_time(const struct ring *ring);

/* Adds a published file and removes those that then exceed a bound. The file is the newest unless
 * it is of an `earlier` run. */
void ring_add(struct ring *ring, int directory_fd, const char *name, uint64_t bytes, bool earlier,
              bool is_pending);

/* The command of a file succeeded or is given up: it may be removed. */
void ring_release(struct ring *ring, const char *name);

/* The file has another name by now, with its place and age; NULL: it is gone. */
void ring_replace(struct ring *ring, const char *name, const char *other, uint64_t bytes);

/* Removes the files that exceed a bound. */
void ring_check(struct ring *ring);

/* Removes the oldest file. Returns false if there is none, or if the ring has no bounds. */
bool ring_make_room(struct ring *ring);

#endif
