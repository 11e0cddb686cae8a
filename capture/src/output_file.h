/* SPDX-License-Identifier: Apache-2.0 */
/* The file being written: its beginning, its blocks that are no packets, and its end. */
#ifndef WIRETALE_OUTPUT_FILE_H
#define WIRETALE_OUTPUT_FILE_H

#include "output.h"

/* Begins a file whose first packet is of that time. False, and said once, when that fails. */
bool output_begin(struct output *output, int64_t time_ns);
/* Writes interfaces that the file does not tell of yet. */
bool output_store_descriptions(struct output *output);
/* Appends blocks that are no packets, and frees them: all or nothing. */
bool output_store_blocks(struct output *output, struct block_buffer *buffer);
int64_t output_next_boundary(const struct settings *settings, int64_t from_ns);
/* The stream takes no more (errno): the capture ends. */
void output_end_stream(struct output *output);
/* Says with errno that something failed, or that it works again; once each. */
void output_note_failure(struct output *output, const char *what);
void output_note_success(struct output *output);

#endif
