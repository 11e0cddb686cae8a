/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on data that is not next in sequence: rules V3 and V4 of docs/verdicts.md, and on data
 * that follows an idle RTO: rules V1. All ranges are stream positions of seg->sender. */
#ifndef WIRETALE_RETRANSMISSION_H
#define WIRETALE_RETRANSMISSION_H

#include "verdict/recent_verdicts.h"

/* Rules V3: [start, end) fills a gap; `fill` must be the result of range_set_fill() for it. Returns
 * true if it is counted as a retransmission, false if it was reordered, captured late, or is
 * ambiguous. */
bool classify_gap_fill(struct segment_context *seg, int64_t start, int64_t end,
                       const struct gap_fill *fill);

/* Rules V4: [start, end), or a SYN or FIN, was seen before. Returns false for a duplicate packet,
 * true otherwise. `detail` is the event's, or NULL. */
bool classify_repeated(struct segment_context *seg, int64_t start, int64_t end, const char *detail);

/* Rule V4.6: [start, end) is below the first segment of the capture. */
void classify_before_capture(struct segment_context *seg, int64_t start, int64_t end);

/* Rules V1.2 and V1.3: `length` new bytes, or a FIN, in order, follow `idle_ns`, MIN_RTO_NS at
 * least, in which the sender sent no data. */
void classify_idle_gap(struct segment_context *seg, int64_t idle_ns, int64_t length, bool fin);

#endif
