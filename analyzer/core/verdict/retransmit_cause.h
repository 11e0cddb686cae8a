/* SPDX-License-Identifier: Apache-2.0 */
/* The cause of a retransmission: rules V5 of docs/verdicts.md. */
#ifndef WIRETALE_RETRANSMIT_CAUSE_H
#define WIRETALE_RETRANSMIT_CAUSE_H

#include "verdict/recent_verdicts.h"

/* A sender's delay after a loss signal, beyond an RTT. */
#define SIGNAL_FRESH_NS INT64_C(50000000)
/* An older report without a retransmission did not reach the sender. */
#define KEPT_REPORT_NS INT64_C(2000000000)
/* A coarser timestamp clock cannot show a pause. */
#define MAX_TICK_NS INT64_C(20000000)

/* A range of bytes that the current segment retransmits. */
struct retransmission {
    int64_t start, end;   /* stream positions; start is -1 for a SYN */
    int64_t sent_ns;      /* last transmission, or the opening of its gap */
    bool repeated;        /* that was a retransmission already */
    bool forgotten;       /* its bytes may not have been seen before */
    uint32_t sent_frame;  /* of the transmission, 0 if unknown */
    uint32_t since_frame; /* at sent_ns, 0 if unknown */
};

struct retransmit_cause {
    enum word kind, evidence; /* kind: WORD_NONE if there is no cause */
    uint32_t frame;           /* the event's related frame */
    int64_t frame_ns;         /* its time, of a fast retransmission */
    const char *detail;
    int64_t idle_ns;     /* of an RTO: since its timer was last restarted */
    uint32_t idle_frame; /* that restarted it, 0 if unknown */
};

/* Returns the cause in ACKs, of kind WORD_NONE if there is none: rules V5.2 to V5.8. */
struct retransmit_cause find_ack_cause(const struct segment_context *seg,
                                       const struct retransmission *rtx);

/* Returns the cause in ACKs or timers: rules V5.1 to V5.11. */
struct retransmit_cause find_cause(const struct segment_context *seg,
                                   const struct retransmission *rtx);

/* count_retransmission.c: counts the retransmission; the caller must do so once for each. Begins
 * the sender's RTO or fast recovery if it is the first. Returns its long_bytes(). */
uint64_t count_retransmission(const struct segment_context *seg,
                              const struct retransmit_cause *cause, int64_t start, int64_t end);

/* loss_report.c: loss signals in ACKs. */

/* Returns whether the sender may detect losses by time: RFC 8985 requires SACK for RACK (section 3)
 * and for the tail loss probe (section 7). */
bool may_use_rack(const struct segment_context *seg);

/* Returns how many bytes above `position` the last ACK SACKed. */
int64_t bytes_sacked_above(const struct tcp_recovery_state *recovery, int64_t position);

/* Returns whether the ACKs report [start, end) as lost: rules V5.3 and V5.4. */
bool is_reported_lost(const struct segment_context *seg, int64_t start, int64_t end);

/* Returns whether the last ACK SACKed all of [start, end). */
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
