/* SPDX-License-Identifier: Apache-2.0 */
/* Finds why a segment was retransmitted by replaying the sender's loss recovery (rules V5 of
 * docs/verdicts.md, in their order):
 *
 *   V5.1  Only timers can apply if the RTO has elapsed and no recent loss signal explains it
 *   V5.2  go-back-N after an RTO             V5.7  reported lost one sender RTT ago
 *   V5.3  three duplicate ACKs               V5.8  RACK
 *   V5.4  SACK of over two segments above    V5.9  tail loss probe
 *   V5.5  fast recovery in progress          V5.10 RTO
 *   V5.6  dup ACK counter carried over       V5.11 unknown
 *                                            V5.12 SYN-ACK after the handshake
 *
 * Time passes between an ACK at the capture point and the sender's answer to it. So an ACK that
 * ends a recovery counts only once it can have reached the sender, and a loss report counts for
 * one sender RTT longer. Without captured ACKs the cause is unknown.
 *
 * A queue between the sender and the capture point delays the answer by more than the least RTT,
 * and then a fast retransmission looks like an RTO. Timestamps show the sender's own view: its
 * TSecr is the TSval of the newest ACK that it had received, and its TSvals show whether it paused.
 * Without SACK, the ACK that caused a fast retransmission is known, so each measures the delay
 * (answer_us) within which the next ones answer. Loss signals are in loss_report.c. */
#include "verdict/retransmit_cause.h"

#include "verdict/loss_report.h"

/* The tail loss probe's timer of Linux: 2 RTT, at least 2 ms, which coarse clocks extend. */
#define MIN_TLP_NS         INT64_C(2000000)
#define USUAL_TLP_NS       INT64_C(10000000)
#define SENDER_RESPONSE_NS 1000000  /* a sender's delay after an ACK */
#define PROMPT_NS          10000000 /* the same with pacing */

/* --- the sender's view ----------------------------------------------------------------------- */

/* The capture point is so near the sender that its own queues hardly delay an answer. */
static bool is_beside_sender(const struct segment_context *seg) {
    return sender_rtt(seg->connection, seg->sender) < path_rtt(seg->connection) / 4;
}

/* Returns the last ACK that had reached the sender before it retransmitted: one that does not cover
 * the data. */
static struct ack_point sender_view(const struct segment_context *seg,
                                    const struct retransmission *rtx) {
    const struct tcp_stream *sender = seg->sender;
    if (rtx->end > sender->snd_una || is_beside_sender(seg))
        return last_ack_point(sender);
    const struct ack_point *earlier = earlier_acks(sender);
    for (unsigned i = ACKS_KEPT; i-- > 0;)
        if (earlier[i].snd_una < rtx->end)
            return earlier[i];
    return (struct ack_point){0};
}

/* Returns the event that last restarted the RTO timer: a transmission, an ACK that advanced snd_una
 * (RFC 6298 section 5) or the opening of a zero window. */
static struct ack_point rto_timer_restart(const struct segment_context *seg,
                                          const struct retransmission *rtx) {
    struct ack_point since = {.time_ns = rtx->sent_ns, .frame = rtx->since_frame};
    const struct tcp_recovery_state *peer = recovery_of(seg->receiver);
    if (seg->sender->snd_una_known) {
        struct ack_point acked = sender_view(seg, rtx);
        since = acked.time_ns > since.time_ns ? acked : since;
    }
    if (peer->window_opened_ns > since.time_ns)
        since = (struct ack_point){.time_ns = peer->window_opened_ns,
                                   .frame = peer->window_opened_frame};
    return since;
}

static int64_t rto_timer_age_ns(const struct segment_context *seg,
                                const struct retransmission *rtx) {
    return seg->packet->time_ns - rto_timer_restart(seg, rtx).time_ns;
}

/* The data ends at snd_nxt, counting the segment's FIN. */
static bool is_last_data(const struct segment_context *seg, const struct retransmission *rtx) {
    bool fin = seg->tcp->flags & TCP_FIN;
    return rtx->end == seg->sender->snd_nxt || (fin && rtx->end + 1 == seg->sender->snd_nxt);
}

/* --- the sender's clock ---------------------------------------------------------------------- */

/* The sender's view at this transmission, from its timestamps. */
struct sender_clock {
    bool known;        /* both endpoints send timestamps, and their ticks are known */
    int64_t ack_ns;    /* when the newest ACK that it had received passed the capture point */
    int64_t paused_ns; /* since the transmission before, less the time between the newest ACKs */
    int64_t sent_ns;   /* since the transmission before */
    bool unheard;      /* since then, it received no newer ACK */
    int64_t error_ns;  /* of both */
};

/* RFC 7323 section 4.3: TSecr is the TSval of the newest ACK. */
static struct sender_clock read_sender_clock(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender, *receiver = seg->receiver;
    int64_t own = tsval_tick_ns(sender), peer = tsval_tick_ns(receiver);
    if (!has_timestamps(seg) || !own || !peer || max64(own, peer) > MAX_TICK_NS)
        return (struct sender_clock){0};
    int64_t sent = (int32_t)(seg->tcp->timestamp_value - sender->max_tsval);
    int64_t heard = (int32_t)(seg->tcp->timestamp_echo - sender->tsval_echo);
    int64_t behind = (int32_t)(receiver->max_tsval - seg->tcp->timestamp_echo);
    return (struct sender_clock){.known = sent >= 0 && heard >= 0 && behind >= 0,
                                 .ack_ns = receiver->tsval_ns - behind * peer,
                                 .paused_ns = sent * own - heard * peer,
                                 .sent_ns = sent * own,
                                 .unheard = !heard,
                                 .error_ns = own + peer + clock_step_ns(seg)};
}

/* Returns the time since the sender's data before; by its own clock if a queue spread them. */
static int64_t silence_ns(const struct segment_context *seg) {
    struct sender_clock clock = read_sender_clock(seg);
    int64_t captured = seg->data_ns_before ? seg->packet->time_ns - seg->data_ns_before : INT64_MAX;
    return clock.known ? min64(captured, clock.sent_ns + clock.error_ns) : captured;
}

/* Since its transmission before, the sender received no newer ACK for an RTO, longer than for a
 * tail loss probe: only the timer can have released the segment, whatever held it up afterwards. */
static bool waited_for_timer(const struct segment_context *seg) {
    struct sender_clock clock = read_sender_clock(seg);
    int64_t rtt = max64(path_rtt(seg->connection), 0), rto = MIN_RTO_NS + rtt;
    return clock.known && clock.unheard &&
           clock.sent_ns >= max64(rto - rto / 10, 2 * rtt + rtt / 2);
}

/* Returns the time from an ACK at the capture point to the sender's answer: without SACK, at least
 * as long as the last retransmission that an ACK caused took, because queues change slowly. */
static int64_t answer_delay_ns(const struct segment_context *seg) {
    int64_t least = sender_rtt(seg->connection, seg->sender);
    int64_t last = 1250 * (int64_t)recovery_of(seg->sender)->answer_us;
    return may_use_rack(seg) ? least : max64(least, last);
}

/* The ACK of all data below `position` had reached the sender before it sent this segment: since it
 * passed, at least the RTT to the sender has elapsed, and TSecr is not older. */
static bool ack_reached_sender(const struct segment_context *seg, int64_t position) {
    struct sender_clock clock = read_sender_clock(seg);
    int64_t delay = max64(answer_delay_ns(seg), 0) + SENDER_RESPONSE_NS;
    return seg->sender->snd_una >= position &&
           seg->packet->time_ns - seg->sender->una_advanced_ns > delay &&
           (!clock.known || clock.ack_ns + clock.error_ns >= seg->sender->una_advanced_ns);
}

/* Returns how late an answer may be: less if the delay of the last one is known. */
static int64_t answer_slack_ns(const struct segment_context *seg) {
    bool measured = !may_use_rack(seg) && recovery_of(seg->sender)->answer_us;
    return measured ? PROMPT_NS : SIGNAL_FRESH_NS;
}

/* The sender transmitted this as soon as an ACK arrived, as it did with the segment before. */
static bool is_ack_clocked(const struct segment_context *seg, const struct sender_clock *clock) {
    int64_t most = answer_slack_ns(seg) + clock->error_ns;
    return clock->known && clock->paused_ns <= most && clock->paused_ns >= -most;
}

/* The ACK that passed the capture point at `ack_ns` was the newest that the sender had received, or
 * without timestamps can have been. */
static bool answers_ack(const struct segment_context *seg, int64_t ack_ns) {
    struct sender_clock clock = read_sender_clock(seg);
    int64_t rtt = max64(path_rtt(seg->connection), 0);
    int64_t usual = answer_delay_ns(seg), slack = answer_slack_ns(seg), delay = rtt / 4 + slack;
    if (is_ack_clocked(seg, &clock) && clock.ack_ns + clock.error_ns >= ack_ns)
        return clock.ack_ns - clock.error_ns - ack_ns <= delay;
    if (!may_use_rack(seg) && clock.known && clock.paused_ns > slack + clock.error_ns)
        return false; /* it waited for a timer */
    return seg->packet->time_ns - ack_ns <= (usual < 0 ? rtt : usual) + delay;
}

/* Rule V5.3 for a sender without SACK: the third duplicate ACK causes one retransmission, those
 * behind it none (RFC 5681 section 3.2). */
static bool answers_third_dup_ack(const struct segment_context *seg,
                                  const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    return seg->receiver->dup_ack_count >= DUP_ACK_THRESH && rtx->start == seg->sender->snd_una &&
           (!rtx->repeated || recovery->third_dup_ack_ns > rtx->sent_ns) &&
           answers_ack(seg, recovery->third_dup_ack_ns);
}

/* RFC 6582 section 3.2: without SACK, fast recovery retransmits a segment once. */
static bool repeats_within_recovery(const struct segment_context *seg,
                                    const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    return !may_use_rack(seg) && rtx->repeated && recovery->recovery_frame &&
           !is_packet_before(rtx->sent_ns, rtx->sent_frame, recovery->recovery_ns,
                             recovery->recovery_frame) &&
           rtx->start < recovery->recovery_point;
}

/* --- causes in ACKs -------------------------------------------------------------------------- */

/* Go-back-N retransmits upwards: one RTT ago or earlier it retransmitted data above this. */
static bool retransmitted_beyond(const struct segment_context *seg,
                                 const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        const struct retransmission_record *record = &recovery->records[i];
        if (record->kind == WORD_TIMEOUT_RETRANSMISSION && record->start >= rtx->end &&
            is_packet_before(recovery->rto_ns, recovery->rto_frame, record->time_ns,
                             record->frame) &&
            seg->packet->time_ns - record->time_ns >= path_rtt(seg->connection))
            return true;
    }
    return false;
}

/* Go-back-N retransmitted it before, perhaps upstream of a loss, and SACKs of later data show that
 * it was lost again. Linux then recovers as without an RTO (FLAG_LOST_RETRANS). */
static bool is_lost_again(const struct segment_context *seg, const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    bool seen =
        rtx->repeated &&
        is_packet_before(recovery->rto_ns, recovery->rto_frame, rtx->sent_ns, rtx->sent_frame) &&
        seg->packet->time_ns - rtx->sent_ns >= path_rtt(seg->connection);
    if (!may_use_rack(seg)) /* Reno: duplicate ACKs behind an RTO count */
        return rtx->repeated &&
               !is_packet_before(rtx->sent_ns, rtx->sent_frame, recovery->rto_ns,
                                 recovery->rto_frame) &&
               answers_third_dup_ack(seg, rtx);
    return bytes_sacked_above(recovery, rtx->end) && (seen || retransmitted_beyond(seg, rtx));
}

/* Continues the last retransmission within one RTT: an ACK that passed in between was still on its
 * way to the sender. */
static bool continues_last_retransmit(const struct segment_context *seg,
                                      const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    const struct retransmission_record *last =
        recovery->record_count ? record_at(recovery, 0) : NULL;
    return last && last->kind == WORD_TIMEOUT_RETRANSMISSION && last->end == rtx->start &&
           seg->packet->time_ns - last->time_ns < path_rtt(seg->connection);
}

/* A sender that undoes an RTO goes on with new data (RFC 4015 section 3.2, RFC 5682 section 3.1),
 * or recovers from a loss that was reported since. One that retransmits in answer to the ACK itself
 * has neither the Eifel response nor F-RTO. */
static bool shows_undone_rto(const struct segment_context *seg,
                             const struct tcp_recovery_state *recovery) {
    int64_t delay = max64(answer_delay_ns(seg), 0), now = seg->packet->time_ns;
    bool reported =
        seg->receiver->dup_ack_count >= DUP_ACK_THRESH && now - recovery->third_dup_ack_ns >= delay;
    bool waited = seg->receiver->dup_ack_count &&
                  now - seg->sender->una_advanced_ns > delay + SENDER_RESPONSE_NS;
    return recovery->recovery_frame || seg->sender->snd_nxt > recovery->rto_point || reported ||
           waited;
}

/* Rule V5.2: after an RTO the sender retransmits everything up to the snd_nxt of that time (RFC
 * 5681 section 3.1), until it receives an ACK of all that, or recovers in another way. */
static bool in_rto_recovery(const struct segment_context *seg, const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    bool undone = recovery->rto_undone && shows_undone_rto(seg, recovery);
    bool fast_recovery =
        undone && (recovery->recovery_frame || is_reported_lost(seg, rtx->start, rtx->end));
    return recovery->rto_frame && rtx->start < recovery->rto_point && !fast_recovery &&
           !is_lost_again(seg, rtx) &&
           (!ack_reached_sender(seg, recovery->rto_point) || continues_last_retransmit(seg, rtx));
}

/* Rule V5.5: RFC 6582, RFC 6675 section 5. */
static bool in_fast_recovery(const struct segment_context *seg, const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    return recovery->recovery_frame && rtx->start < recovery->recovery_point &&
           !ack_reached_sender(seg, recovery->recovery_point);
}

/* Rule V5.6: without SACK, Linux keeps some of the duplicate ACKs that it counted in an earlier
 * recovery (tcp_add_reno_sack), so two more suffice, or an ACK above the recovery alone. */
static bool dupack_counter_carried_over(const struct segment_context *seg,
                                        const struct retransmission *rtx) {
    if (may_use_rack(seg) || !recovery_of(seg->sender)->recovery_frame ||
        rtx->start != seg->sender->snd_una)
        return false;
    int64_t at_once = max64(answer_delay_ns(seg), 0) + SENDER_RESPONSE_NS;
    return rto_timer_age_ns(seg, rtx) < rto_ns(seg->connection, seg->sender) / 2 &&
           (seg->receiver->dup_ack_count + 1u >= DUP_ACK_THRESH ||
            seg->packet->time_ns - seg->sender->una_advanced_ns <= at_once);
}

/* Rule V5.7 without SACK: three duplicate ACKs passed before later ACKs did, and since the ACK
 * that they repeat no RTO can have expired, or the answer takes as long as before. Linux counts
 * duplicate ACKs on, and may answer with a later segment. */
static bool answers_loss_report(const struct segment_context *seg,
                                const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t reported = recovery->loss_report.start, time_ns = recovery->loss_report.time_ns;
    if (may_use_rack(seg) || rtx->repeated || rtx->start < reported ||
        recovery->loss_report.end == reported)
        return false;
    int64_t rto = rto_ns(seg->connection, seg->sender);
    int64_t age = seg->packet->time_ns - time_ns + 1000000 * (int64_t)recovery->report_wait_ms;
    return age < rto - rto / 10 || (rtx->start == reported && answers_ack(seg, time_ns));
}

/* Rule V5.7: acknowledged by now, but the last report that had reached the sender was a loss. */
static bool was_reported_lost(const struct segment_context *seg, const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t delay = sender_rtt(seg->connection, seg->sender), rtt = path_rtt(seg->connection);
    if (!may_use_rack(seg))
        return answers_loss_report(seg, rtx);
    return rtx->end <= seg->sender->snd_una && rtx->start >= recovery->loss_report.start &&
           rtx->end <= recovery->loss_report.end && rtt >= 0 &&
           seg->packet->time_ns - recovery->loss_report.time_ns <=
               delay + rtt / 4 + SENDER_RESPONSE_NS;
}

/* Rule V5.8, RFC 8985 section 6.2: sent at least one RTT ago, and data that was sent later has been
 * SACKed or, if it was a retransmission, acknowledged. */
static bool is_lost_by_rack(const struct segment_context *seg, const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t waited = seg->packet->time_ns - rtx->sent_ns;
    if (!may_use_rack(seg))
        return false;
    if (waited >= path_rtt(seg->connection))
        return rtx->sent_ns < recovery->rack_xmit_ns ||
               (has_loss_signal(seg, rtx->end) && !is_last_data(seg, rtx));
    /* Only the handshake measured the path to the sender, and it may have waited. A SACK suffices
     * long before any timer. */
    return seg->receiver->rtt.count <= 1 && waited < rto_ns(seg->connection, seg->sender) / 2 &&
           rtx->end > seg->sender->snd_una && bytes_sacked_above(recovery, rtx->end);
}

static struct retransmit_cause fast(int64_t frame_ns, uint32_t frame, enum word name) {
    return (struct retransmit_cause){.kind = WORD_FAST_RETRANSMISSION,
                                     .evidence = WORD_ACKS,
                                     .frame = frame,
                                     .frame_ns = frame_ns,
                                     .name = name};
}

struct retransmit_cause find_ack_cause(const struct segment_context *seg,
                                       const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    if (repeats_within_recovery(seg, rtx))
        return (struct retransmit_cause){.kind = WORD_NONE};
    if (in_rto_recovery(seg, rtx)) /* V5.2 */
        return (struct retransmit_cause){.kind = WORD_TIMEOUT_RETRANSMISSION,
                                         .evidence = WORD_TIME,
                                         .frame = recovery->rto_frame,
                                         .name = WORD_GO_BACK_N};
    if (is_reported_lost(seg, rtx->start, rtx->end)) /* V5.3, V5.4 */
        return fast(rtx->sent_ns, rtx->sent_frame, WORD_NONE);
    if (in_fast_recovery(seg, rtx)) /* V5.5 */
        return fast(recovery->recovery_ns, recovery->recovery_frame, WORD_RECOVERY);
    if (dupack_counter_carried_over(seg, rtx)) /* V5.6 */
        return fast(rtx->sent_ns, rtx->sent_frame, WORD_CARRIED_DUPLICATE_ACKS);
    if (was_reported_lost(seg, rtx)) /* V5.7 */
        return fast(rtx->sent_ns, rtx->sent_frame, WORD_LATE_REPORT);
    if (is_lost_by_rack(seg, rtx)) /* V5.8 */
        return fast(rtx->sent_ns, rtx->sent_frame, WORD_RACK);
    return (struct retransmit_cause){.kind = WORD_NONE};
}

/* --- timers ---------------------------------------------------------------------------------- */

/* Rule V5.9: tail loss probe, RFC 8985 section 7. The last segment, retransmitted once, while the
 * sender receives no loss signal, or a SACK of just this one, which was lost. */
static bool is_tail_loss_probe(const struct segment_context *seg,
                               const struct retransmission *rtx) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t rtt = path_rtt(seg->connection);
    /* Each transmission restarts its timer (RFC 8985 section 7.2). */
    int64_t age = min64(rto_timer_age_ns(seg, rtx), silence_ns(seg));
    if (rtx->start < 0 || rtt < 0 || !may_use_rack(seg) || !is_last_data(seg, rtx) ||
        (has_loss_signal(seg, rtx->end) && !is_sacked(recovery, rtx->start, rtx->end)) ||
        last_retransmission_of(recovery, rtx->start, rtx->end, false))
        return false;
    int64_t expected = max64(2 * rtt, USUAL_TLP_NS), latest = expected + expected / 2;
    int64_t rto = rtt + max64(MIN_RTO_NS, 4000 * (int64_t)seg->sender->rttvar_us);
    if (age < max64(rtt + rtt / 2, MIN_TLP_NS))
        return false;
    /* The RTO retransmits the lowest segment, not the last of several. */
    if (rtx->start > sender_view(seg, rtx).snd_una)
        return age <= max64(latest, rto);
    /* If both timers are due, the nearer one. */
    return age <= latest && (rto <= expected || age <= (rto + expected) / 2);
}

/* Returns the most that the sender's timer can have run by its own clock: since the ACK that
 * restarted it, up to the newest ACK that it had received when it transmitted this, if that ACK
 * released it. INT64_MAX if unknown. */
static int64_t sender_timer_age_ns(const struct segment_context *seg,
                                   const struct retransmission *rtx) {
    struct sender_clock clock = read_sender_clock(seg);
    struct ack_point since = sender_view(seg, rtx);
    if (!is_ack_clocked(seg, &clock) || rtx->repeated || !since.time_ns ||
        since.snd_una != rtx->start)
        return INT64_MAX;
    return clock.ack_ns - since.time_ns + SIGNAL_FRESH_NS + clock.error_ns;
}

/* Rule V5.10: RFC 6298 section 5. Timers of the endpoint may be a little faster than estimated.
 * Without SACK, only the timer can repeat a retransmission within a recovery an RTT later: neither
 * that retransmission nor duplicate ACKs restart it, and of the partial ACKs only the first may
 * (RFC 6582 section 4). */
static bool is_rto(const struct segment_context *seg, const struct retransmission *rtx) {
    int64_t rto = rto_ns(seg->connection, seg->sender), age = rto_timer_age_ns(seg, rtx);
    bool lowest = !seg->sender->snd_una_known || rtx->start <= seg->sender->snd_una;
    if (!may_use_rack(seg)) {
        struct sender_clock clock = read_sender_clock(seg);
        age = min64(age, sender_timer_age_ns(seg, rtx));
        /* A duplicate ACK released it: RTTVAR of Linux, and the slop of BSD, are 200 ms or more. */
        if (is_reported_lost(seg, rtx->start, rtx->end) && is_ack_clocked(seg, &clock))
            rto = max64(rto, add_ns(path_rtt(seg->connection), MIN_RTO_NS));
    }
    /* RFC 6582 section 4: neither the recovery nor its partial ACKs need restart the timer. A
     * sender that goes back may repeat a segment sooner. */
    int64_t since_ns = recovery_of(seg->sender)->recovery_ns;
    struct ack_point view = sender_view(seg, rtx);
    if (view.time_ns) /* else acknowledged so long ago that the sender's view is forgotten */
        since_ns = min64(since_ns, view.time_ns);
    bool repeats =
        repeats_within_recovery(seg, rtx) && seg->packet->time_ns - since_ns >= rto - rto / 10;
    bool due = age >= rto - rto / 10 || waited_for_timer(seg);
    return lowest && (due || repeats);
}

/* Rule V5.12: a SYN-ACK whose ACK passed the capture point. A server that defers accept until data
 * arrives, or has no room in its accept queue, ignores that ACK. */
static bool is_after_handshake(const struct segment_context *seg,
                               const struct retransmission *rtx) {
    return rtx->start < 0 && segment_direction(seg) && seg->connection->handshake_ack_seen;
}

/* Less than three full segments were sent after it, too few for three duplicate ACKs (RFC 8985
 * section 7). */
static bool is_tail(const struct segment_context *seg, const struct retransmission *rtx) {
    int64_t above = seg->sender->snd_nxt - rtx->end;
    return rtx->start >= 0 &&
           (above < (int64_t)DUP_ACK_THRESH * seg->sender->agreed_mss || is_last_data(seg, rtx));
}

static struct retransmit_cause find_timer_cause(const struct segment_context *seg,
                                                const struct retransmission *rtx) {
    struct retransmit_cause cause = {.kind = WORD_RETRANSMISSION, .frame = rtx->sent_frame};
    if (is_tail_loss_probe(seg, rtx)) {
        cause.kind = WORD_PROBE_RETRANSMISSION;
        cause.evidence = WORD_TIME;
    } else if (is_rto(seg, rtx)) {
        struct ack_point since = rto_timer_restart(seg, rtx);
        cause.kind = WORD_TIMEOUT_RETRANSMISSION;
        cause.evidence = WORD_TIME;
        cause.idle_ns = seg->packet->time_ns - since.time_ns;
        cause.idle_frame = since.frame;
        if (is_after_handshake(seg, rtx)) /* V5.12 */
            cause.name = WORD_AFTER_HANDSHAKE;
        else if (is_tail(seg, rtx))
            cause.name = WORD_TAIL;
    }
    return cause;
}

/* Acknowledged by an ACK that is newer than those which the sender had received, and an ACK caused
 * it: a partial one, because a duplicate ACK releases new data. */
static bool precedes_last_ack(const struct segment_context *seg, const struct retransmission *rtx) {
    struct sender_clock clock = read_sender_clock(seg);
    return rtx->end <= seg->sender->snd_una && !rtx->repeated && is_ack_clocked(seg, &clock) &&
           clock.ack_ns - clock.error_ns < seg->sender->una_advanced_ns;
}

/* Rule V5.1 without SACK: the ACK that caused a retransmission is known, the third duplicate or, in
 * a recovery, the last partial one. */
static bool answers_reno_signal(const struct segment_context *seg,
                                const struct retransmission *rtx) {
    if (seg->receiver->dup_ack_count >= DUP_ACK_THRESH && rtx->start == seg->sender->snd_una)
        return answers_third_dup_ack(seg, rtx);
    if (answers_loss_report(seg, rtx))
        return true;
    return (in_fast_recovery(seg, rtx) || in_rto_recovery(seg, rtx)) &&
           (answers_ack(seg, seg->sender->una_advanced_ns) || precedes_last_ack(seg, rtx));
}

/* Rule V5.1: although an RTO has elapsed, the ACKs explain the retransmission. One that is repeated
 * follows an RTT or an RTO after the last one, whatever the ACKs in between report. RACK answers a
 * loss signal up to RTT/4 late (RFC 8985 section 6.2). Without SACK an old loss signal explains
 * nothing. */
static bool acks_explain(const struct segment_context *seg, const struct retransmission *rtx) {
    struct sender_clock clock = read_sender_clock(seg);
    if (waited_for_timer(seg))
        return false;
    int64_t rtt = max64(path_rtt(seg->connection), 0);
    int64_t signal_age = seg->packet->time_ns - recovery_of(seg->sender)->last_loss_signal_ns;
    bool fresh = signal_age <= rtt + rtt / 4 + SIGNAL_FRESH_NS;
    if (rtx->repeated)
        return !may_use_rack(seg) && !repeats_within_recovery(seg, rtx) &&
               answers_third_dup_ack(seg, rtx);
    if (may_use_rack(seg))
        return fresh || is_ack_clocked(seg, &clock);
    if (answers_reno_signal(seg, rtx))
        return true;
    return fresh && !is_ack_clocked(seg, &clock) &&
           rto_timer_age_ns(seg, rtx) < rto_ns(seg->connection, seg->sender) + rtt;
}

struct retransmit_cause find_cause(const struct segment_context *seg,
                                   const struct retransmission *rtx) {
    if (!seg->packet->time_known || (!seg->sender->snd_una_known && rtx->start >= 0))
        return (struct retransmit_cause){.kind = WORD_RETRANSMISSION, .frame = rtx->sent_frame};
    struct retransmit_cause cause = {.kind = WORD_NONE};
    if (rtx->start >= 0 && (!is_rto(seg, rtx) || acks_explain(seg, rtx)))
        cause = find_ack_cause(seg, rtx);
    return cause.kind == WORD_NONE ? find_timer_cause(seg, rtx) : cause;
}
