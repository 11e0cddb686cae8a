/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies data that is not next in sequence: retransmitted, reordered or ambiguous, and the side
 * of the capture point on which it was lost (rules V3, V4, V7 of docs/verdicts.md).
 *
 * Evidence, strongest first: TSval (RFC 7323), IPv4 ID (RFC 6864), then ACKs and time against the
 * RTT. A gap that a retransmission fills was lost upstream of the capture point; data that was seen
 * and retransmitted was lost downstream, or its ACK was. A proof may come later, so each verdict is
 * remembered (recent_verdicts.h) and sack.c may amend it.
 *
 * A loss just before the capture point can also leave no gap, if nothing followed it: then only a
 * missing IP ID and the idle time of an RTO indicate it (rules V1). */
#include "flow/damage.h"
#include "verdict/loss_report.h"
#include "verdict/retransmit_cause.h"
#include "verdict/verdict.h"

#define MAX_INITIAL_RTO_NS INT64_C(3000000000) /* before RFC 6298 */
#define CAPTURE_REORDER_NS                                                                         \
    1000000                    /* a multi-queue adapter delivers packets out of order by so much */
#define NEAR_IDS            64 /* of two packets of one direction */
#define MAX_IDS_SKIPPED     64 /* while a connection was idle, if it shares the host's counter */
#define MAX_OWN_IDS_SKIPPED 4096 /* if the counter is its own: a window of lost data */
#define MAX_EXPIRIES        8    /* of an RTO that doubles each time */
#define WINDOWS_MIN_RTO_NS  INT64_C(300000000)

/* --- retransmissions ------------------------------------------------------------------------- */

/* The sender knew at this transmission of an ACK that passed the capture point at `time_ns`. */
static bool sender_knew(const struct segment_context *seg, int64_t time_ns) {
    int64_t delay = sender_rtt(seg->connection, seg->sender);
    return seg->packet->time_known &&
           seg->packet->time_ns - time_ns - clock_step_ns(seg) >
               (delay < 0 ? rto_ns(seg->connection, seg->sender) : delay);
}

/* Rule V6.1: an ACK of the data had reached the sender. */
static bool acked_before_sent(const struct segment_context *seg, int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    if (!sender->snd_una_known || end > sender->snd_una)
        return false;
    const struct ack_point *earlier = earlier_acks(sender);
    for (unsigned i = 0; i < ACKS_KEPT; i++)
        if (earlier[i].time_ns && end <= earlier[i].snd_una && sender_knew(seg, earlier[i].time_ns))
            return true;
    return sender_knew(seg, sender->una_advanced_ns);
}

/* Rule V6.2: the receiver had it before this transmission passed, unless the capture reorders ACKs
 * and data. */
static bool received_before(const struct segment_context *seg, bool acked, bool sacked) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t reported_ns = acked ? seg->sender->una_advanced_ns : recovery->last_loss_signal_ns;
    return (acked || sacked) && (!recovery->capture_reordered ||
                                 seg->packet->time_ns - reported_ns > CAPTURE_REORDER_NS);
}

/* Rules V7.1 and V7.2; without ACKs, the place of data that was seen before is unknown. */
static enum word place_of_loss(const struct segment_context *seg, const struct retransmission *rtx,
                               bool upstream) {
    if (upstream)
        return WORD_UPSTREAM;
    if (rtx->forgotten)
        return WORD_NONE;
    return rtx->start < 0 || seg->sender->snd_una_known ? WORD_DOWNSTREAM : WORD_NONE;
}

/* Rule V7.8. */
static enum tcp_spurious spurious_of(bool proven, bool placed) {
    if (proven)
        return SPURIOUS_YES;
    return placed ? SPURIOUS_NO : SPURIOUS_UNKNOWN;
}

/* Rule V14.4. */
static void blame_damage(struct event *event, uint32_t frame) {
    event->evidence = WORD_CHECKSUM;
    event->cause = WORD_CHECKSUM_ERROR;
    event->related_frame = frame;
    event->detail = NULL;
}

/* `evidence` is that of a loss upstream; `detail` is NULL, or replaces that of the cause. */
static void record_retransmission(struct segment_context *seg, const struct retransmission *rtx,
                                  bool upstream, enum word evidence, const char *detail) {
    struct retransmit_cause cause = find_cause(seg, rtx);
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    bool sacked = is_sacked(recovery, rtx->start, rtx->end);
    bool acked = seg->sender->snd_una_known && rtx->end <= seg->sender->snd_una;
    bool spurious = acked_before_sent(seg, rtx->end) || received_before(seg, acked, sacked);
    uint32_t damaged_frame = take_damage(seg, rtx->start, rtx->end);
    bool lost = !acked && !sacked, damaged = lost && damaged_frame;
    enum word place = lost && !damaged ? place_of_loss(seg, rtx, upstream) : WORD_NONE;
    bool placed = place != WORD_NONE;
    if (!upstream)
        evidence = cause.evidence;
    struct event event = {.kind = cause.kind,
                          .place = place,
                          .evidence = spurious ? WORD_ACKNOWLEDGED : evidence,
                          .spurious = (int8_t)spurious_of(spurious, placed || damaged),
                          .bytes = rtx->start < 0 ? 0 : rtx->end - rtx->start,
                          .related_frame = cause.frame,
                          .due_ns = rtx->seen_bytes >= 0 ? rtx->sent_ns : 0,
                          .due_bytes = rtx->seen_bytes,
                          .cause = cause.name,
                          .detail = detail};
    if (damaged)
        blame_damage(&event, damaged_frame);
    uint64_t super = count_retransmission(seg, &cause, rtx->start, rtx->end);
    struct retransmission_record record = {.start = rtx->start,
                                           .end = rtx->end,
                                           .event = emit_event(seg, &event),
                                           .long_bytes = super,
                                           .kind = (uint16_t)cause.kind,
                                           .upstream = upstream && !damaged,
                                           .damaged = damaged,
                                           .place_unknown = lost && !placed && !damaged,
                                           .syn_fin = is_syn_or_fin(seg, rtx->start),
                                           .reported_missing = has_sack_above(recovery, rtx->end),
                                           .settled = spurious || !lost};
    note_unheard_ack(seg, &record);
    set_spurious(seg->sender, recovery, &record, spurious);
    set_lost(seg->sender, recovery, &record, placed);
    recovery->checksum_retransmissions += damaged;
    seg->effect.lost += (lost && !damaged) * segments_of(seg->sender, super);
    remember_verdict(seg, record);
}

/* `gap`: that it fills, NULL if it fills none or is forgotten; `frame`: of the packet that overtook
 * it. */
static void record_not_retransmitted(struct segment_context *seg, int64_t bytes, bool reordered,
                                     enum word evidence, uint32_t frame, const struct gap *gap) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->out_of_order += reordered;
    recovery->ambiguous += !reordered;
    emit_event(seg, &(struct event){.kind = reordered ? WORD_OUT_OF_ORDER : WORD_AMBIGUOUS,
                                    .place = reordered ? WORD_UPSTREAM : WORD_NONE,
                                    .evidence = reordered ? evidence : WORD_NONE,
                                    .bytes = bytes,
                                    .due_ns = reordered && gap ? gap->opened_ns : 0,
                                    .due_bytes = -1,
                                    .related_frame = frame});
}

/* --- order of transmission ------------------------------------------------------------------- */

/* Compares the segment with another transmission of the sender by TSval, then by IP ID. `*order` is
 * negative if the segment was sent first, 0 if that is unknown. Returns the evidence. */
static enum word compare_send_order(const struct segment_context *seg, bool has_tsval,
                                    uint32_t tsval, uint16_t ip_id, int *order) {
    *order = 0;
    if (has_tsval && has_timestamps(seg))
        *order = (int32_t)(seg->tcp->timestamp_value - tsval);
    if (*order)
        return WORD_TIMESTAMPS;
    if (ip_ids_ordered(seg->sender) && ip_id && seg->packet->ip_id)
        *order = (int16_t)(seg->packet->ip_id - ip_id);
    return *order ? WORD_IP_ID : WORD_NONE;
}

/* The same with the first segment of the capture. In a short capture IDs need not have shown that
 * they rise: two near ones suffice. */
static enum word compare_with_first(const struct segment_context *seg,
                                    const struct unacked_segment *first, int *order) {
    enum word evidence = compare_send_order(seg, first->tsval, first->tsval, first->ip_id, order);
    if (*order || !first->ip_id || !seg->packet->ip_id || ip_ids_unusable(seg->sender))
        return evidence;
    *order = (int16_t)(seg->packet->ip_id - first->ip_id);
    if (*order < -NEAR_IDS || *order > NEAR_IDS)
        *order = 0;
    return *order ? WORD_IP_ID : WORD_NONE;
}

/* --- V3: a segment fills a gap --------------------------------------------------------------- */

enum fill_order { FILL_AMBIGUOUS, FILL_REORDERED, FILL_RETRANSMITTED };

/* Without a handshake, and without samples of both halves, the path's RTT is longer than known. */
static bool path_rtt_is_complete(const struct segment_context *seg) {
    return seg->connection->handshake_rtt_ns >= 0 ||
           (seg->sender->rtt.count && seg->receiver->rtt.count);
}

/* The sender had a reason to retransmit data of the gap. */
static bool may_retransmit(const struct segment_context *seg, const struct gap *gap, int64_t end) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t rto = rto_ns(seg->connection, seg->sender);
    bool signaled = has_loss_signal(seg, end) || recovery->last_loss_signal_ns >= gap->opened_ns;
    bool recovers = (recovery->recovery_frame && gap->start < recovery->recovery_point) ||
                    (recovery->rto_frame && gap->start < recovery->rto_point);
    return !seg->sender->snd_una_known || signaled || recovers ||
           seg->packet->time_ns - gap->opened_ns >= rto - rto / 10;
}

/* Rules V3.4 to V3.6: by time since the gap opened, which may be a tick of the capture's clock
 * more or less. */
static enum fill_order order_by_time(const struct segment_context *seg, const struct gap *gap,
                                     int64_t end) {
    int64_t rtt = path_rtt(seg->connection), waited = seg->packet->time_ns - gap->opened_ns;
    int64_t step = clock_step_ns(seg);
    if (rtt < 0 || !seg->packet->time_known)
        return FILL_AMBIGUOUS;
    if (waited - step >= rtt - rtt / 20) /* V3.5 */
        return path_rtt_is_complete(seg) && may_retransmit(seg, gap, end) ? FILL_RETRANSMITTED
                                                                          : FILL_AMBIGUOUS;
    bool reported = is_reported_lost(seg, seg->sender->snd_una, end) ||
                    seg->receiver->dup_ack_count >= DUP_ACK_THRESH;
    return waited + step <= rtt / 4 && !reported ? FILL_REORDERED : FILL_AMBIGUOUS; /* V3.4, V3.6 */
}

static bool record_fill(struct segment_context *seg, int64_t start, int64_t end,
                        const struct gap *gap, enum word evidence, bool upstream) {
    struct retransmission rtx = {.start = start,
                                 .end = end,
                                 .sent_ns = gap->opened_ns,
                                 .seen_bytes = (int64_t)gap->seen_bytes,
                                 .sent_frame = gap->opener_frame,
                                 .since_frame = gap->opener_frame};
    record_retransmission(seg, &rtx, upstream, evidence, NULL);
    return true;
}

static void note_overtaken(const struct segment_context *seg, int64_t late_ns) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->reorder_ns = max64(recovery->reorder_ns, late_ns);
}

NOINLINE bool classify_gap_fill(struct segment_context *seg, int64_t start, int64_t end,
                                const struct gap_fill *fill) {
    const struct gap *gap = &fill->gap;
    int order;
    enum word evidence = compare_send_order(seg, gap->timestamps, gap->tsval, gap->ip_id, &order);
    if (gap->acked) { /* V3.1 */
        bool just_acked = seg->packet->time_ns - gap->acked_ns <= CAPTURE_REORDER_NS;
        if (order > 0 || (order == 0 && !just_acked))
            return record_fill(seg, start, end, gap, evidence, false);
        recovery_state(seg, seg->sender)->capture_reordered++;
        amend_event(gap->event, &(struct event){.kind = WORD_CAPTURED_OUT_OF_ORDER,
                                                .place = WORD_CAPTURE,
                                                .evidence = order ? evidence : WORD_TIME});
        return false;
    }
    enum fill_order verdict;
    if (order) /* V3.2, V3.3 */
        verdict = order < 0 ? FILL_REORDERED : FILL_RETRANSMITTED;
    else
        verdict = order_by_time(seg, gap, end);
    if (verdict == FILL_RETRANSMITTED)
        return record_fill(seg, start, end, gap, order ? evidence : WORD_TIME, true);
    if (verdict == FILL_REORDERED && seg->packet->time_known)
        note_overtaken(seg, seg->packet->time_ns - gap->opened_ns);
    record_not_retransmitted(seg, fill->bytes, verdict == FILL_REORDERED,
                             order ? evidence : WORD_TIME, gap->opener_frame, gap);
    return false;
}

/* --- V4: all bytes were seen before ---------------------------------------------------------- */

/* Rule V4.3: sent before the retransmission that filled its gap, so it was delayed and not lost. */
static bool is_late_original(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_recovery_state *recovery = seg->sender->recovery;
    struct retransmission_record *fill = last_retransmission_of(recovery, start, end, true);
    int order;
    if (!fill || start < 0)
        return false;
    enum word evidence = compare_send_order(seg, fill->has_tsval, fill->tsval, fill->ip_id, &order);
    if (order >= 0)
        return false;
    recovery->out_of_order++;
    emit_event(seg, &(struct event){.kind = WORD_OUT_OF_ORDER,
                                    .evidence = evidence,
                                    .bytes = end - start,
                                    .related_frame = fill->frame,
                                    .cause = WORD_AFTER_RETRANSMISSION});
    retract_loss(seg->sender, fill, evidence); /* V7.3 */
    return true;
}

static struct ack_point earlier(struct ack_point a, struct ack_point b) {
    return a.time_ns <= b.time_ns ? a : b;
}

/* Returns time and frame of the first transmission of the bytes below `end`. If it is forgotten,
 * they are acknowledged, so they were sent before any later data and before an ACK of them. */
static struct ack_point first_transmission(const struct segment_context *seg,
                                           const struct unacked_segment *first, int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    struct ack_point sent = {.time_ns = seg->packet->time_ns};
    if (first)
        return (struct ack_point){.time_ns = first->time_ns, .frame = first->frame};
    if (sender->snd_una_known)
        sent = earlier(sent, last_ack_point(sender));
    if (sender->last_data_ns) /* a SYN or FIN may be all there is */
        sent = earlier(sent, (struct ack_point){.time_ns = sender->last_data_ns});
    const struct ack_point *acks = earlier_acks(sender);
    for (unsigned i = 0; i < ACKS_KEPT; i++)
        if (acks[i].time_ns && acks[i].snd_una >= end)
            sent = earlier(sent, acks[i]);
    return sent;
}

/* Rule V2.3: neither a first transmission nor a retransmission of the bytes is known, and one of
 * the gaps that were dropped may have held them. */
static bool is_forgotten(const struct segment_context *seg, int64_t start, int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    const struct tcp_recovery_state *recovery = sender->recovery;
    return recovery && start >= 0 && start < recovery->forgotten.end &&
           !(sender->snd_una_known && end <= sender->snd_una) &&
           !unacked_find(&sender->unacked, start) &&
           !last_retransmission_of(recovery, start, end, false);
}

/* A segment that was sent after a gap above opened is a retransmission. Of an older one, the order
 * is unknown. */
static void classify_forgotten(struct segment_context *seg, int64_t start, int64_t end) {
    const struct gap *above = &seg->sender->recovery->forgotten;
    int order;
    enum word evidence =
        compare_send_order(seg, above->timestamps, above->tsval, above->ip_id, &order);
    if (order < 0 || (!order && order_by_time(seg, above, end) != FILL_RETRANSMITTED)) {
        record_not_retransmitted(seg, end - start, false, evidence, above->opener_frame, NULL);
        return;
    }
    struct retransmission rtx = {.start = start,
                                 .end = end,
                                 .sent_ns = above->opened_ns,
                                 .seen_bytes = -1,
                                 .forgotten = true,
                                 .sent_frame = above->opener_frame,
                                 .since_frame = above->opener_frame};
    record_retransmission(seg, &rtx, false, WORD_NONE, NULL);
}

NOINLINE enum repetition classify_repeated(struct segment_context *seg, int64_t start, int64_t end,
                                           const char *detail) {
    const struct unacked_segment *first = unacked_find(&seg->sender->unacked, start);
    const struct retransmission_record *last =
        last_retransmission_of(seg->sender->recovery, start, end, false);
    if (is_late_original(seg, start, end)) /* V4.3 */
        return REPEATED_RETRANSMITTED;
    if (take_late_duplicate(seg, first, start, end)) /* V4.4 */
        return REPEATED_DUPLICATE;
    if (is_forgotten(seg, start, end)) {
        classify_forgotten(seg, start, end);
        return REPEATED_UNKNOWN;
    }
    struct ack_point sent = first_transmission(seg, first, end);
    struct retransmission rtx = {.start = start,
                                 .end = end,
                                 .sent_ns = last ? last->time_ns : sent.time_ns,
                                 .seen_bytes = last || first ? seen_before(seg, start, last) : -1,
                                 .repeated = last,
                                 .sent_frame = last    ? last->frame
                                               : first ? first->frame
                                                       : 0,
                                 .since_frame = last ? last->frame : sent.frame};
    record_retransmission(seg, &rtx, false, WORD_NONE, detail); /* V4.5 */
    return REPEATED_RETRANSMITTED;
}

NOINLINE void classify_before_capture(struct segment_context *seg, int64_t start, int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    const struct unacked_segment *first = unacked_find(&sender->unacked, sender->first_seq);
    if (!seg->packet->time_known || (sender->snd_una_known && start < sender->snd_una))
        return;
    int order = 0;
    enum word evidence = first ? compare_with_first(seg, first, &order) : WORD_NONE;
    struct retransmission rtx = {.start = start, .end = end, .sent_ns = seg->packet->time_ns};
    struct retransmit_cause cause = {.kind = WORD_NONE};
    if (order >= 0 && sender->snd_una_known)
        cause = find_ack_cause(seg, &rtx);
    if (order > 0 && cause.kind == WORD_NONE)
        cause = (struct retransmit_cause){.kind = WORD_RETRANSMISSION, .evidence = evidence};
    if (cause.kind == WORD_NONE) {
        if (first)
            record_not_retransmitted(seg, end - start, order < 0, evidence, first->frame, NULL);
        return;
    }
    uint64_t super = count_retransmission(seg, &cause, start, end);
    struct event event = {.kind = cause.kind,
                          .evidence = cause.evidence,
                          .spurious = SPURIOUS_UNKNOWN,
                          .bytes = end - start,
                          .cause = WORD_BEFORE_CAPTURE};
    remember_verdict(seg, (struct retransmission_record){.start = start,
                                                         .end = end,
                                                         .event = emit_event(seg, &event),
                                                         .long_bytes = super,
                                                         .kind = (uint16_t)cause.kind});
}

/* --- V1: in order after an idle time --------------------------------------------------------- */

/* Returns how long a sender waits at most for `count` expiries of its RTO, which doubles each time
 * (RFC 6298 section 5.5). */
static int64_t backed_off_ns(const struct segment_context *seg, int count) {
    int64_t first = max64(rto_ns(seg->connection, seg->sender), MAX_INITIAL_RTO_NS);
    return first * ((1 << (count < 6 ? count : 6)) - 1);
}

/* Returns the step of the sender's IP ID since its last packet, 0 if IDs do not count packets. */
static int ip_id_step(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    bool known = ip_ids_consecutive(sender) && seg->packet->ip_id && sender->last_ip_id;
    return known ? (int16_t)ip_ids_between(sender->last_ip_id, seg->packet->ip_id) : 0;
}

/* Returns whether bytes that were seen are outstanding. An RTO retransmits the lowest of them (RFC
 * 6298 section 5.4), so new data follows none; another connection may have taken missing IDs. */
static bool has_outstanding(const struct tcp_stream *sender) {
    return sender->snd_una_known && sender->snd_una < sender->snd_nxt;
}

/* Returns how many IDs since the sender's last packet no packet of its host has, -1 if that is not
 * known. */
static int missing_ids(const struct segment_context *seg) {
    int step = ip_id_step(seg), before = seg->packet->ids_before;
    if (step < 1)
        return -1;
    return step - 1 > before ? step - 1 - before : 0;
}

/* Go-back-N behind the data, which ends at `point`, belongs to the same RTO, so it begins as a
 * proven one does. */
static void begin_suspected(struct tcp_recovery_state *recovery, int64_t time_ns, uint32_t frame,
                            int64_t point) {
    recovery->rto_ns = time_ns;
    recovery->rto_frame = frame;
    recovery->rto_undone = false;
    recovery->rto_point = recovery->suspected_point = point;
    recovery->recovery_frame = 0;
    recovery->recovery_point = 0;
}

static void suspect_rto(struct segment_context *seg, int64_t length, int64_t idle_ns) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->suspected_rto_count++;
    record_stall(seg, recovery, idle_ns, 0);
    begin_suspected(recovery, seg->packet->time_ns, seg->frame, seg->sender->snd_nxt + length);
}

/* Returns whether the receiver let the sender send a full segment since its last data. */
static bool has_room(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    int64_t window = seg->receiver->window;
    return !seg->receiver->zero_window &&
           (window < 0 || window >= full_segment_size(seg->connection, sender)) &&
           recovery_of(seg->receiver)->window_opened_ns <= sender->last_data_ns;
}

/* Without IDs: a sender sets PSH if it has no more data to send (RFC 9293 section 3.9.1.2). This
 * one had more, an open window, and no answer for an RTO, so data upstream was lost. It is not
 * certain before a gap shows that data, because an application may have corked the stream. */
static void note_idle_with_data(struct segment_context *seg, int64_t length) {
    const struct tcp_stream *sender = seg->sender;
    int64_t rto = rto_ns(seg->connection, sender);
    if (!sender->pushes || sender->last_pushed || has_outstanding(sender) ||
        !sender->snd_una_known || !has_room(seg) ||
        seg->packet->time_ns - sender->una_advanced_ns < rto - rto / 10)
        return;
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->idle_point = sender->snd_nxt + length;
    recovery->idle_frame = seg->frame;
    recovery->idle_ns = seg->packet->time_ns;
}

/* An RTO may be part of the idle time. */
static void note_lost_packets(struct segment_context *seg, int64_t idle_ns) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->suspected_ns = seg->packet->time_ns;
    recovery->suspected_idle_ns = idle_ns;
}

static bool is_within_a_fifth(int64_t time_ns, int64_t least_ns, int64_t most_ns) {
    return time_ns >= least_ns - least_ns / 5 && time_ns <= most_ns + most_ns / 5;
}

/* Returns whether an idle time is that of an RTO that doubled up to `most` - 1 times (RFC 6298
 * section 5.5). Its minimum is 200 ms in Linux and 300 ms in Windows. */
static bool is_backed_off_rto(const struct segment_context *seg, int64_t idle_ns, int most) {
    int64_t least_ns = rto_ns(seg->connection, seg->sender);
    int64_t most_ns = max64(least_ns, max64(path_rtt(seg->connection), 0) + WINDOWS_MIN_RTO_NS);
    for (int count = 1; count <= most && count <= MAX_EXPIRIES; count++) {
        int64_t times = (1 << count) - 1;
        if (is_within_a_fifth(idle_ns / times, least_ns, most_ns))
            return true;
    }
    return false;
}

/* Packets of the sender were lost with the missing IDs, rather than sent to others: at the same
 * rate, others would have taken 3 in the time before, in which none is missing. Nor did the sender
 * pause as long without a missing one. */
static bool lost_packets(const struct segment_context *seg, int64_t idle_ns, int missing) {
    const struct tcp_stream *sender = seg->sender;
    int most = ip_ids_per_connection(sender) ? MAX_OWN_IDS_SKIPPED : MAX_IDS_SKIPPED;
    bool usual = sender->pause_ns && is_within_a_fifth(idle_ns, sender->pause_ns, sender->pause_ns);
    return missing > 0 && missing < most && !has_outstanding(sender) && has_room(seg) && !usual &&
           (sender->last_data_ns - sender->ids_since_ns) / 3 >= idle_ns / missing &&
           idle_ns <= backed_off_ns(seg, missing);
}

NOINLINE void classify_idle_gap(struct segment_context *seg, int64_t idle_ns, int64_t length,
                                bool fin) {
    struct tcp_stream *sender = seg->sender;
    if ((!length && !fin) || !sender->sent_data_last || !seg->packet->time_known ||
        idle_ns < rto_ns(seg->connection, sender))
        return;
    int missing = missing_ids(seg);
    if (!missing) { /* no packet is missing: there was no data to send */
        sender->pause_ns = idle_ns;
        return;
    }
    bool lost = lost_packets(seg, idle_ns, missing);
    bool suspected = lost && is_backed_off_rto(seg, idle_ns, missing);
    if (lost) /* after a pause of the application, if it is no RTO alone */
        note_lost_packets(seg, idle_ns);
    if (suspected)
        suspect_rto(seg, length, idle_ns);
    else
        note_idle_with_data(seg, length);
    emit_event(seg, &(struct event){.kind = suspected ? WORD_SUSPECTED_TIMEOUT : WORD_IDLE_GAP,
                                    .place = suspected ? WORD_UPSTREAM : WORD_NONE,
                                    .evidence = suspected ? WORD_IP_ID : WORD_NONE,
                                    .bytes = length});
}

/* Returns whether so many missing IDs may be those of retransmissions in a time. */
static bool fits_rtos(const struct segment_context *seg, int missing, int64_t time_ns) {
    return missing > 0 && missing < MAX_IDS_SKIPPED && time_ns <= backed_off_ns(seg, missing) &&
           time_ns >= rto_ns(seg->connection, seg->sender);
}

bool may_repeat_lost_data(const struct segment_context *seg) {
    const struct tcp_stream *asked = seg->receiver;
    int64_t rtt = max64(sender_rtt(seg->connection, seg->sender), 0);
    int missing = missing_ids(seg) - (asked->snd_una < asked->snd_nxt);
    return fits_rtos(seg, missing, seg->packet->time_ns - asked->last_data_ns - rtt);
}

bool may_hide_rto(const struct segment_context *seg, int64_t idle_ns) {
    return idle_ns >= MIN_RTO_NS && fits_rtos(seg, missing_ids(seg), idle_ns);
}

/* --- V2.2: a gap behind an RTO --------------------------------------------------------------- */

/* All data up to the gap is acknowledged, and the sender answers that ACK. */
static bool follows_last_ack(const struct segment_context *seg, int64_t start) {
    const struct tcp_stream *sender = seg->sender;
    return sender->snd_una_known && sender->snd_una >= start &&
           seg->packet->time_ns - sender->una_advanced_ns < rto_ns(seg->connection, sender);
}

/* The ACK of the RTO's data covers all that was seen. Data of the gap was sent before the RTO if
 * fewer IDs are missing than it has segments, or if it is more than the RTO left room for. */
static bool was_sent_before_rto(const struct segment_context *seg, int64_t start, int64_t end) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    const struct retransmission_record *last =
        recovery->record_count ? record_at(recovery, 0) : NULL;
    if (!last || last->kind != WORD_TIMEOUT_RETRANSMISSION || last->spurious ||
        recovery->rto_undone || !follows_last_ack(seg, start))
        return false;
    int missing = missing_ids(seg);
    bool unnumbered =
        missing >= 0 && missing * full_segment_size(seg->connection, seg->sender) < end - start;
    return unnumbered || end - start >= recovery->rto_room;
}

/* The new data above a gap shows how far the sender had sent before (F-RTO, RFC 5682 section 2.1).
 */
NOINLINE void extend_rto(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    if (recovery->idle_point && recovery->idle_point == start && follows_last_ack(seg, start))
        begin_suspected(recovery, recovery->idle_ns, recovery->idle_frame, start);
    bool suspected = recovery->suspected_point && recovery->suspected_point == start;
    bool behind = recovery->rto_frame && recovery->rto_point == start && seg->sender->snd_una_known;
    if (suspected ||
        (behind && (seg->sender->snd_una < start || was_sent_before_rto(seg, start, end))))
        recovery->rto_point = end;
}
