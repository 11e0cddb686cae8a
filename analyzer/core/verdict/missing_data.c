/* SPDX-License-Identifier: Apache-2.0 */
/* The holes of a stream that are left at its end, against what the receiver reported by SACK (rule
 * V7.12). A hole of both was lost before it reached the capture point, and nothing filled it. A
 * hole of the capture alone was missed by the capture. */
#include "verdict/verdict.h"

/* Returns the bytes of [start, end) that SACKs reported. */
static int64_t reported_bytes(const struct scoreboard *board, int64_t start, int64_t end) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < board->count; i++)
        bytes += max64(min64(board->ranges[i].end, end) - max64(board->ranges[i].start, start), 0);
    return bytes;
}

/* Adds the hole [start, end), known since `since_ns`. */
static void add_hole(struct missing_data *missing, const struct scoreboard *board, int64_t start,
                     int64_t end, int64_t since_ns) {
    if (start >= end)
        return;
    int64_t reported = reported_bytes(board, start, end);
    missing->unseen_bytes += reported;
    if (reported == end - start)
        return;
    if (!missing->bytes || since_ns < missing->since_ns)
        missing->since_ns = since_ns;
    missing->bytes += end - start - reported;
}

struct missing_data find_missing_data(const struct tcp_stream *stream) {
    const struct scoreboard *board = &recovery_of(stream)->scoreboard;
    struct missing_data missing = {0};
    if (!board->count || !stream->base_known || !stream->snd_una_known)
        return missing;
    int64_t top = board->ranges[board->count - 1].end;
    for (uint32_t i = 0; i < stream->gaps.count; i++) {
        const struct gap *gap = &stream->gaps.gaps[i];
        if (!gap->acked)
            add_hole(&missing, board, max64(gap->start, stream->snd_una), min64(gap->end, top),
                     gap->opened_ns);
    }
    add_hole(&missing, board, max64(stream->snd_nxt, stream->snd_una), top,
             stream->una_advanced_ns);
    return missing;
}
