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

/* Writes the packets into as many files as the limits of the settings demand. */
void output_take(struct output *output, const struct span *span);

/* To be called between packets: rotates by time or on request, opens a file again after an error,
 * and notices files that were removed. `idle`: no packet is waiting. */
void output_poll(struct output *output, bool idle);

/* Counts packets of files that were removed before they were published as dropped by the disk, in
 * the statistics of the open file. */
void output_count_lost_files(struct output *output);

struct writer {
    struct output *output;
    struct lane lanes[DEVICES_MAX]; /* chunks taken from the queue */
    pthread_t thread;
    atomic_bool done; /* all is written, and the last file is closed */
};

/* Takes chunks from the queue, for which it waits up to `wait_ns`, and writes the packets whose
 * order is final. Returns whether there were any. */
bool writer_merge(struct writer *writer, int64_t wait_ns);
/* Returns whether all devices have ended and all their packets are written. */
bool writer_has_ended(const struct writer *writer);

/* Starts the thread, which sets `done` at its end. */
bool writer_start(struct writer *writer);

#endif
