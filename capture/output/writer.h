/* SPDX-License-Identifier: Apache-2.0 */
/* The writing thread: takes chunks from the queue, merges those of several devices by packet time,
 * and distributes the packets over files. It may wait for the disk; no thread waits for it. Packets
 * that cannot be written are counted and dropped, and the next ones are tried again. */
#ifndef WIRETALE_CAPTURE_WRITER_H
#define WIRETALE_CAPTURE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "buffer/chunk_queue.h"
#include "output/file.h"

/* Whole records of one interface, in order of time. */
struct span {
    const uint8_t *data;
    size_t size;
    uint32_t description; /* index in capture->descriptions */
    uint32_t packets;
    int64_t first_ns, last_ns;
};

/* Writes the packets into as many files as the limits of the settings demand. */
void output_take(struct output *output, const struct span *span);

/* To be called between packets: rotates by time or on request, opens a file again after an error,
 * and notices files that were removed. `idle`: no packet is waiting. */
void output_poll(struct output *output, bool idle);

/* Counts packets of files that were removed before they were published as dropped by the disk, in
 * the statistics of the open file. */
void output_count_lost_files(struct output *output);

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
