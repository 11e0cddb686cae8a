/* SPDX-License-Identifier: Apache-2.0 */
/* Counts retransmissions and follows the sender's loss recovery, on which the causes of the next
 * ones depend (rules V5 of docs/verdicts.md): an RTO or a fast retransmission begins a recovery,
 * which ends at the snd_nxt of that time (RFC 6582 section 3.2, RFC 5681 section 3.1). */
#include "verdict/loss_report.h"
#include "verdict/retransmit_cause.h"

/* Measures how long the sender's answers take at present, if the ACK that caused this one is known
 * (answer_us), and ends the report that it answers. */
static void note_answer(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                        bool fast_retransmit, int64_t start) {
    int64_t asked_ns = 0, now = seg->packet->time_ns;
    if (start >= recovery->loss_report.start &&
        recovery->loss_report.end > recovery->loss_report.start) {
        asked_ns = recovery->loss_report.time_ns;
        recovery->loss_report.end = recovery->loss_report.start;
    } else if (start == seg->sender->snd_una && !seg->receiver->dup_ack_count) {
        asked_ns = seg->sender->una_advanced_ns;
    }
    if (fast_retransmit && asked_ns && now > asked_ns && now - asked_ns < KEPT_REPORT_NS)
        recovery->answer_us = (uint32_t)((now - asked_ns) / 1000);
}

/* The receiver had the data when its RTO expired, and its ACK, which has passed, echoes an older
 * TSval: then the sender undoes the RTO (RFC 4015). With SACK, F-RTO shows that. */
static bool undoes_rto(const struct segment_context *seg, int64_t start, int64_t end) {
    return !may_use_rack(seg) && has_timestamps(seg) && seg->sender->snd_una_known &&
           end <= seg->sender->snd_una &&
           !last_retransmission_of(seg->sender->recovery, start, end, false);
}

/* An RTO leaves a congestion window of one segment, which grows by no more than the data that is
 * acknowledged since (RFC 5681 section 3.1): SACKed data had arrived before. */
static int64_t room_after_rto(const struct segment_context *seg,
                              const struct tcp_recovery_state *recovery) {
    const struct tcp_stream *sender = seg->sender;
    int64_t missing =
        sender->snd_nxt - sender->snd_una - bytes_sacked_above(recovery, sender->snd_una);
    return full_segment_size(seg->connection, sender) + max64(missing, 0);
}

/* Returns whether the retransmission that began fast recovery is the cause. */
static bool is_of_recovery(const struct retransmit_cause *cause,
                           const struct tcp_recovery_state *recovery) {
    return cause->frame == recovery->recovery_frame && cause->frame_ns == recovery->recovery_ns;
}

/* A FIN alone, of an end that sent nothing since the other end's FIN: nobody waits for it. */
static bool is_unneeded_fin(const struct segment_context *seg) {
    return !seg->packet->payload_bytes && seg->tcp->flags & TCP_FIN && seg->receiver->fin_seen &&
           seg->sender->last_data_ns <= seg->connection->time.fin_ns;
}

uint64_t count_retransmission(const struct segment_context *seg,
                              const struct retransmit_cause *cause, int64_t start, int64_t end) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    uint64_t super = long_bytes(seg->sender, start < 0 ? 0 : end - start);
    bool timeout = cause->kind == WORD_TIMEOUT_RETRANSMISSION;
    bool fast_retransmit = cause->kind == WORD_FAST_RETRANSMISSION;
    recovery->retransmissions++;
    recovery->syn_fin.retransmissions += is_syn_or_fin(seg, start);
    count_long(seg->sender, WIRE_RETRANSMITTED, super, 1);
    recovery->fast_count += fast_retransmit;
    recovery->rto_retransmissions += timeout;
    recovery->tlp_count += cause->kind == WORD_PROBE_RETRANSMISSION;
    if (!may_use_rack(seg) && seg->packet->time_known)
        note_answer(seg, recovery, fast_retransmit, start);
    /* Lost again during go-back-N: fast recovery retransmits the rest. */
    recovery->rto_undone |= fast_retransmit && recovery->rto_frame && start < recovery->rto_point;
    if (timeout && (cause->name == WORD_NONE || cause->name == WORD_TAIL)) { /* the expiry itself */
        recovery->rto_count++;
        if (!is_unneeded_fin(seg))
            record_stall(seg, recovery, cause->idle_ns, cause->idle_frame);
        recovery->rto_point = seg->sender->snd_nxt;
        recovery->rto_frame = seg->frame;
        recovery->rto_ns = seg->packet->time_ns;
        recovery->rto_undone = undoes_rto(seg, start, end);
        recovery->rto_room = room_after_rto(seg, recovery);
        recovery->recovery_point = 0;
        recovery->recovery_frame = 0;
    } else if (fast_retransmit &&
               (!recovery->recovery_frame || (!is_of_recovery(cause, recovery) &&
                                              seg->sender->snd_una >= recovery->recovery_point))) {
        recovery->recovery_point = seg->sender->snd_nxt;
        recovery->recovery_frame = seg->frame;
        recovery->recovery_ns = seg->packet->time_ns;
    }
    return super;
}
