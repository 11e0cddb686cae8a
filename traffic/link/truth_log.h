/* SPDX-License-Identifier: Apache-2.0 */
/* The truth file, written by a thread of its own: those who move packets only fill blocks and hand
 * them over. */
#ifndef WIRETALE_LINK_TRUTH_LOG_H
#define WIRETALE_LINK_TRUTH_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "truth_record.h"

#define TRUTH_BLOCK_RECORDS 1024u
#define TRUTH_BLOCKS_MOST   4096u /* 512 MB wait for the disk at most */

struct truth_block {
    struct truth_block *next;
    uint32_t count;
    struct truth_record records[TRUTH_BLOCK_RECORDS];
};

struct truth_log {
    FILE *file;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct truth_block *first, *last; /* to be written */
    struct truth_block *spare;
    uint32_t blocks;
    bool ending;
    int failed; /* the disk: errno; 0: not */
};

/* A producer's side: one thread. */
struct truth_pen {
    struct truth_log *log; /* NULL: nobody wants to know */
    struct truth_block *block;
    uint64_t lost; /* records without room */
};

/* False: cannot be written, as errno says. */
bool truth_log_open(struct truth_log *log, const char *path, uint64_t seed, int64_t start_ns);

void truth_pen_write(struct truth_pen *pen, const struct truth_record *record);

/* Hands over what there is. */
void truth_pen_flush(struct truth_pen *pen);

/* Waits until all is written. False: something was not. */
bool truth_log_close(struct truth_log *log);

/* The records of a file as CSV on stdout; an exit code. */
int truth_print(const char *path);

#endif
