/* SPDX-License-Identifier: Apache-2.0 */
/* Proves retransmissions spurious and duplicates the network's, and keeps the SACK scoreboard that
 * retransmit_cause.c and retransmission.c read (rules V6.3 to V6.6, V7.4, V8.5).
 *
 * A DSACK is attributed to the newest record that overlaps it and was not reported yet. A
 * retransmission is preferred, because the network seldom duplicates. An ACK that advances snd_una
 * settles all records that it covers: its TSecr (Eifel, RFC 3522) or its delay can show that it
 * answers an earlier transmission. */
#include "verdict/loss_report.h"
#include "verdict/verdict.h"

#define MANY_SAMPLES 16 /* RTT samples after which their minimum is near that of the empty path */

/* --- DSACK ----------------------------------------------------------------------------------- */

/* Rule V8.5: the receiver got both packets, so the network made the duplicate. */
static void prove_network_duplicate(struct segment_context *seg,
                                    struct tcp_recovery_state *recovery,
                                    struct retransmission_record *record) {
    record->dsacked = true;
    record->kind = WORD_NETWORK_DUPLICATE;
    set_mirrored(seg->sink, recovery, record, false);
    recovery->network_duplicates++;
    amend_event(record->event,
                &(struct event){.kind = WORD_NETWORK_DUPLICATE, .evidence = WORD_DSACK});
}

/* A DSACK of a single byte answers a keep-alive. */
static bool may_be_reported(const struct retransmission_record *record, int64_t start,
                            int64_t end) {
    bool keep_alive = end - start == 1 && record->end - record->start > 1;
    return !record->dsacked && record->start >= 0 && record_overlaps(record, start, end) &&
           !keep_alive;
}

/* Returns whether the DSACK reports this duplicate rather than an older retransmission. If the
 * capture made it, the network duplicated the packet downstream of the capture point. */
static bool take_duplicate_report(struct segment_context *seg,
                                  struct retransmission_record *record) {
    if (record->kind == WORD_NETWORK_DUPLICATE)
        record->dsacked = true;
    else if (record->duplicate && record->origin != DUPLICATE_TWO_PORTS &&
             !is_mirrored_throughout(seg->receiver))
        prove_network_duplicate(seg, seg->receiver->recovery, record);
    else
        return false;
    return true;
}

/* Rule V6.3: the receiver got [start, end) twice, so their retransmission was spurious; else the
 * network duplicated them. */
static void process_dsack(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_recovery_state *recovery = seg->receiver->recovery;
    bool found = false;
    for (uint32_t i = 0; recovery && i < recovery->record_count && end > start; i++) {
        struct retransmission_record *record = record_at(recovery, i);
        if (!may_be_reported(record, start, end))
            continue;
        if (!found && take_duplicate_report(seg, record))
            return;
        if (record->duplicate)
            continue;
        record->dsacked = found = true;
        if (!record->needed) /* else the network duplicated it */
            mark_spurious(seg->receiver, record, WORD_DSACK);
        end = record->start; /* one record per byte of the report */
    }
}

/* RFC 2883 section 4: the first block is below the ACK, or within the second block. */
static bool is_dsack(const struct tcp_header *tcp, const int64_t (*blocks)[2], int64_t position) {
    if (blocks[0][1] <= position)
        return true;
    return tcp->sack_count > 1 && blocks[0][0] >= blocks[1][0] && blocks[0][1] <= blocks[1][1];
}

/* --- answers that come too soon -------------------------------------------------------------- */

/* Returns whether an ACK or SACK follows the record's transmission sooner than its answer can: by
 * half the least RTT of few samples, 7/8 of many, by more than a tick of the capture's clock. */
static bool is_faster_than_rtt(const struct segment_context *seg,
                               const struct retransmission_record *record, bool many) {
    int64_t least = min_rtt(seg->receiver);
    int64_t limit = many ? least - least / 8 : least / 2;
    int64_t waited = seg->packet->time_ns - record->time_ns;
    return seg->receiver->rtt.count && seg->packet->time_known &&
           waited + clock_step_ns(seg) < limit;
}

/* Rule V6.5: the answer to the record comes too soon. If a SACK left its bytes open before it was
 * sent, the receiver lacked them then, and only the receiver can say that they arrived twice: the
 * place is open. So it is after a single sample, which may be of a handshake that waited. */
static void judge_answer(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                         struct retransmission_record *record) {
    bool many = seg->receiver->rtt.count >= MANY_SAMPLES && !record->reported_missing;
    if (record->upstream || record->spurious || record->damaged ||
        !is_faster_than_rtt(seg, record, many))
        return;
    if (record->reported_missing || seg->receiver->rtt.count == 1) {
        leave_loss_open(seg->receiver, record);
        return;
    }
    if (record->kind == WORD_FAST_RETRANSMISSION && record->first_ns)
        recovery->reorder_ns = max64(recovery->reorder_ns, late_by(seg, record->first_ns));
    mark_spurious(seg->receiver, record, WORD_TIME);
}

/* --- SACK ------------------------------------------------------------------------------------ */

/* Rule V9.5: data that was not captured, but SACKed in part. */
static void note_sack_gap(struct segment_context *seg, struct tcp_recovery_state *recovery,
                          int64_t start, int64_t position) {
    int64_t known = max64(recovery->sacked_max, position);
    if (start <= known || seg->receiver->base_known)
        return;
    recovery->sack_gaps++;
    emit_kind(seg, WORD_SACK_GAP, start - known);
}

/* Some firewalls renumber a stream and leave its SACK blocks unchanged. */
static bool is_plausible(const struct segment_context *seg, const int64_t *block) {
    return block[0] < block[1] && block[1] - block[0] < POSITION_SPAN &&
           (!seg->receiver->base_known ||
            block[1] <= seg->receiver->snd_nxt + max_ack_ahead(seg->sender));
}

/* The same of a block below: a DSACK reports data of this stream (RFC 2883 section 4). */
static bool is_outside(const struct segment_context *seg, const int64_t *block) {
    int64_t least = seg->receiver->syn_seen ? -1 : seg->receiver->first_seq - POSITION_SPAN;
    return seg->receiver->base_known && block[0] != block[1] &&
           (block[0] < least || !is_plausible(seg, block));
}

static NOINLINE void note_outside(const struct segment_context *seg, int64_t shift) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    bool first = !recovery->sacks_outside++;
    recovery->sack_shift_min = first ? shift : min64(recovery->sack_shift_min, shift);
    recovery->sack_shift_max = first ? shift : max64(recovery->sack_shift_max, shift);
}

/* Adds [start, end) to the scoreboard. Each part that is new is looked at once. */
static void report(struct segment_context *seg, struct scoreboard *board, int64_t start,
                   int64_t end) {
    int64_t until;
    for (int64_t at = start; scoreboard_open_part(board, &at, end, &until); at = until)
        unacked_sacked(&seg->receiver->unacked, at, until);
    scoreboard_add(board, start, end, seg->pool);
}

static void keep_blocks(struct segment_context *seg, struct tcp_recovery_state *recovery,
                        const int64_t (*blocks)[2], unsigned first, int64_t position) {
    recovery->sack_count = 0;
    /* The newest block comes first (RFC 2018 section 4), so read them backwards. */
    for (unsigned i = seg->tcp->sack_count; i-- > first;) {
        if (!is_plausible(seg, blocks[i]))
            continue;
        note_sack_gap(seg, recovery, blocks[i][0], position);
        recovery->sacked_max = max64(recovery->sacked_max, blocks[i][1]);
        recovery->sacked[recovery->sack_count].start = blocks[i][0];
        recovery->sacked[recovery->sack_count++].end = blocks[i][1];
        int64_t start = max64(blocks[i][0], position);
        if (start < blocks[i][1])
            report(seg, &recovery->scoreboard, start, blocks[i][1]);
    }
}

/* RFC 8985 section 6.2: a retransmission arrived, so data sent before it is not in flight. An ACK
 * within less than the RTT answers an earlier transmission (step 2 of that section). */
static void note_delivered(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                           const struct retransmission_record *record) {
    int64_t waited = seg->packet->time_ns - record->time_ns;
    if (!record->duplicate && !record->spurious && seg->packet->time_known &&
        (!seg->receiver->rtt.count || waited + clock_step_ns(seg) >= least_sample(seg->receiver)))
        recovery->rack_xmit_ns = max64(recovery->rack_xmit_ns, record->time_ns);
}

/* Rule V11.3: the newest data SACKed gives an RTT sample, for verdicts only, even if data below it
 * is missing.
 */
static void sample_sack_rtt(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                            int64_t end) {
    const struct unacked_segment *segment = unacked_find(&seg->receiver->unacked, end - 1);
    if (!segment || segment->no_sample || segment->end != end || !seg->packet->time_known)
        return;
    /* F-RTO (RFC 5682 section 3.1): data sent before the RTO and never retransmitted arrived, so
     * the sender takes the RTO for spurious. */
    recovery->rto_undone |=
        recovery->rto_frame &&
        is_packet_before(segment->time_ns, segment->frame, recovery->rto_ns, recovery->rto_frame);
    int64_t rtt = max64(seg->packet->time_ns - segment->time_ns, max64(clock_step_ns(seg), 1));
    if (rtt <= MAX_RTT_NS && (!recovery->sack_rtt_ns || rtt < recovery->sack_rtt_ns))
        recovery->sack_rtt_ns = rtt;
}

static void note_sacked_retransmissions(const struct segment_context *seg,
                                        struct tcp_recovery_state *recovery) {
    for (uint32_t i = 0; recovery->unsettled && i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        if (record->settled || record->sacked || !is_sacked(recovery, record->start, record->end))
            continue;
        record->sacked = true;
        note_delivered(seg, recovery, record);
        judge_answer(seg, recovery, record);
    }
}

/* Rule V8.6: a receiver with gaps may merge a DSACK with another one, or leave it out. */
static void note_gap_behind_duplicates(struct tcp_recovery_state *recovery, int64_t position) {
    for (uint32_t i = 0; recovery->mirror_duplicates && i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        if (record->origin == DUPLICATE_REPORTABLE && record->end > position)
            record->origin = DUPLICATE_UNPROVEN;
    }
}

NOINLINE void process_sack(struct segment_context *seg, int64_t position) {
    int64_t blocks[SACK_BLOCKS_MAX][2] = {{0}};
    for (unsigned i = 0; i < seg->tcp->sack_count; i++) {
        blocks[i][0] = stream_position(seg->receiver, seg->tcp->sack[i].start);
        blocks[i][1] = stream_position(seg->receiver, seg->tcp->sack[i].end);
    }
    seg->effect.sack_count = 0;
    while (seg->effect.sack_count < seg->tcp->sack_count &&
           blocks[seg->effect.sack_count][0] < blocks[seg->effect.sack_count][1])
        seg->effect.sack_count++;
    memcpy(seg->effect.sack, blocks, sizeof blocks);
    bool outside = is_outside(seg, blocks[0]);
    if (outside)
        note_outside(seg, blocks[0][0] - position);
    bool dsack = !outside && is_dsack(seg->tcp, blocks, position);
    if (dsack && blocks[0][0] < blocks[0][1])
        process_dsack(seg, blocks[0][0], blocks[0][1]);
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->receiver);
    recovery->sends_dsack |= dsack;
    if (blocks[dsack][1] > recovery->sacked_max)
        sample_sack_rtt(seg, recovery, blocks[dsack][1]);
    keep_blocks(seg, recovery, blocks, dsack, position);
    if (recovery->sack_count) {
        recovery->last_loss_signal_ns = seg->packet->time_ns;
        note_gap_behind_duplicates(recovery, position);
    }
    note_sacked_retransmissions(seg, recovery);
}

/* --- cumulative ACKs ------------------------------------------------------------------------- */

enum echo { ECHO_UNKNOWN, ECHO_EARLIER, ECHO_THIS };

/* Rule V6.4: of several segments that one ACK covers, TSecr echoes the first (RFC 7323 section
 * 4.3), so only the lowest outstanding one can be compared. An echo older than the first
 * transmission does not answer it: some receivers always echo the same value. */
static enum echo echo_of(const struct segment_context *seg,
                         const struct retransmission_record *record) {
    bool lowest = seg->receiver->snd_una_known && record->start <= seg->receiver->snd_una;
    if (!lowest || !record->has_tsval || !has_timestamps(seg))
        return ECHO_UNKNOWN;
    uint32_t echo = seg->tcp->timestamp_echo;
    if ((int32_t)(echo - record->tsval) >= 0) /* with the TSval of the first it shows neither */
        return record->newer_tsval || !record->first_ns ? ECHO_THIS : ECHO_UNKNOWN;
    bool of_first = record->newer_tsval && (int32_t)(echo - record->first_tsval) >= 0;
    return of_first ? ECHO_EARLIER : ECHO_UNKNOWN;
}

/* The ACK itself reports a second arrival, or may do so if its options were cut: then it echoes the
 * second one (RFC 7323 section 4.3), and the ACK of the first was lost. */
static bool may_be_dsacked(const struct segment_context *seg,
                           const struct retransmission_record *record) {
    const struct tcp_header *tcp = seg->tcp;
    if (tcp->options & TCP_OPTION_CUT)
        return true;
    return tcp->sack_count &&
           record_overlaps(record, stream_position(seg->receiver, tcp->sack[0].start),
                           stream_position(seg->receiver, tcp->sack[0].end));
}

/* The ACK and those before report no data above a gap. */
static bool reports_no_sack(const struct segment_context *seg) {
    return !seg->tcp->sack_count && is_without_sack(seg->connection, seg->receiver);
}

/* Rule V7.4: no ACK ended at its start. Without SACK, either the receiver held it above a gap or it
 * acknowledged several segments at once. */
static bool is_skipped(const struct segment_context *seg,
                       const struct retransmission_record *record) {
    return record->lost && !record->upstream && record->start > seg->receiver->snd_una &&
           record->start < seg->receiver->recovery->maybe_held_below && reports_no_sack(seg);
}

static void settle(struct segment_context *seg, struct tcp_recovery_state *recovery,
                   struct retransmission_record *record) {
    enum echo echo = echo_of(seg, record);
    if (record->first_ns)
        record->late_ns = late_by(seg, record->first_ns);
    record->settled = true;
    recovery->unsettled--;
    record->needed = record->newer_tsval && echo == ECHO_THIS && !may_be_dsacked(seg, record);
    if (!record->upstream && echo == ECHO_EARLIER)
        mark_spurious(seg->receiver, record, WORD_TIMESTAMPS);
    else if (echo == ECHO_UNKNOWN)
        judge_answer(seg, recovery, record);
    if (is_skipped(seg, record))
        leave_loss_open(seg->receiver, record);
    note_delivered(seg, recovery, record);
}

NOINLINE void settle_retransmissions(struct segment_context *seg, int64_t position) {
    struct tcp_recovery_state *recovery = seg->receiver->recovery;
    if (position < recovery->settled_from)
        return;
    recovery->settled_from = INT64_MAX;
    /* An ACK beyond the last retransmission: the receiver held data above it. */
    const struct retransmission_record *last =
        recovery->record_count ? record_at(recovery, 0) : NULL;
    if (last && !last->duplicate && last->end > seg->receiver->snd_una && last->end < position)
        recovery->maybe_held_below = max64(recovery->maybe_held_below, position);
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        struct retransmission_record *record = &recovery->records[i];
        if (record->settled)
            continue;
        if (record->end > position)
            recovery->settled_from = min64(recovery->settled_from, record->end);
        else
            settle(seg, recovery, record);
    }
    seg->receiver->has_unsettled = recovery->unsettled;
}

/* Rule V6.6: retransmitted after an RTO, acknowledged since, and long enough ago to have arrived.
 */
static bool retransmit_may_be_spurious(const struct segment_context *seg,
                                       const struct retransmission_record *record) {
    const struct tcp_stream *data = seg->receiver;
    return record->kind == WORD_TIMEOUT_RETRANSMISSION && !record->upstream &&
           (record->lost || record->place_unknown) && !record->dsacked &&
           record->end <= data->snd_una && record->start > data->recovery->previous_snd_una &&
           seg->packet->time_ns - record->time_ns >= least_sample(data) - least_sample(data) / 8;
}

/* Without SACK, go-back-N retransmits data that had arrived. The lowest of the segments that an ACK
 * covers filled the gap. Each other one that the receiver already had makes it repeat that ACK
 * immediately (RFC 9293 section 3.10.7.4). */
NOINLINE void process_repeated_ack(struct segment_context *seg) {
    struct tcp_recovery_state *recovery = seg->receiver->recovery;
    if (!recovery || !reports_no_sack(seg))
        return;
    if (seg->receiver->snd_nxt > seg->receiver->snd_una)
        recovery->maybe_held_below = seg->receiver->snd_nxt;
    if (!recovery->rto_count || !seg->packet->time_known)
        return;
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        struct retransmission_record *record = record_at(recovery, i);
        if (!retransmit_may_be_spurious(seg, record))
            continue;
        record->dsacked = true;
        mark_spurious(seg->receiver, record, WORD_ACKS);
        return;
    }
}
