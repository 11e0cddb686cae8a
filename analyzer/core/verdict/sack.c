/* SPDX-License-Identifier: Apache-2.0 */
/* What the receiver reports of what it got: SACK, DSACK, timestamps echoed. */
#include "verdict/mirror_duplicate.h"
#include "verdict/retransmission.h"
#include "verdict/retransmit_cause.h"

#define MANY_SAMPLES 16 /* of so many round trips the least is near that of the empty path */

/* A copy that reached the receiver was none of the mirror's. */
static void prove_network_copy(struct step *step, struct tcp_trouble *trouble,
                               struct judged *copy) {
    copy->reported = true;
    copy->kind = WORD_NETWORK_DUPLICATE;
    trouble->mirror_duplicates--;
    step->listener->unmirror(step, copy->capture);
    trouble->network_duplicates++;
    step_amend(step, copy->event,
               &(struct tcp_event){.kind = WORD_NETWORK_DUPLICATE, .evidence = WORD_DSACK});
}

/* Whether a report of [start, end) can be of it; one of a single byte is a keep-alive's. */
static bool may_be_reported(const struct judged *judged, int64_t start, int64_t end) {
    bool keep_alive = end - start == 1 && judged->end - judged->start > 1;
    return !judged->reported && judged->start >= 0 && judged_overlaps(judged, start, end) &&
           !keep_alive;
}

/* Whether the report is of this copy rather than of a resend. */
static bool take_copy_report(struct step *step, struct judged *judged) {
    const struct direction *direction = direction_of(step->other);
    if (judged->kind == WORD_NETWORK_DUPLICATE)
        judged->reported = true;
    else if (judged->copy && judged->doubt != COPY_OF_TWO_PORTS &&
             !mirror_is_throughout(step->other->trouble, direction->packets))
        prove_network_copy(step, step->other->trouble, judged);
    else
        return false;
    return true;
}

/* The receiver got [start, end) twice: what was sent again for it was needless; else the network
 * made a copy of it. */
static void take_dsack(struct step *step, int64_t start, int64_t end) {
    struct tcp_trouble *trouble = step->other->trouble;
    struct judged *copy = NULL;
    bool found = false;
    for (uint32_t i = 0; trouble && i < trouble->judged_count && end > start; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!may_be_reported(judged, start, end))
            continue;
        if (!found && take_copy_report(step, judged))
            return;
        if (judged->copy) {
            copy = copy ? copy : judged;
            continue;
        }
        judged->reported = found = true;
        if (!judged->needed) /* else the network made a copy of it */
            judged_prove_spurious(step, trouble, judged, WORD_DSACK);
        end = judged->start; /* once for each report of these bytes */
    }
    if (copy && !found)
        prove_network_copy(step, trouble, copy);
}

/* Gaps told by SACK alone: the data itself was not captured. */
static void note_sack_gap(struct step *step, struct tcp_trouble *trouble, int64_t start,
                          int64_t position) {
    int64_t known = later_of(trouble->sacked_highest, position);
    if (start <= known || step->other->based)
        return;
    trouble->sack_gaps++;
    step_tell_kind(step, WORD_SACK_GAP, start - known, 0);
}

static bool is_dsack(const struct tcp_header *tcp, const int64_t (*blocks)[2], int64_t position) {
    if (blocks[0][1] <= position)
        return true;
    return tcp->sack_count > 1 && blocks[0][0] >= blocks[1][0] && blocks[0][1] <= blocks[1][1];
}

/* Some firewalls renumber a stream and leave its SACK blocks as they were. */
static bool is_within(const struct step *step, const int64_t *block) {
    return block[0] < block[1] && block[1] - block[0] < POSITION_SPAN &&
           (!step->other->based || block[1] <= step->other->highest + step_reach(step->stream));
}

static void keep_blocks(struct step *step, struct tcp_trouble *trouble, const int64_t (*blocks)[2],
                        unsigned first, int64_t position) {
    trouble->sacked_count = 0;
    /* The newest block stands first (RFC 2018 section 4): the oldest is asked first. */
    for (unsigned i = step->tcp->sack_count; i-- > first;) {
        if (!is_within(step, blocks[i]))
            continue;
        note_sack_gap(step, trouble, blocks[i][0], position);
        trouble->sacked_highest = later_of(trouble->sacked_highest, blocks[i][1]);
        trouble->sacked[trouble->sacked_count].start = blocks[i][0];
        trouble->sacked[trouble->sacked_count++].end = blocks[i][1];
    }
}

/* What was sent again and arrived: nothing sent before it is still under way (RFC 8985
 * section 6.2). An answer that comes too soon for it is of an earlier sending. */
static void note_delivered(const struct step *step, struct tcp_trouble *trouble,
                           const struct judged *judged) {
    const struct sample_set *rtt = &step->other->rtt;
    if (!judged->copy && !judged->spurious && step->seen->time_known &&
        (!rtt->count || step->seen->time_ns - judged->time_ns >= rtt->least))
        trouble->delivered_ns = later_of(trouble->delivered_ns, judged->time_ns);
}

/* The newest data that the acknowledgment reports has made its round trip, whatever is missing
 * below it (RFC 8985 section 6.2). */
static void note_round_trip(const struct step *step, struct tcp_trouble *trouble, int64_t end) {
    const struct segment *segment = segment_ring_find(&step->other->unacked, end - 1);
    if (!segment || segment->resent || segment->end != end || !step->seen->time_known)
        return;
    /* Sent before the timer expired, never again, and arrived: not all was lost, and the sender
     * takes the timeout for needless (RFC 5682 section 3.1, F-RTO with SACK). */
    trouble->timeout_undone |= trouble->timeout_frame && segment->frame < trouble->timeout_frame;
    int64_t rtt = later_of(step->seen->time_ns - segment->time_ns, 1);
    if (rtt <= ROUND_TRIP_MOST && (!trouble->sacked_rtt_ns || rtt < trouble->sacked_rtt_ns))
        trouble->sacked_rtt_ns = rtt;
}

static void note_sacked_resends(const struct step *step, struct tcp_trouble *trouble) {
    for (uint32_t i = 0; trouble->unsettled && i < trouble->judged_count; i++) {
        const struct judged *judged = &trouble->judged[i];
        for (uint32_t k = 0; k < trouble->sacked_count; k++)
            if (judged->start >= trouble->sacked[k].start && judged->end <= trouble->sacked[k].end)
                note_delivered(step, trouble, judged);
    }
}

APART void judge_sack(struct step *step, int64_t position) {
    int64_t blocks[SACK_BLOCKS_MAX][2] = {{0}};
    for (unsigned i = 0; i < step->tcp->sack_count; i++) {
        blocks[i][0] = stream_position(step->other, step->tcp->sack[i].start);
        blocks[i][1] = stream_position(step->other, step->tcp->sack[i].end);
    }
    step->effect.reports = blocks[0][0] < blocks[0][1];
    step->effect.sack_start = blocks[0][0];
    step->effect.sack_end = blocks[0][1];
    bool dsack = is_dsack(step->tcp, blocks, position);
    if (dsack && blocks[0][0] < blocks[0][1])
        take_dsack(step, blocks[0][0], blocks[0][1]);
    struct tcp_trouble *trouble = step_trouble(step, step->other);
    if (blocks[dsack][1] > trouble->sacked_highest)
        note_round_trip(step, trouble, blocks[dsack][1]);
    keep_blocks(step, trouble, blocks, dsack, position);
    if (trouble->sacked_count)
        trouble->news_ns = step->seen->time_ns;
    note_sacked_resends(step, trouble);
}

/* Of several segments under one acknowledgment the echo is of the first (RFC 7323 section 4.3):
 * only that one is told by it. Negative: it is of an earlier sending; 0: not known. */
static int echo_of(const struct step *step, const struct judged *judged) {
    bool first = step->other->acked_known && judged->start <= step->other->acked;
    if (!first || !judged->timestamps || !step_timestamps(step))
        return 0;
    return (int32_t)(step->tcp->timestamp_echo - judged->tsval) < 0 ? -1 : 1;
}

/* Whether the very acknowledgment that covers it says that it had come before: then that echoes the
 * second one (RFC 7323 section 4.3), and the answer to the first was lost. */
static bool is_reported_twice(const struct step *step, const struct judged *judged) {
    const struct tcp_header *tcp = step->tcp;
    return tcp->sack_count &&
           judged_overlaps(judged, stream_position(step->other, tcp->sack[0].start),
                           stream_position(step->other, tcp->sack[0].end));
}

/* Sooner than the way to the receiver and back allows: it answers an earlier sending. */
static bool is_answer_too_soon(const struct step *step, const struct judged *judged) {
    uint64_t samples = step->other->rtt.count;
    int64_t least = stream_least_rtt(step->other);
    int64_t soon = samples < MANY_SAMPLES ? least / 2 : least - least / 8;
    return samples && step->seen->time_known && step->seen->time_ns - judged->time_ns < soon;
}

/* A single round trip may be that of a handshake that waited. */
static void take_answer_too_soon(const struct step *step, struct tcp_trouble *trouble,
                                 struct judged *judged) {
    if (step->other->rtt.count > 1)
        judged_prove_spurious(step, trouble, judged, WORD_TIME);
    else
        judged_leave_open(step, trouble, judged);
}

/* Whether the receiver has no way to tell what it holds above a gap. */
static bool is_without_sack(const struct step *step) {
    const struct tcp_stream *stream = step->stream, *other = step->other;
    if (stream->syn_seen && other->syn_seen && !stream->syn_cut && !other->syn_cut)
        return !stream->sack_permitted || !other->sack_permitted;
    return !step->tcp->sack_count && !tcp_trouble_of(stream)->sack_acks;
}

/* An acknowledgment that goes beyond what was sent again last: the receiver held the rest. */
static void note_held(const struct step *step, struct tcp_trouble *trouble, int64_t position) {
    const struct judged *last = trouble->judged_count ? judged_at(trouble, 0) : NULL;
    if (last && !last->copy && last->end > step->other->acked && last->end < position)
        trouble->held_below = later_of(trouble->held_below, position);
}

/* Acknowledged together with what lies below it: no acknowledgment ended where it begins. Without
 * SACK that may be because the receiver held it above a gap, or because it acknowledges several at
 * once: whether it was lost is open. */
static bool is_skipped(const struct step *step, const struct judged *judged) {
    return judged->lost && !judged->upstream && judged->start > step->other->acked &&
           judged->start < step->other->trouble->held_below && is_without_sack(step);
}

/* Sent again behind a timeout, acknowledged by now, and long enough ago to have arrived. */
static bool may_be_in_vain(const struct step *step, const struct judged *judged) {
    const struct tcp_stream *other = step->other;
    return judged->kind == WORD_TIMEOUT_RETRANSMISSION && (judged->lost || judged->skipped) &&
           !judged->reported && judged->end <= other->acked &&
           judged->start > other->trouble->advanced_from &&
           step->seen->time_ns - judged->time_ns >= other->rtt.least - other->rtt.least / 8;
}

/* Going back without SACK, a sender sends again what had arrived. The lowest of what an
 * acknowledgment covers at once filled the gap; each one behind it that the receiver had already
 * makes it repeat that acknowledgment at once (RFC 9293 section 3.10.7.4). */
APART void judge_repeated(struct step *step) {
    struct tcp_trouble *trouble = step->other->trouble;
    if (!trouble || !is_without_sack(step))
        return;
    if (step->other->highest > step->other->acked)
        trouble->held_below = step->other->highest;
    if (!trouble->timeouts || !step->seen->time_known)
        return;
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!may_be_in_vain(step, judged))
            continue;
        judged->reported = true;
        judged_prove_spurious(step, trouble, judged, WORD_ACKS);
        return;
    }
}

APART void judge_acknowledged(struct step *step, int64_t position) {
    struct tcp_trouble *trouble = step->other->trouble;
    if (position < trouble->settled_from)
        return;
    trouble->settled_from = INT64_MAX;
    note_held(step, trouble, position);
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        struct judged *judged = &trouble->judged[i];
        if (judged->settled)
            continue;
        if (judged->end > position) {
            trouble->settled_from = sooner_of(trouble->settled_from, judged->end);
            continue;
        }
        judged->settled = true;
        trouble->unsettled--;
        int echo = echo_of(step, judged);
        judged->needed = judged->first_older && echo > 0 && !is_reported_twice(step, judged);
        if (!judged->upstream && echo < 0)
            judged_prove_spurious(step, trouble, judged, WORD_TIMESTAMPS);
        else if (!judged->upstream && echo <= 0 && is_answer_too_soon(step, judged))
            take_answer_too_soon(step, trouble, judged);
        else if (is_skipped(step, judged))
            judged_leave_open(step, trouble, judged);
        note_delivered(step, trouble, judged);
    }
    step->other->unsettled = trouble->unsettled;
}
