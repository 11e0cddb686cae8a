/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes packets over files and decides when the next file begins. The writing thread owns all
 * of it. Packets that cannot be written are counted and dropped; the next ones are tried again. */
#ifndef WIRETALE_CAPTURE_OUTPUT_H
#define WIRETALE_CAPTURE_OUTPUT_H

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

#endif
