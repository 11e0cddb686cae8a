/* SPDX-License-Identifier: Apache-2.0 */
/* The last verdicts of a half-connection, which later packets may amend: an event's row, its record
 * and the counters must change together, so only the functions below change a record that is kept.
 * `record` must be one of `recovery`. */
#ifndef WIRETALE_RECENT_VERDICTS_H
#define WIRETALE_RECENT_VERDICTS_H

#include "tcp/wire_segments.h"

#define MIRROR_GAP_NS 1000000 /* a mirror port's duplicate follows within 1 ms */

static inline bool record_overlaps(const struct retransmission_record *record, int64_t start,
                                   int64_t end) {
    return record->start < end && start < record->end;
}

/* Returns one of the records, 0 for the newest. */
struct retransmission_record *record_at(const struct tcp_recovery_state *recovery, uint32_t age);

/* Returns the last retransmission of any of these bytes, NULL if there is none; if `of_gap` is set,
 * the last one that filled a gap. `recovery` may be NULL. */
struct retransmission_record *last_retransmission_of(const struct tcp_recovery_state *recovery,
                                                     int64_t start, int64_t end, bool of_gap);

/* Returns the payload of the stream that had passed before the bytes at `start` did last: as
 * `last`, or in their first transmission, if that is NULL. */
int64_t seen_before(const struct segment_context *seg, int64_t start,
                    const struct retransmission_record *last);

/* Counts the record's bytes as lost, or no longer. `recovery` must be that of `stream`, or absorb
 * the counts if memory has run out. */
void set_lost(struct tcp_stream *stream, struct tcp_recovery_state *recovery,
              struct retransmission_record *record, bool lost);

/* Counts the duplicate as the capture's, or no longer: its packet, and its bytes, which were on the
 * link once. `record` must be a duplicate. */
void set_mirrored(const struct event_sink *sink, struct tcp_recovery_state *recovery,
                  const struct retransmission_record *record, bool mirrored);

/* Counts its retransmission as spurious, once; nothing if `spurious` is not set. */
void set_spurious(struct tcp_stream *stream, struct tcp_recovery_state *recovery,
                  struct retransmission_record *record, bool spurious);

/* The functions that amend have no segment, because the end of the connection settles verdicts,
 * too.
 */

/* Keeps a verdict on the current segment, with its time, frame, IP ID and TSval. If the ring
 * is full, the oldest record is settled with the evidence of that time. */
void remember_verdict(const struct segment_context *seg, struct retransmission_record record);

/* Rule V7.3: the record's bytes were not lost. */
void retract_loss(struct tcp_stream *stream, struct retransmission_record *record,
                  enum word evidence);

/* Rules V7.4 to V7.9: whether they were lost cannot be determined. */
void leave_loss_open(struct tcp_stream *stream, struct retransmission_record *record);

/* Rules V6: the retransmission is proven spurious. */
void mark_spurious(struct tcp_stream *stream, struct retransmission_record *record,
                   enum word evidence);

/* Returns whether so many packets of the direction were duplicated that only a mirror can be the
 * cause. */
bool is_mirrored_throughout(const struct tcp_stream *stream);

/* Rule V8.4: returns whether one port stored so many packets of the direction a third time within
 * 1 ms that only a mirror can be the cause. */
bool has_thirds_throughout(const struct tcp_stream *stream);

/* At the end of the connection: counts mirror duplicates of `stream` that may be the network's as
 * unknown, and third duplicates that only a mirror can have made as the mirror's (rules V8.4 and
 * V8.6), and leaves losses open that cannot be determined (rules V7.5 to V7.7 and V7.9): among them
 * SYNs that were retransmitted within one RTT of `first_ns`, the time of the sender's first packet.
 */
void settle_verdicts(const struct event_sink *sink, const struct tcp_connection *connection,
                     struct tcp_stream *stream, int64_t first_ns);

/* lost_acks.c: decides at the end of the connection whether ACKs that the sender did not receive
 * were lost (rule V6.7). */
void settle_unheard_acks(const struct tcp_connection *connection, struct tcp_stream *stream);

#endif
