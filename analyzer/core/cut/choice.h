/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets a cut takes: chosen frames within a time range, and all packets around them.
 *
 * Frames are chosen by ranges, or one by one as those of flows, in a set of bits per file. Memory
 * is bounded by the number of frames chosen: a bit for each frame up to the last one, 16 bytes for
 * each span of time around. */
#ifndef WIRETALE_CHOICE_H
#define WIRETALE_CHOICE_H

#include <stddef.h>

#include "base/packet.h"

struct frame_range {
    uint64_t file, first, last; /* file_index, frames */
};

struct frame_bits {
    uint8_t *bits; /* bit n % 8 of byte n / 8: frame n */
    uint64_t room; /* bytes */
};

struct time_span {
    int64_t first_ns, last_ns;
};

struct choice {
    bool all;                         /* of the time range; else the frames below */
    const struct frame_range *ranges; /* sorted by file and first frame; they do not overlap */
    size_t range_count;
    struct frame_bits *files; /* file_count of them */
    size_t file_count;
    int64_t start_ns, end_ns; /* INT64_MIN, INT64_MAX without a limit; a packet without a time is
                                 taken if there is none */
    int64_t around_ns;        /* 0: chosen packets alone */
    struct time_span *spans;  /* sorted, disjoint */
    size_t span_count, span_room;
};

/* Makes room for the frames of `count` files. Returns false without memory. */
bool choice_open(struct choice *choice, size_t count);
void choice_close(struct choice *choice);

/* Adds a frame. Returns false without memory. */
bool choice_add_frame(struct choice *choice, size_t file, uint64_t frame);

/* Returns whether a packet is chosen itself. */
bool choice_has(const struct choice *choice, size_t file, const struct packet *packet);

/* Notes the time around a chosen packet; choice_sort_spans() must follow the last one. Returns
 * false without memory. */
bool choice_note_time(struct choice *choice, int64_t time_ns);
void choice_sort_spans(struct choice *choice);
/* Returns whether a time is within a span. */
bool choice_near(const struct choice *choice, int64_t time_ns);

#endif
