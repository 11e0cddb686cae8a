/* SPDX-License-Identifier: Apache-2.0 */
/* Processes ACKs (rules V9 and V11). An ACK that advances snd_una settles verdicts
 * (verdict/sack.c), shows data that the capture missed, and gives an RTT sample. One that repeats
 * the last ACK may be a duplicate ACK (RFC 5681 section 2), which is a loss signal. The segment's
 * sender is the receiver of the data that it acknowledges; `receiver` is the half-connection of
 * that data. */
#include "tracker/steps.h"

#include "flow/damage.h"
#include "verdict/loss_report.h"
#include "verdict/retransmit_cause.h"
#include "verdict/verdict.h"

/* Rule V11.2: an ACK of one segment with nothing behind it, this much later than the least RTT,
 * waited for the delayed-ACK timer (40 ms and more on Linux, up to 500 ms by RFC 9293
 * section 3.8.6.3). */
#define FULL_LEAST     400 /* bytes: a smaller largest segment is no full one */
#define DELAYED_ACK_NS 25000000

/* A direction with fewer packets frees its list of unacknowledged segments when it is empty: most
 * short flows have nothing outstanding, and the pool gives the memory to the next one. */
#define SHORT_PACKETS 16

/* --- ACKs that advance snd_una --------------------------------------------------------------- */

/* Rule V9.3: the ACK covers data that was not seen. */
static NOINLINE void acknowledge_unseen(struct segment_context *seg, struct tcp_stream *receiver,
                                        int64_t position) {
    int64_t now = seg->packet->time_ns, unseen = 0;
    if (receiver->gaps.count)
        unseen = range_set_acknowledge(&receiver->gaps, position, now, seg->pool);
    /* One byte above snd_nxt may be a FIN that the capture missed: it is not claimed. */
    bool maybe_fin = position == receiver->snd_nxt + 1 && !receiver->fin_seen;
    if (position > receiver->snd_nxt && !maybe_fin) {
        if (receiver->base_known) {
            struct gap gap = {.start = receiver->snd_nxt,
                              .end = position,
                              .opened_ns = now,
                              .acked_ns = now,
                              .opener_frame = seg->frame,
                              .acked = true};
            unseen += position - receiver->snd_nxt;
            recovery_state(seg, receiver)->unknown_bytes +=
                (uint64_t)range_set_open(&receiver->gaps, gap, seg->pool);
        }
        receiver->snd_nxt = position;
    }
    if (!unseen)
        return;
    recovery_state(seg, receiver)->unseen_bytes += (uint64_t)unseen;
    struct flow_event *event = emit_event(seg, &(struct event){.kind = WORD_ACKED_UNSEEN_SEGMENT,
                                                               .place = WORD_CAPTURE,
                                                               .evidence = WORD_ACKS,
                                                               .bytes = unseen});
    range_set_set_event(&receiver->gaps, now, event);
}

/* Keeps values of snd_una that are one RTT apart: rule V6.1 needs those that the sender has
 * received. */
static inline void keep_ack_history(const struct segment_context *seg,
                                    struct tcp_stream *receiver) {
    int64_t rtt = seg->connection->handshake_rtt_ns;
    if (!receiver->snd_una_known || receiver->una_advanced_ns - earlier_acks(receiver)[1].time_ns <
                                        (rtt < 0 ? MIN_RTO_NS : rtt))
        return;
    if (!receiver->ack_history)
        receiver->ack_history = pool_zeroed(seg->pool, ACKS_KEPT * sizeof *receiver->ack_history);
    if (!receiver->ack_history)
        return;
    receiver->ack_history[0] = receiver->ack_history[1];
    receiver->ack_history[1] = last_ack_point(receiver);
}

/* Rule V11.1. Returns the RTT sample of the data that an ACK covered, or RTT_UNKNOWN: never of a
 * segment that was retransmitted (Karn), nor from an ACK that a gap or a timer delayed. */
static int64_t rtt_sample(const struct segment_context *seg, const struct ack_result *acked,
                          uint32_t dup_acks) {
    const struct histogram *rtt = &seg->receiver->rtt;
    if (!acked->count || acked->no_sample || dup_acks || !seg->packet->time_known)
        return RTT_UNKNOWN;
    int64_t waited = seg->packet->time_ns - acked->newest_ns;
    bool alone = acked->count == 1 && !acked->left;
    if (waited < 0 || waited > MAX_RTT_NS ||
        (alone && rtt->count && waited > least_sample(seg->receiver) + DELAYED_ACK_NS))
        return RTT_UNKNOWN;
    return max64(waited, clock_step_ns(seg)); /* V11.4 */
}

/* Duplicate ACKs end, and the segment that they asked for was sent once: later ones overtook it
 * behind the capture point (rule V7.7). Not if a retransmission caused them, because a receiver
 * repeats its ACK for data that it has: one of the present RTT before the last ACK that advanced.
 * Nor if the capture may have missed the retransmission that ended them. */
static NOINLINE void note_reordering(const struct segment_context *seg, uint32_t dup_acks) {
    struct tcp_stream *data = seg->receiver;
    struct tcp_recovery_state *recovery = recovery_state(seg, data);
    const struct unacked_segment *late = unacked_find(&data->unacked, data->snd_una);
    int64_t rtt = max64(path_rtt(seg->connection), 0);
    if (!late || late->no_sample || !seg->packet->time_known)
        return;
    int64_t present_rtt = max64(seg->packet->time_ns - late->time_ns, 2 * rtt);
    if (recovery->record_count &&
        record_at(recovery, 0)->time_ns >= data->una_advanced_ns - present_rtt)
        return;
    int64_t late_ns = late_by(seg, late->time_ns);
    if (dup_acks < DUP_ACK_THRESH || late_ns < rtt)
        recovery->reorder_ns = max64(recovery->reorder_ns, late_ns);
}

/* RFC 9293 section 3.8.6.3: an ACK of a SYN, or of two full segments, is sent at once; so was one
 * that leaves out a segment which follows closely. The least sample is no timer's if it came with
 * data. `bytes` are those that the ACK covers. */
static inline bool is_prompt(const struct segment_context *seg, const struct ack_result *acked,
                             int64_t rtt_ns, int64_t bytes) {
    const struct tcp_stream *data = seg->receiver;
    int64_t full = full_segment_size(seg->connection, data);
    if (acked->left && unacked_at(&data->unacked, 0)->time_ns - acked->newest_ns < ACK_DELAY_NS)
        return true;
    if (seg->packet->payload_bytes && rtt_ns == data->rtt.least)
        return true;
    return (data->snd_una == 0 && data->syn_seen) || (full >= FULL_LEAST && bytes >= 2 * full);
}

static inline void take_sample(struct segment_context *seg, const struct ack_result *acked,
                               int64_t rtt_ns, int64_t bytes) {
    struct tcp_stream *receiver = seg->receiver;
    add_rtt_sample(receiver, rtt_ns, clock_step_ns(seg), seg->pool);
    if (!receiver->prompt_sample)
        receiver->prompt_sample = is_prompt(seg, acked, rtt_ns, bytes);
    if (receiver->accounting && receiver->accounting->steady)
        note_rtt(seg, receiver->accounting->steady, seg->packet->time_ns - acked->newest_ns,
                 acked->newest_frame);
}

static inline void advance(struct segment_context *seg, struct tcp_stream *sender,
                           struct tcp_stream *receiver, int64_t position) {
    uint32_t dup_acks = sender->dup_ack_count;
    sender->dup_ack_count = 0;
    check_probe_byte(seg, receiver, position);
    if (dup_acks)
        note_reordering(seg, dup_acks);
    if (receiver->has_unsettled)
        settle_retransmissions(seg, position);
    if (receiver->recovery) {
        receiver->recovery->previous_snd_una = receiver->snd_una;
        if (receiver->recovery->scoreboard.count)
            scoreboard_acknowledge(&receiver->recovery->scoreboard, position);
        if (receiver->recovery->damaged_count)
            settle_damage(seg, position);
    }
    if (receiver->gaps.count || position > receiver->snd_nxt)
        acknowledge_unseen(seg, receiver, position);
    keep_ack_history(seg, receiver);
    int64_t bytes = receiver->snd_una_known ? position - receiver->snd_una : 0;
    receiver->snd_una = position;
    if (!receiver->flight_known) {
        receiver->snd_una_known = true;
        receiver->flight_known = receiver->base_known;
    }
    receiver->una_advanced_ns = seg->packet->time_ns;
    receiver->una_advanced_frame = seg->frame;
    struct ack_result acked = unacked_acknowledge(&receiver->unacked, position);
    if (!acked.left && receiver->packets < SHORT_PACKETS)
        unacked_free(&receiver->unacked, seg->pool);
    int64_t rtt_ns = rtt_sample(seg, &acked, dup_acks);
    seg->effect.rtt_ns = rtt_ns;
    if (rtt_ns >= 0)
        take_sample(seg, &acked, rtt_ns, bytes);
}

/* --- other ACKs ------------------------------------------------------------------------------ */

/* Rule V9.4: no value that snd_una can have. Before the peer's SYN was answered, another value than
 * 0 acknowledges an old connection (RFC 9293 section 3.5.1). */
static inline bool is_out_of_range(const struct tcp_stream *sender,
                                   const struct tcp_stream *receiver, int64_t position) {
    int64_t ahead = position - receiver->snd_nxt;
    bool old_connection = !receiver->snd_una_known && receiver->syn_seen && !sender->syn_seen &&
                          receiver->snd_nxt <= 0 && position != 0;
    return ahead < -POSITION_SPAN || (ahead > 0 && ahead > max_ack_ahead(sender)) || old_connection;
}

static bool repeats_last_ack(const struct segment_context *seg, const struct tcp_header *tcp) {
    const struct tcp_stream *sender = seg->sender;
    return !seg->packet->payload_bytes && !seg->effect.probe &&
           !(tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST)) &&
           tcp->acknowledgment == sender->last_ack && tcp->window == sender->last_window;
}

/* Rule V9.1: RFC 5681 section 2, with data outstanding. */
static NOINLINE void take_repeated_ack(struct segment_context *seg) {
    process_repeated_ack(seg);
    if (seg->receiver->snd_nxt <= seg->receiver->snd_una) {
        if (seg->receiver->recovery)
            count_idle_repeat(seg, seg->receiver->recovery);
        return;
    }
    recovery_state(seg, seg->sender)->duplicate_acks++;
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->receiver);
    recovery->last_loss_signal_ns = seg->packet->time_ns;
    seg->sender->dup_ack_count += seg->sender->dup_ack_count < UINT16_MAX;
    if (seg->sender->dup_ack_count == DUP_ACK_THRESH)
        recovery->third_dup_ack_ns = seg->packet->time_ns;
    emit_kind(seg, WORD_DUPLICATE_ACK, 0);
}

/* An ACK without SACK blocks ends earlier ones if it acknowledges them. A pure ACK ends them in any
 * case: it would report all data above a gap (RFC 2018 section 4), so the receiver has dropped it
 * (section 8). An end that closes may have dropped its data, too, and not report it any more. */
static NOINLINE void take_sack(struct segment_context *seg, const struct tcp_header *tcp,
                               int64_t position) {
    struct tcp_recovery_state *recovery = seg->receiver->recovery;
    if (tcp->sack_count) {
        recovery_state(seg, seg->sender)->sack_acks++;
        process_sack(seg, position);
    } else if (recovery) {
        bool pure =
            !seg->packet->payload_bytes && !(tcp->options & TCP_OPTION_CUT || tcp->flags & TCP_FIN);
        if (pure || position >= recovery->sacked_max)
            recovery->sack_count = recovery->scoreboard.count = 0;
    }
}

/* ACKs of the stream had SACK blocks that still count. */
static inline bool has_reports(const struct tcp_stream *stream) {
    const struct tcp_recovery_state *recovery = stream->recovery;
    return recovery && (recovery->sack_count || recovery->scoreboard.count);
}

bool process_ack(struct segment_context *seg, struct tcp_stream *sender,
                 struct tcp_stream *receiver, const struct tcp_header *tcp) {
    if (!receiver->isn_known)
        set_isn(receiver, tcp->acknowledgment - 1);
    int64_t position = stream_position(receiver, tcp->acknowledgment);
    if (is_out_of_range(sender, receiver, position)) {
        recovery_state(seg, sender)->acks_out_of_range++;
        emit_kind(seg, WORD_ACK_OUT_OF_RANGE, 0);
        return true;
    }
    int64_t snd_una = receiver->snd_una_known ? receiver->snd_una : INT64_MIN;
    seg->effect.acknowledges = true;
    seg->effect.acknowledged = position;
    if (position < snd_una) { /* V9.2 */
        if (tcp->sack_count)
            take_sack(seg, tcp, position);
        return false;
    }
    if (position > snd_una)
        advance(seg, sender, receiver, position);
    else if (!(receiver->probe_pending && answer_probe(seg)) && repeats_last_ack(seg, tcp))
        take_repeated_ack(seg);
    if (tcp->sack_count || has_reports(receiver))
        take_sack(seg, tcp, position);
    struct tcp_recovery_state *recovery = receiver->recovery; /* an ACK may allocate it */
    if (recovery && (recovery->sack_count || sender->dup_ack_count >= DUP_ACK_THRESH))
        keep_loss_report(seg, recovery);
    sender->last_ack = tcp->acknowledgment;
    sender->last_window = tcp->window;
    return true;
}
