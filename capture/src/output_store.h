/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the open file. */
#ifndef WIRETALE_OUTPUT_STORE_H
#define WIRETALE_OUTPUT_STORE_H

#include "output.h"

/* Writes at the file's end and makes room in the ring where the disk is full; the bytes written,
 * fewer than `size` after an error (errno). output->bytes is not moved. */
size_t output_store(struct output *output, const uint8_t *data, size_t size);
/* Counts of the file's time, at its end. Makes room for them among the last packets if need be. */
void output_store_statistics(struct output *output);
void output_count_written(struct output *output, uint32_t description, uint64_t packets);
/* Of an interface, since the file was opened. */
struct file_counts output_counts_since(const struct output *output, uint32_t description);
/* Written packets that are nowhere any more. */
void output_count_lost(struct output *output, uint32_t description, uint64_t packets);
void output_count_dropped(struct output *output, uint32_t description, uint64_t packets);

#endif
