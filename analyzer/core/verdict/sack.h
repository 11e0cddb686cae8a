/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's reports on data that it received: SACK (RFC 2018), DSACK (RFC 2883), echoed
 * timestamps (RFC 7323), and repeated ACKs if there is no SACK. The segment's own sender is the
 * receiver of the data that it reports on. */
#ifndef WIRETALE_SACK_H
#define WIRETALE_SACK_H

#include "verdict/recent_verdicts.h"

/* Processes the SACK blocks of an ACK for `position`; there must be one at least. */
void process_sack(struct segment_context *seg, int64_t position);

/* Processes an ACK that repeats the last one: rule V6.6. */
void process_repeated_ack(struct segment_context *seg);

/* Settles the records below `position`, which the segment acknowledges for the first time: rules
 * V6.4, V6.5 and V7.4. seg->receiver->has_unsettled must be set. */
void settle_retransmissions(struct segment_context *seg, int64_t position);

#endif
