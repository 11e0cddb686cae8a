/* SPDX-License-Identifier: Apache-2.0 */
/* The writing thread: takes chunks from the queue, merges those of several devices by packet time,
 * writes them and releases them. It may wait for the disk; no thread waits for it. */
#ifndef WIRETALE_CAPTURE_WRITER_H
#define WIRETALE_CAPTURE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "buffer/chunk_queue.h"
#include "output/output.h"

struct merge {
    struct chunk_queue *queue;
    struct output *output;
    struct lane lanes[DEVICES_MAX];     /* chunks taken from the queue */
    size_t position[DEVICES_MAX];       /* bytes written of the first chunk of each lane */
    uint32_t packets_done[DEVICES_MAX]; /* packets written of it */
};

struct writer {
    struct merge merge;
    pthread_t thread;
    atomic_bool done; /* all is written, and the last file is closed */
};

/* Writes the packets whose order is final. Returns whether there were any. */
bool merge_write(struct merge *merge);
bool merge_is_empty(const struct merge *merge);
bool merge_has_ended(const struct merge *merge);

bool writer_start(struct writer *writer, struct output *output);
void writer_join(struct writer *writer);

#endif
