/* SPDX-License-Identifier: Apache-2.0 */
/* Receive windows: full, closed, and the probes that ask whether they have opened; keep-alives,
 * which look like them. */
#ifndef WIRETALE_TCP_WINDOW_H
#define WIRETALE_TCP_WINDOW_H

#include "tcp/segment.h"

/* The window that the segment announces. */
void window_take(struct step *step, struct tcp_stream *stream, const struct tcp_header *tcp);
/* Both ends' windows may be scaled otherwise from this SYN on. */
void window_agree(struct tcp_stream *stream, struct tcp_stream *other);
/* New data up to `end`: whether it fills the window. */
void window_tell_full(struct step *step);
static inline void window_note_data(struct step *step, const struct tcp_stream *stream,
                                    int64_t end) {
    int64_t window = stream_window(step->other);
    if (end == stream->acked + window && window > 0 && stream->acked_known)
        window_tell_full(step);
}

/* Whether the segment, `length` bytes from `start` on, is a keep-alive or a window probe; then it
 * is counted and is no data. Both stand at an edge: of what was acknowledged, or one byte below
 * what was sent. */
bool window_take_tiny(struct step *step, int64_t start, uint32_t length);
static inline bool window_take_probe(struct step *step, const struct tcp_stream *stream,
                                     int64_t start, uint32_t length) {
    return length <= 1 && (step->other->window_zero || start == stream->highest - 1) &&
           window_take_tiny(step, start, length);
}

/* A byte that a probe carried was taken by the receiver after all: the stream goes on behind it. */
void window_pass_byte(struct step *step, struct tcp_stream *stream, int64_t position);
static inline void window_pass_probe(struct step *step, struct tcp_stream *stream,
                                     int64_t position) {
    if (stream->pending == PROBE_WINDOW)
        window_pass_byte(step, stream, position);
}

/* Whether the acknowledgment answers a probe, and so is no duplicate. */
bool window_settle_probe(struct step *step);
static inline bool window_take_answer(struct step *step) {
    return step->other->pending != PROBE_NONE && window_settle_probe(step);
}
/* The direction's time with a closed window, ns, up to `now_ns` while it still is. */
int64_t window_closed_ns(const struct tcp_stream *stream, int64_t now_ns);

#endif
