/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence is asked in this order, the strongest first: what the receiver reports (DSACK),
 * timestamps, IP identifications, acknowledgments, time against the round trip. */
#include "verdict/retransmission.h"

#include "verdict/duplicate.h"
#include "verdict/mirror_duplicate.h"
#include "verdict/retransmit_cause.h"
#include "verdict/stall.h"

#define FIRST_TIMEOUT_MOST_NS INT64_C(3000000000) /* before RFC 6298 */
#define CAPTURE_REORDER_NS                                                                         \
    1000000                /* several queues of one card store packets out of order so much */
#define ID_NEAR_MOST  64   /* of two packets of one direction */
#define JUMP_MOST     64   /* numbers that a host gave out while a connection was still */
#define JUMP_OWN_MOST 4096 /* where it gives each connection its own */

/* --- sent again ----------------------------------------------------------------------------- */

/* Whether what the sender sends now, it sends knowing what passed here at `time_ns`. */
static bool sender_heard(const struct step *step, int64_t time_ns) {
    int64_t there_and_back = step_sender_rtt(step);
    return step->seen->time_known &&
           step->seen->time_ns - time_ns >
               (there_and_back < 0 ? step_timeout_ns(step) : there_and_back);
}

/* One that was already acknowledged here, so long ago that the sender may have known. */
static bool is_needless(const struct step *step, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    if (!stream->acked_known || end > stream->acked)
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (stream->past[i].time_ns && end <= stream->past[i].acked &&
            sender_heard(step, stream->past[i].time_ns))
            return true;
    return sender_heard(step, stream->advanced_ns);
}

void judge_note_acked(struct step *step) {
    struct tcp_stream *other = step->other;
    int64_t rtt = step->flow->handshake_rtt_ns;
    int64_t apart = rtt < 0 ? TIMEOUT_LEAST_NS : rtt;
    if (!other->acked_known || other->advanced_ns - other->past[1].time_ns < apart)
        return;
    other->past[0] = other->past[1];
    other->past[1].acked = other->acked;
    other->past[1].time_ns = other->advanced_ns;
    other->past_frames[0] = other->past_frames[1];
    other->past_frames[1] = other->advanced_frame;
}

/* Where it was lost: downstream takes acknowledgments to know. */
static enum word place_of(const struct step *step, int64_t start, bool lost, bool upstream) {
    if (!lost || (!upstream && start >= 0 && !step->stream->acked_known))
        return WORD_NONE;
    return upstream ? WORD_UPSTREAM : WORD_DOWNSTREAM;
}

/* Whether the receiver had it before this sending came by, as far as the capture's order can be
 * believed. */
static bool was_there(const struct step *step, bool acked, bool sacked) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    int64_t told_ns = acked ? step->stream->advanced_ns : trouble->news_ns;
    bool in_order =
        !trouble->capture_reordered || step->seen->time_ns - told_ns > CAPTURE_REORDER_NS;
    return (acked || sacked) && in_order;
}

/* Whether its timestamp tells it from the first sending. */
static bool is_first_older(const struct step *step, int64_t start) {
    const struct segment *first = segment_ring_find(&step->stream->unacked, start);
    return first && step_timestamps(step) &&
           (int32_t)(step->tcp->timestamp_value - first->tsval) > 0;
}

static void tell_again(struct step *step, int64_t start, int64_t end, const struct cause *cause,
                       bool upstream, const char *detail) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    bool sacked = cause_is_held(trouble, start, end);
    bool acked = step->stream->acked_known && end <= step->stream->acked;
    bool needless = is_needless(step, end) || was_there(step, acked, sacked);
    bool lost = !acked && !sacked;
    struct tcp_event event = {.kind = cause->kind,
                              .evidence = needless ? WORD_ACKNOWLEDGED : cause->evidence,
                              .spurious = needless ? SPURIOUS_YES : SPURIOUS_NO,
                              .bytes = start < 0 ? 0 : end - start,
                              .related_frame = cause->frame,
                              .detail = detail ? detail : cause->detail};
    event.place = place_of(step, start, lost, upstream);
    cause_count(step, trouble, cause, start);
    step->effect.lost += lost;
    trouble->spurious += needless;
    trouble->lost_upstream += lost && upstream;
    trouble->lost_downstream += lost && !upstream;
    judged_remember(step, trouble,
                    (struct judged){.start = start,
                                    .end = end,
                                    .event = step_tell(step, &event),
                                    .kind = (uint16_t)cause->kind,
                                    .upstream = upstream,
                                    .lost = lost,
                                    .first_older = is_first_older(step, start),
                                    .spurious = needless,
                                    .settled = needless || !lost});
}

/* Whether the segment left its sender before `judged` did: the evidence, or WORD_NONE. */
static enum word evidence_of_age(const struct step *step, bool timestamps, uint32_t tsval,
                                 uint16_t ip_id, int *order) {
    *order = 0;
    if (timestamps && step_timestamps(step))
        *order = (int32_t)(step->tcp->timestamp_value - tsval);
    if (*order)
        return WORD_TIMESTAMPS;
    if (step_ids_rise(step->stream) && ip_id && step->seen->ip_id)
        *order = (int16_t)(step->seen->ip_id - ip_id);
    return *order ? WORD_IP_ID : WORD_NONE;
}

/* The resend of these bytes that filled a gap, NULL without one. */
static struct judged *filled_by(struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!judged->copy && judged->upstream && judged_overlaps(judged, start, end))
            return judged;
    }
    return NULL;
}

/* Whether its timestamp is the one that the bytes were sent with before, though the clock has moved
 * on since: what is sent again has a new one. */
static bool has_old_timestamp(const struct step *step, const struct segment *first,
                              struct tcp_trouble *trouble, int64_t start, int64_t end) {
    if (!step_timestamps(step))
        return false;
    uint32_t tsval = step->tcp->timestamp_value;
    if ((int32_t)(tsval - step->stream->last_tsval) >= 0)
        return false;
    if (first && first->tsval == tsval)
        return true;
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        const struct judged *judged = judged_at(trouble, i);
        if (judged->timestamps && judged->tsval == tsval && judged_overlaps(judged, start, end))
            return true;
    }
    return false;
}

/* Whether the segment is one that passed here before, told by its identification. */
static bool is_known_sending(const struct step *step, const struct segment *first,
                             struct tcp_trouble *trouble, int64_t start, int64_t end) {
    uint16_t id = step->seen->ip_id;
    if (!id || !step_ids_rise(step->stream))
        return false;
    if (first && first->ip_id == id)
        return true;
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        const struct judged *judged = judged_at(trouble, i);
        if (judged->ip_id == id && judged_overlaps(judged, start, end))
            return true;
    }
    return false;
}

/* Sent before what was sent in its place: it was not lost on the way to here, only slow. */
static bool is_late_original(struct step *step, int64_t start, int64_t end) {
    struct tcp_trouble *trouble = step->stream->trouble;
    struct judged *fill = trouble ? filled_by(trouble, start, end) : NULL;
    int order;
    if (!fill || start < 0)
        return false;
    enum word evidence = evidence_of_age(step, fill->timestamps, fill->tsval, fill->ip_id, &order);
    if (order >= 0)
        return false;
    trouble->out_of_order++;
    step_tell(step, &(struct tcp_event){.kind = WORD_OUT_OF_ORDER,
                                        .evidence = evidence,
                                        .bytes = end - start,
                                        .related_frame = fill->frame,
                                        .detail = "after what was sent in its place"});
    judged_take_loss_back(step, trouble, fill, evidence);
    return true;
}

/* Whether no sender could be so fast: nothing asked for the segment, and no timer can have expired.
 */
static bool is_mirrored(const struct step *step, const struct segment *first, int64_t start,
                        int64_t end) {
    return first && step->seen->time_known && step->other->based && first->end == end &&
           first->end - first->length == start && !step_asked(step) &&
           step->seen->time_ns - first->time_ns <= HASTE_GAP_NS &&
           (!step_timestamps(step) || step->tcp->timestamp_value == first->tsval);
}

/* A copy that came too late for the marks of tcp_copy. */
static bool is_late_copy(struct step *step, const struct segment *first, int64_t start,
                         int64_t end) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    if (start < 0)
        return false;
    bool hasty = is_mirrored(step, first, start, end);
    if (!is_known_sending(step, first, trouble, start, end) &&
        !has_old_timestamp(step, first, trouble, start, end) &&
        (!hasty || first->ip_id != step->seen->ip_id))
        return false;
    judge_copy(step, start, end,
               &(struct copy){hasty, mirror_doubt(step, start, end), first ? first->frame : 0});
    return true;
}

struct moment {
    int64_t ns;
    uint32_t frame; /* 0: not known */
};

static struct moment sooner_moment(struct moment a, struct moment b) {
    return a.ns <= b.ns ? a : b;
}

/* When the bytes were first sent; of what is acknowledged that is kept no longer, but not later
 * than any data, nor than an acknowledgment of them. Where neither came by, now. */
static struct moment first_sent(const struct step *step, const struct segment *first, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    struct moment sent = {step->seen->time_ns, 0};
    if (first)
        return (struct moment){first->time_ns, first->frame};
    if (stream->acked_known)
        sent = sooner_moment(sent, (struct moment){stream->advanced_ns, stream->advanced_frame});
    if (stream->last_data_ns) /* a SYN or FIN may be all there is */
        sent = sooner_moment(sent, (struct moment){stream->last_data_ns, 0});
    for (unsigned i = 0; i < 2; i++)
        if (stream->past[i].time_ns && stream->past[i].acked >= end)
            sent = sooner_moment(sent,
                                 (struct moment){stream->past[i].time_ns, stream->past_frames[i]});
    return sent;
}

APART bool judge_again(struct step *step, int64_t start, int64_t end, const char *detail) {
    const struct tcp_stream *stream = step->stream;
    const struct segment *first = segment_ring_find(&stream->unacked, start);
    struct judged *again = judged_last_again(stream->trouble, start, end);
    struct moment sent = first_sent(step, first, end);
    struct resend resend = {.start = start,
                            .end = end,
                            .sent_ns = sent.ns,
                            .sent_frame = first ? first->frame : 0,
                            .since_frame = sent.frame};
    if (is_late_original(step, start, end))
        return true;
    if (is_late_copy(step, first, start, end))
        return false;
    if (again) {
        resend.again = true;
        resend.sent_ns = again->time_ns;
        resend.sent_frame = resend.since_frame = again->frame;
    }
    struct cause cause = cause_of(step, &resend);
    tell_again(step, start, end, &cause, false, detail);
    return true;
}

/* --- gaps that are filled ------------------------------------------------------------------ */

enum order { ORDER_UNKNOWN, ORDER_LATE, ORDER_AGAIN };

/* Without the handshake and without samples of both halves the round trip is longer than known. */
static bool path_rtt_is_whole(const struct step *step) {
    return step->flow->handshake_rtt_ns >= 0 || (step->stream->rtt.count && step->other->rtt.count);
}

/* Whether the sender had any cause to send the bytes again. */
static bool could_know(const struct step *step, const struct gap *gap, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    const struct tcp_trouble *trouble = tcp_trouble_of(stream);
    bool asked = cause_is_suspected(step, end) || trouble->news_ns >= gap->opened_ns;
    bool mends = (trouble->recovery_frame && gap->start < trouble->recovery_point) ||
                 (trouble->timeout_frame && gap->start < trouble->timeout_point);
    return !stream->acked_known || asked || mends ||
           step->seen->time_ns - gap->opened_ns >=
               step_timeout_ns(step) - step_timeout_ns(step) / 10;
}

/* By time: what comes so soon that no sender can have known of a loss was late; what comes a round
 * trip after was sent again. */
static enum order order_by_time(const struct step *step, const struct gap *gap, int64_t end) {
    int64_t rtt = step_path_rtt(step), waited = step->seen->time_ns - gap->opened_ns;
    if (rtt < 0 || !step->seen->time_known)
        return ORDER_UNKNOWN;
    if (waited >= rtt - rtt / 20)
        return path_rtt_is_whole(step) && could_know(step, gap, end) ? ORDER_AGAIN : ORDER_UNKNOWN;
    bool reported = cause_is_reported_lost(step, step->stream->acked, end) ||
                    step->other->repeats >= DUPLICATE_ACKS;
    return waited <= rtt / 4 && !reported ? ORDER_LATE : ORDER_UNKNOWN;
}

static enum order order_of(const struct step *step, const struct gap *gap, int64_t end,
                           enum word *evidence) {
    int age;
    *evidence = evidence_of_age(step, gap->timestamps, gap->tsval, gap->ip_id, &age);
    if (age)
        return age < 0 ? ORDER_LATE : ORDER_AGAIN;
    *evidence = WORD_TIME;
    return order_by_time(step, gap, end);
}

/* The receiver had acknowledged it: the capture stored it late, or it is sent again needlessly. */
static bool judge_acked_fill(struct step *step, int64_t start, int64_t end, const struct gap *gap) {
    enum word evidence;
    bool soon = step->seen->time_ns - gap->acked_ns <= CAPTURE_REORDER_NS;
    int age;
    evidence = evidence_of_age(step, gap->timestamps, gap->tsval, gap->ip_id, &age);
    if (age < 0 || (!age && soon)) {
        step_trouble(step, step->stream)->capture_reordered++;
        step_amend(step, gap->event,
                   &(struct tcp_event){.kind = WORD_CAPTURED_OUT_OF_ORDER,
                                       .place = WORD_CAPTURE,
                                       .evidence = age ? evidence : WORD_TIME});
        return false;
    }
    struct resend resend = {.start = start,
                            .end = end,
                            .sent_ns = gap->opened_ns,
                            .sent_frame = gap->opener_frame,
                            .since_frame = gap->opener_frame};
    struct cause cause = cause_of(step, &resend);
    tell_again(step, start, end, &cause, false, NULL);
    return true;
}

/* Reordered, or nothing tells. */
static void tell_not_again(struct step *step, int64_t bytes, bool late, enum word evidence,
                           uint32_t frame) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->out_of_order += late;
    trouble->ambiguous += !late;
    step_tell(step, &(struct tcp_event){.kind = late ? WORD_OUT_OF_ORDER : WORD_AMBIGUOUS,
                                        .evidence = late ? evidence : WORD_NONE,
                                        .place = late ? WORD_UPSTREAM : WORD_NONE,
                                        .bytes = bytes,
                                        .related_frame = frame});
}

APART bool judge_fill(struct step *step, int64_t start, int64_t end, const struct gap_fill *fill) {
    const struct gap *gap = &fill->gap;
    enum word evidence;
    if (gap->acked)
        return judge_acked_fill(step, start, end, gap);
    enum order order = order_of(step, gap, end, &evidence);
    if (order == ORDER_AGAIN) {
        struct resend resend = {.start = start,
                                .end = end,
                                .sent_ns = gap->opened_ns,
                                .sent_frame = gap->opener_frame,
                                .since_frame = gap->opener_frame};
        struct cause cause = cause_of(step, &resend);
        cause.evidence = evidence;
        tell_again(step, start, end, &cause, true, NULL);
        return true;
    }
    tell_not_again(step, fill->bytes, order == ORDER_LATE, evidence, gap->opener_frame);
    return false;
}

/* Whether it left its sender before the first segment that the capture holds. Of a few packets the
 * identifications need not have shown that they rise: that they are near is enough. */
static enum word evidence_against_first(const struct step *step, const struct segment *first,
                                        int *order) {
    enum word evidence = evidence_of_age(step, first->tsval, first->tsval, first->ip_id, order);
    if (*order || !first->ip_id || !step->seen->ip_id || step_ids_tell_nothing(step->stream))
        return evidence;
    *order = (int16_t)(step->seen->ip_id - first->ip_id);
    if (*order < -ID_NEAR_MOST || *order > ID_NEAR_MOST)
        *order = 0;
    return *order ? WORD_IP_ID : WORD_NONE;
}

APART void judge_from_before(struct step *step, int64_t start, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    const struct segment *first = segment_ring_find(&stream->unacked, stream->base);
    if (!step->seen->time_known || (stream->acked_known && start < stream->acked))
        return;
    int age = 0;
    enum word evidence = first ? evidence_against_first(step, first, &age) : WORD_NONE;
    struct resend resend = {.start = start, .end = end, .sent_ns = step->seen->time_ns};
    struct cause cause = {.kind = WORD_NONE};
    if (age >= 0 && stream->acked_known)
        cause = cause_in_acks(step, &resend);
    if (age > 0 && cause.kind == WORD_NONE)
        cause = (struct cause){.kind = WORD_RETRANSMISSION, .evidence = evidence};
    if (cause.kind == WORD_NONE) {
        if (first)
            tell_not_again(step, end - start, age < 0, evidence, first->frame);
        return;
    }
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    cause_count(step, trouble, &cause, start);
    struct tcp_event event = {.kind = cause.kind,
                              .evidence = cause.evidence,
                              .spurious = SPURIOUS_NO,
                              .bytes = end - start,
                              .detail = "first sent before the capture began"};
    judged_remember(step, trouble,
                    (struct judged){.start = start,
                                    .end = end,
                                    .event = step_tell(step, &event),
                                    .kind = (uint16_t)cause.kind});
}

/* --- copies --------------------------------------------------------------------------------- */

/* A pure acknowledgment has no place in the stream. */
#define NOWHERE INT64_C(-2)

APART void judge_copy(struct step *step, int64_t start, int64_t end, const struct copy *copy) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    bool mirror = copy->mirror, data = start >= 0 && end > start;
    if (!trouble->mirror_duplicates)
        trouble->packets_uncopied = direction_of(step->stream)->packets - 1;
    struct tcp_event event = {.kind = mirror ? WORD_MIRROR_DUPLICATE : WORD_NETWORK_DUPLICATE,
                              .place = mirror ? WORD_CAPTURE : WORD_NONE,
                              .evidence = step->seen->ip_id ? WORD_IP_ID : WORD_SIGNATURE,
                              .bytes = step->seen->payload_bytes,
                              .related_frame = copy->frame};
    uint64_t row = step_tell(step, &event);
    trouble->mirror_duplicates += mirror;
    step->effect.mirrored |= mirror;
    trouble->network_duplicates += !mirror;
    trouble->mirror_ip_bytes += mirror ? step->seen->ip_bytes : 0;
    bool doubtful = mirror && copy->doubt != COPY_OF_TWO_PORTS;
    if (!data && !(doubtful && trouble->mirror_duplicates <= JUDGED_MOST))
        return;
    judged_remember(step, trouble,
                    (struct judged){.start = data ? start : NOWHERE,
                                    .end = data ? end : NOWHERE,
                                    .event = row,
                                    .kind = (uint16_t)event.kind,
                                    .copy = true,
                                    .settled = true,
                                    .doubt = (uint8_t)copy->doubt,
                                    .capture = (uint16_t)step->seen->capture});
}

/* --- pauses --------------------------------------------------------------------------------- */

/* How long a sender waits at most until it has sent `times` in vain. */
static int64_t timers_ns(const struct step *step, int times) {
    int64_t first = later_of(step_timeout_ns(step), FIRST_TIMEOUT_MOST_NS);
    return first * ((1 << (times < 6 ? times : 6)) - 1);
}

/* Beside the receiver, the last segment of a burst lost before this point and sent again after a
 * timeout comes in order: only its number among the sender's packets, and the pause, give it away.
 */
/* Of the sender's packets, how many after the last one; 0: not known. */
static int16_t id_jump(const struct step *step) {
    const struct tcp_stream *stream = step->stream;
    bool known = step_ids_count(stream) && step->seen->ip_id && stream->last_ip_id;
    return known ? (int16_t)(step->seen->ip_id - stream->last_ip_id) : 0;
}

/* Whether so many numbers can be those of packets that were lost. Other flows may take some of a
 * host's; a whole window of lost data takes many, where the numbers are the connection's own. */
static bool is_loss_jump(const struct tcp_stream *stream, int16_t jump) {
    return jump > 1 && jump <= (step_ids_own(stream) ? JUMP_OWN_MOST : JUMP_MOST);
}

/* What the sender goes back for behind it is the timeout's too. */
static void note_suspected(struct step *step, int64_t length, int64_t pause) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->suspected_timeouts++;
    trouble->timeout_ns = sum_of(trouble->timeout_ns, pause);
    stall_note(step, trouble, pause, 0);
    trouble->timeout_frame = step_frame(step);
    trouble->timeout_undone = false;
    trouble->timeout_point = trouble->suspected_point = step->stream->highest + length;
    trouble->recovery_frame = 0;
    trouble->recovery_point = 0;
}

APART void judge_long_pause(struct step *step, int64_t pause, int64_t length, bool fin) {
    const struct tcp_stream *stream = step->stream;
    if ((!length && !fin) || !stream->data_sent_last || !step->seen->time_known ||
        pause < step_timeout_ns(step))
        return;
    int16_t jump = id_jump(step);
    if (jump == 1) /* it had nothing to send */
        return;
    bool suspected = is_loss_jump(stream, jump) && pause <= timers_ns(step, jump - 1);
    if (suspected)
        note_suspected(step, length, pause);
    step_tell(step, &(struct tcp_event){.kind = suspected ? WORD_SUSPECTED_TIMEOUT : WORD_IDLE_GAP,
                                        .place = suspected ? WORD_UPSTREAM : WORD_NONE,
                                        .evidence = suspected ? WORD_IP_ID : WORD_NONE,
                                        .bytes = length});
}
