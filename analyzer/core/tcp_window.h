/* SPDX-License-Identifier: Apache-2.0 */
/* Receive windows: full, closed, and the probes that ask whether they have opened; keep-alives,
 * which look like them. */
#ifndef WIRETALE_TCP_WINDOW_H
#define WIRETALE_TCP_WINDOW_H

#include "tcp_step.h"

/* The window that the segment announces. */
void window_take(struct step *step);
/* New data up to `end`: whether it fills the window. */
void window_note_data(struct step *step, int64_t end);
/* Whether the segment, `length` bytes from `start` on, is a keep-alive or a window probe; then it
 * is counted and is no data. */
bool window_take_probe(struct step *step, int64_t start, uint32_t length);
/* A byte that a probe carried was taken by the receiver after all: the stream goes on behind it. */
void window_pass_probe(struct step *step, struct tcp_stream *stream, int64_t position);
/* Whether the acknowledgment answers a probe, and so is no duplicate. */
bool window_take_answer(struct step *step);
/* The direction's time with a closed window, ns, up to `now_ns` while it still is. */
int64_t window_closed_ns(const struct tcp_stream *stream, int64_t now_ns);

#endif
