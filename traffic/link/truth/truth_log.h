/* SPDX-License-Identifier: Apache-2.0 */
/* The truth file: the fate of each packet, written by a thread of its own, so that the threads that
 * move packets never wait for the disk. They fill blocks and hand them over; if the disk is slower
 * than the link for long, records are dropped and counted. */
#ifndef WIRETALE_LINK_TRUTH_LOG_H
#define WIRETALE_LINK_TRUTH_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "packet/truth_record.h"

#define TRUTH_BLOCK_RECORDS 1024u
#define MAX_TRUTH_BLOCKS    4096u /* 512 MB of records that wait for the disk */

struct truth_block {
    struct truth_block *next;
    uint32_t count;
    struct truth_record records[TRUTH_BLOCK_RECORDS];
};

struct truth_log {
    FILE *file;
    pthread_t thread;
    pthread_mutex_t lock;             /* of the members that follow */
    pthread_cond_t filled;            /* a block waits, or `ending` */
    struct truth_block *first, *last; /* filled, oldest first */
    struct truth_block *spare;
    uint32_t blocks; /* allocated */
    bool ending;
    int failed; /* errno of a failed write; 0: none */
};

/* The producer's side; each thread has its own. */
struct truth_pen {
    struct truth_log *log; /* NULL: records are dropped uncounted */
    struct truth_block *block;
    uint64_t lost; /* records without room */
};

/* Returns NULL, or the reason why `path` must not be written: it is one of `inputs` (each may be
 * NULL), or a capture and not `overwrite`. */
const char *truth_path_error(const char *path, const char *const *inputs, size_t count,
                             bool overwrite);

/* Replaces the file at `path` as a whole: programs that read the old one keep it. Returns false
 * with errno set if it cannot be written. */
bool truth_log_open(struct truth_log *log, const char *path, uint64_t seed, int64_t start_ns);
void truth_pen_write(struct truth_pen *pen, const struct truth_record *record);
/* Hands over the records so far. */
void truth_pen_flush(struct truth_pen *pen);
/* Waits until all records are written. Returns false with errno set if some are not. */
bool truth_log_close(struct truth_log *log);

/* Prints the records of a file as CSV to standard output; "-" is standard input. Returns the exit
 * code. */
int truth_print(const char *path);

#endif
