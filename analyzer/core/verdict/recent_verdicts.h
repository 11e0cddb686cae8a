/* SPDX-License-Identifier: Apache-2.0 */
/* The last verdicts of a stream, which later packets may still change, and what they are made from.
 */
#ifndef WIRETALE_TCP_JUDGED_H
#define WIRETALE_TCP_JUDGED_H

#include "tcp/segment.h"

#define TIMEOUT_LEAST_NS INT64_C(200000000) /* Linux; RFC 6298 says 1 s */
#define DUPLICATE_ACKS   3u                 /* RFC 5681 section 3.2 */

static inline int64_t later_of(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t sooner_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Of silences, none negative: a capture's clock may step by decades, again and again. */
static inline int64_t sum_of(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline bool judged_overlaps(const struct judged *judged, int64_t start, int64_t end) {
    return judged->start < end && start < judged->end;
}

/* From this point to the receiver of the stream's data and back: the least known, -1 without any.
 */
int64_t stream_least_rtt(const struct tcp_stream *stream);
/* From this point to the sender and back, -1 when not known. */
int64_t step_sender_rtt(const struct step *step);
/* The sender's retransmission timeout (RFC 6298), TIMEOUT_LEAST_NS or more. */
int64_t step_timeout_ns(const struct step *step);
/* One of them, the newest first. */
struct judged *judged_at(struct tcp_trouble *trouble, uint32_t newest_first);
/* The last time that these bytes were sent again, NULL when they were not. */
struct judged *judged_last_again(struct tcp_trouble *trouble, int64_t start, int64_t end);
/* With time, frame and marks of the segment at hand. */
void judged_remember(const struct step *step, struct tcp_trouble *trouble, struct judged judged);
/* The loss that it was taken for was none here. */
void judged_take_loss_back(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence);
/* Whether it was lost is open. */
void judged_leave_open(const struct step *step, struct tcp_trouble *trouble, struct judged *judged);
/* It was needless. */
void judged_prove_spurious(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence);

#endif
