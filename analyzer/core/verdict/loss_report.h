/* SPDX-License-Identifier: Apache-2.0 */
/* Loss signals in ACKs: rules V5.3, V5.4 and V5.7 of docs/verdicts.md. */
#ifndef WIRETALE_LOSS_REPORT_H
#define WIRETALE_LOSS_REPORT_H

#include "verdict/recent_verdicts.h"

/* A sender's delay after a loss signal, beyond an RTT. */
#define SIGNAL_FRESH_NS INT64_C(50000000)
/* An older report without a retransmission did not reach the sender. */
#define KEPT_REPORT_NS INT64_C(2000000000)
/* A coarser timestamp clock cannot show a pause. */
#define MAX_TICK_NS INT64_C(20000000)

/* Returns whether the sender may detect losses by time: RFC 8985 requires SACK for RACK (section 3)
 * and for the tail loss probe (section 7). */
bool may_use_rack(const struct segment_context *seg);

/* Returns how many bytes above `position` the last ACK SACKed. */
int64_t bytes_sacked_above(const struct tcp_recovery_state *recovery, int64_t position);

/* Returns whether the ACKs report [start, end) as lost: rules V5.3 and V5.4. */
bool is_reported_lost(const struct segment_context *seg, int64_t start, int64_t end);

/* Returns whether SACKs reported all of [start, end), and no ACK has covered it since. */
bool is_sacked(const struct tcp_recovery_state *recovery, int64_t start, int64_t end);

/* Returns whether the last ACK SACKed data above `end`. */
bool has_sack_above(const struct tcp_recovery_state *recovery, int64_t end);

/* Returns whether there is a duplicate ACK, or a SACK above `end`. */
bool has_loss_signal(const struct segment_context *seg, int64_t end);

/* Remembers the data that the ACK just processed reports as lost, because the sender acts on it
 * later than it passes the capture point (rule V5.7). */
void keep_loss_report(const struct segment_context *seg, struct tcp_recovery_state *recovery);

/* Counts an ACK that repeats the last one although nothing is outstanding: newer data may be
 * upstream of the capture point, so without SACK the sender may count it as a duplicate ACK. */
void count_idle_repeat(const struct segment_context *seg, struct tcp_recovery_state *recovery);

#endif
