/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that the tracker applies to a segment; retransmit_cause.h has those of its cause. */
#ifndef WIRETALE_VERDICT_H
#define WIRETALE_VERDICT_H

#include "verdict/recent_verdicts.h"

/* retransmission.c: verdicts on data that is not next in sequence, rules V3 and V4 of
 * docs/verdicts.md, and on data that follows an idle RTO, rules V1. All ranges are stream positions
 * of seg->sender. */

/* Rules V3: [start, end) fills a gap; `fill` must be the result of range_set_fill() for it. Returns
 * true if it is counted as a retransmission, false if it was reordered, captured late, or is
 * ambiguous. */
bool classify_gap_fill(struct segment_context *seg, int64_t start, int64_t end,
                       const struct gap_fill *fill);

enum repetition {
    REPEATED_DUPLICATE,     /* of a packet */
    REPEATED_RETRANSMITTED, /* or out of order */
    REPEATED_UNKNOWN        /* it may not have been seen before: rule V2.3 */
};

/* Rules V4: [start, end), or a SYN or FIN, was seen before. `detail` is the event's, or NULL. */
enum repetition classify_repeated(struct segment_context *seg, int64_t start, int64_t end,
                                  const char *detail);

/* Rule V4.6: [start, end) is below the first segment of the capture. */
void classify_before_capture(struct segment_context *seg, int64_t start, int64_t end);

/* Rules V1.2 and V1.3: `length` new bytes, or a FIN, in order, follow `idle_ns`, MIN_RTO_NS at
 * least, in which the sender sent no data. */
void classify_idle_gap(struct segment_context *seg, int64_t idle_ns, int64_t length, bool fin);

/* Returns whether new data that follows data of the other direction may be a retransmission whose
 * first transmission was lost upstream: IP IDs are missing, more than an ACK took, and the time
 * since that data reached the sender fits an RTO. */
bool may_repeat_lost_data(const struct segment_context *seg);

/* Returns whether an RTO may be part of `idle_ns`, in which the sender sent no data: IP IDs are
 * missing, though too few packets came before to say that they were lost. */
bool may_hide_rto(const struct segment_context *seg, int64_t idle_ns);

/* Rule V2.2: the gap [start, end) opens. If it was lost with the RTO before it, it belongs to that.
 */
void extend_rto(struct segment_context *seg, int64_t start, int64_t end);

/* lost_acks.c: ACKs that were lost between the capture point and the sender of the data, rule V6.7.
 */

/* Notes in the record, that of the segment, whether its sender has not received the newest packet
 * of the receiver, which acknowledges the data and should have arrived. */
void note_unheard_ack(const struct segment_context *seg, struct retransmission_record *record);

/* Takes a segment of a sender with unheard ACKs, seg->sender->awaits_echo: its TSecr may show that
 * they were late, or that later ones arrived in their place. */
void take_echo(const struct segment_context *seg);

/* duplicate.c: duplicates of packets, made by a mirror port or by the network, rules V8. */

/* Returns true if the segment duplicates one of the sender's last packets (rules V8.1, V8.2); then
 * it is counted, and the caller must ignore it. Else its fingerprint is stored. `old` must be set
 * if its sequence numbers bring nothing new: no other segment can be a duplicate. */
bool take_duplicate(struct segment_context *seg, bool old);

/* The same for data [start, end) that was seen before, if its fingerprint is gone or unlike (rule
 * V8.3). `first` is the first transmission, NULL if unknown. */
bool take_late_duplicate(struct segment_context *seg, const struct unacked_segment *first,
                         int64_t start, int64_t end);

/* second_side.c: the other side of a router, rules V8.3 and V8.4. All are about seg->sender. */

/* Counts a duplicate that the segment's port stored behind a router, so that the port with the most
 * remains. */
void note_second_side(struct segment_context *seg);

/* Returns whether the last packets, one at least, all have other link addresses and another TTL:
 * nothing new was stored at the segment's port. */
bool is_apart_from_last(const struct segment_context *seg);

/* Returns whether the segment's port stored duplicates, more than any other. */
bool was_stored_at_side(const struct segment_context *seg);

/* The same, if several show it, or one and is_apart_from_last(). */
bool is_at_second_side(const struct segment_context *seg);

/* Notes in the segment's effect that another port than that of the original, `port` and `ttl`,
 * stored it after `delay_ns`; NO_PORT, 0 and 0 if the original is forgotten. */
void note_second_port(struct segment_context *seg, uint16_t port, uint8_t ttl, int64_t delay_ns);

/* sack.c: the receiver's reports on data that it received: SACK (RFC 2018), DSACK (RFC 2883),
 * echoed timestamps (RFC 7323), and repeated ACKs if there is no SACK. The segment's own sender is
 * the receiver of the data that it reports on. */

/* Processes the SACK blocks of an ACK for `position`; there must be one at least. */
void process_sack(struct segment_context *seg, int64_t position);

/* Processes an ACK that repeats the last one: rule V6.6. */
void process_repeated_ack(struct segment_context *seg);

/* Settles the records below `position`, which the segment acknowledges for the first time: rules
 * V6.4, V6.5 and V7.4. seg->receiver->has_unsettled must be set. */
void settle_retransmissions(struct segment_context *seg, int64_t position);

/* missing_data.c: data that the receiver reports missing by SACK when the connection ends, rule
 * V7.12.
 */

struct missing_data {
    int64_t bytes;        /* that neither the capture point nor the receiver has seen */
    int64_t since_ns;     /* time of the first sign of them; valid if there are any */
    int64_t unseen_bytes; /* that the receiver reported, and the capture point has not seen */
};

/* Returns what SACKs show about data above snd_una, at the end of the connection. */
struct missing_data find_missing_data(const struct tcp_stream *stream);

#endif
