/* SPDX-License-Identifier: Apache-2.0 */
/* The loss signals that the ACKs carry, as they pass the capture point (rules V5.3, V5.4 and V5.7
 * of docs/verdicts.md).
 *
 * The sender acts on a signal later than it passes: half a path, with every queue on it, is in
 * between. By then later ACKs may have passed, so the last report is kept. Without SACK it is the
 * position that three ACKs repeated, and a NewReno sender answers the first such report alone, then
 * partial ACKs until its recovery ends (RFC 6582 section 3.2). At a capture point beside the
 * receiver an ACK may repeat although nothing is outstanding there: newer data is on its way, and
 * the sender counts the ACK as a duplicate. */
#include "verdict/loss_report.h"

bool may_use_rack(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender, *receiver = seg->receiver;
    return (!sender->syn_seen || sender->syn_truncated || sender->sack_permitted) &&
           (!receiver->syn_seen || receiver->syn_truncated || receiver->sack_permitted);
}

int64_t bytes_sacked_above(const struct tcp_recovery_state *recovery, int64_t position) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < recovery->sack_count; i++)
        bytes += max64(recovery->sacked[i].end - max64(recovery->sacked[i].start, position), 0);
    return bytes;
}

bool has_sack_above(const struct tcp_recovery_state *recovery, int64_t end) {
    return bytes_sacked_above(recovery, end) > 0;
}

bool is_sacked(const struct tcp_recovery_state *recovery, int64_t start, int64_t end) {
    return start >= 0 && scoreboard_covers(&recovery->scoreboard, start, end);
}

bool has_loss_signal(const struct segment_context *seg, int64_t end) {
    return seg->receiver->dup_ack_count || bytes_sacked_above(recovery_of(seg->sender), end);
}

bool is_reported_lost(const struct segment_context *seg, int64_t start, int64_t end) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    /* Rule V5.3: fast retransmit, RFC 5681 section 3.2. */
    if (seg->receiver->dup_ack_count >= DUP_ACK_THRESH && start == seg->sender->snd_una)
        return true;
    /* Rule V5.4: IsLost(), RFC 6675 section 4. */
    return bytes_sacked_above(recovery, end) > 2 * full_segment_size(seg->connection, seg->sender);
}

/* --- reports without SACK --------------------------------------------------------------------- */

/* Returns for how long a report without SACK may still be answered: twice the sender's present
 * delay, as its last answer or the TSecr of its newest data shows it. */
static int64_t report_lifetime(const struct segment_context *seg,
                               const struct tcp_recovery_state *recovery) {
    int64_t answer = 1000 * (int64_t)recovery->answer_us, tick = tsval_tick_ns(seg->sender);
    if (has_timestamps(seg) && tick && tick <= MAX_TICK_NS)
        answer =
            max64(answer, (int32_t)(seg->sender->max_tsval - seg->receiver->tsval_echo) * tick);
    return answer ? min64(2 * answer + SIGNAL_FRESH_NS, KEPT_REPORT_NS) : KEPT_REPORT_NS;
}

/* Without SACK, the sender answers the first third duplicate ACK, and those that follow it until
 * its recovery ends only with the partial ACKs (RFC 6582 section 3.2): so a report stays until its
 * data is retransmitted. */
static bool report_waits(const struct segment_context *seg,
                         const struct tcp_recovery_state *recovery) {
    int64_t age = seg->packet->time_ns - recovery->loss_report.time_ns;
    return recovery->loss_report.end > recovery->loss_report.start &&
           age < report_lifetime(seg, recovery);
}

/* ACKs of data below the recovery point are partial ones. */
static bool is_in_recovery(const struct tcp_recovery_state *recovery, int64_t position) {
    return (recovery->recovery_frame && position < recovery->recovery_point) ||
           (recovery->rto_frame && position < recovery->rto_point);
}

/* The third duplicate ACK passes. */
static void keep_reno_report(const struct segment_context *seg,
                             struct tcp_recovery_state *recovery) {
    const struct tcp_stream *data = seg->receiver;
    int64_t now = seg->packet->time_ns, waited = now - data->una_advanced_ns;
    if (report_waits(seg, recovery) || is_in_recovery(recovery, data->snd_una) || waited < 0 ||
        waited > KEPT_REPORT_NS)
        return;
    recovery->report_wait_ms = (uint16_t)(waited / 1000000);
    recovery->loss_report.start = data->snd_una;
    recovery->loss_report.end = data->snd_una + full_segment_size(seg->connection, data);
    recovery->loss_report.time_ns = now;
}

void count_idle_repeat(const struct segment_context *seg, struct tcp_recovery_state *recovery) {
    int64_t position = seg->receiver->snd_una;
    /* ACKs repeat the recovery point if retransmissions were spurious: a NewReno sender ignores
     * them (RFC 6582 section 3.2 step 1). */
    if (may_use_rack(seg) || report_waits(seg, recovery) || is_in_recovery(recovery, position - 1))
        return;
    if (recovery->loss_report.start != position || recovery->loss_report.end != position)
        recovery->idle_repeats = 0;
    recovery->loss_report.start = recovery->loss_report.end = position;
    if (recovery->idle_repeats < DUP_ACK_THRESH && ++recovery->idle_repeats == DUP_ACK_THRESH)
        keep_reno_report(seg, recovery);
}

/* --- reports ---------------------------------------------------------------------------------- */

NOINLINE void keep_loss_report(const struct segment_context *seg,
                               struct tcp_recovery_state *recovery) {
    const struct tcp_stream *data = seg->receiver;
    int64_t start = data->snd_una, end = start, now = seg->packet->time_ns;
    int64_t size = full_segment_size(seg->connection, data);
    if (!data->snd_una_known)
        return;
    if (!may_use_rack(seg)) {
        if (seg->sender->dup_ack_count == DUP_ACK_THRESH)
            keep_reno_report(seg, recovery);
        return;
    }
    if (seg->sender->dup_ack_count >= DUP_ACK_THRESH)
        end = start + size;
    if (bytes_sacked_above(recovery, start) > 2 * size)
        end = max64(end, recovery->sacked_max - 2 * size);
    if (end == start)
        return;
    bool extends = now - recovery->loss_report.time_ns <= path_rtt(seg->connection);
    recovery->loss_report.start = extends ? min64(start, recovery->loss_report.start) : start;
    recovery->loss_report.end = extends ? max64(end, recovery->loss_report.end) : end;
    recovery->loss_report.time_ns = now;
}
