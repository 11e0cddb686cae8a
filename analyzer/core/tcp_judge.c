/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence is asked in this order, the strongest first: what the receiver reports (DSACK),
 * timestamps, IP identifications, acknowledgments, time against the round trip. */
#include "tcp_judge.h"

#include "tcp_copy.h"

#include <string.h>

#define TIMEOUT_LEAST_NS      INT64_C(200000000) /* Linux; RFC 6298 says 1 s */
#define TAIL_PROBE_LEAST_NS   INT64_C(10000000) /* RFC 8985 section 7.2, as Linux sets its timers */
#define NEWS_FRESH_NS         INT64_C(50000000) /* beyond a round trip: what a sender may dawdle */
#define FIRST_TIMEOUT_MOST_NS INT64_C(3000000000) /* before RFC 6298 */
#define LATE_STORED_NS        1000000 /* several queues of one card store packets out of order so much */
#define SENDER_SLACK_NS       1000000 /* what is on its way when an acknowledgment passes */
#define DUPLICATE_ACKS        3u      /* RFC 5681 section 3.2 */
#define SEGMENT_USUAL         1460

/* --- what is known -------------------------------------------------------------------------- */

struct tcp_trouble *step_trouble(const struct step *step, struct tcp_stream *stream) {
    if (!stream->trouble) {
        stream->trouble = allowance_take(step->allowance, sizeof *stream->trouble);
        if (stream->trouble)
            memset(stream->trouble, 0, sizeof *stream->trouble);
    }
    stream->unjudged |= !stream->trouble;
    return stream->trouble ? stream->trouble : step->listener->spare;
}

int64_t step_path_rtt(const struct step *step) {
    const struct sample_set *down = &step->stream->rtt, *up = &step->other->rtt;
    int64_t both = -1;
    if (down->count)
        both = down->least + (up->count ? up->least : 0);
    else if (up->count)
        both = up->least;
    return step->flow->handshake_rtt_ns >= 0 ? step->flow->handshake_rtt_ns : both;
}

/* From this point to the sender and back, -1 when not known. */
static int64_t sender_rtt(const struct step *step) {
    const struct sample_set *down = &step->stream->rtt, *up = &step->other->rtt;
    if (up->count)
        return up->least;
    if (step->flow->handshake_rtt_ns < 0)
        return -1;
    int64_t rest = step->flow->handshake_rtt_ns - (down->count ? down->least : 0);
    return rest > 0 ? rest : 0;
}

static int64_t timeout_ns(const struct step *step) {
    int64_t rtt = step_path_rtt(step);
    int64_t timeout = rtt < 0 ? 0 : rtt + 4 * step->stream->rttvar_ns;
    return timeout > TIMEOUT_LEAST_NS ? timeout : TIMEOUT_LEAST_NS;
}

static int64_t later_of(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static struct judged *judged_at(struct tcp_trouble *trouble, uint32_t newest_first) {
    uint32_t count = trouble->judged_count;
    return &trouble->judged[(trouble->judged_next + 2 * count - 1 - newest_first) % count];
}

static int64_t sooner_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool overlaps(const struct judged *judged, int64_t start, int64_t end) {
    return judged->start < end && start < judged->end;
}

/* The last time that these bytes were sent again, NULL when they were not. */
static struct judged *last_again(struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; trouble && i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!judged->copy && overlaps(judged, start, end))
            return judged;
    }
    return NULL;
}

/* --- what is said --------------------------------------------------------------------------- */

static struct judged *judged_place(const struct step *step, struct tcp_trouble *trouble) {
    bool full = trouble->judged_count == trouble->judged_room;
    if (trouble == step->listener->spare)
        return NULL;
    if (full && allowance_grow(step->allowance, (void **)&trouble->judged, &trouble->judged_room,
                               sizeof *trouble->judged, 4, JUDGED_MOST)) {
        trouble->judged_next = trouble->judged_count;
        full = false;
    }
    if (!trouble->judged_room)
        return NULL;
    if (!full)
        trouble->judged_count++;
    uint32_t place = trouble->judged_next % trouble->judged_room;
    trouble->judged_next = (place + 1) % trouble->judged_room;
    if (full && !trouble->judged[place].settled)
        trouble->unsettled--;
    return &trouble->judged[place];
}

static void remember(const struct step *step, struct tcp_trouble *trouble, struct judged judged) {
    struct judged *place = judged_place(step, trouble);
    if (!place)
        return;
    judged.time_ns = step->seen->time_ns;
    judged.frame = step_frame(step);
    judged.ip_id = step->seen->ip_id;
    judged.timestamps = step_timestamps(step);
    judged.tsval = judged.timestamps ? step->tcp->timestamp_value : 0;
    if (!judged.settled && (!trouble->unsettled++ || judged.end < trouble->settled_from))
        trouble->settled_from = judged.end;
    step->stream->unsettled = trouble->unsettled;
    *place = judged;
}

/* The loss that it was taken for was none here. */
static void take_loss_back(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence) {
    if (judged->lost && judged->upstream)
        trouble->lost_upstream--;
    else if (judged->lost)
        trouble->lost_downstream--;
    judged->lost = false;
    step->listener->amend(
        step->listener->context, judged->event,
        &(struct tcp_event){.kind = judged->kind,
                            .evidence = evidence,
                            .spurious = judged->spurious ? SPURIOUS_YES : SPURIOUS_NO});
}

static void prove_spurious(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence) {
    if (judged->spurious && evidence != WORD_DSACK)
        return;
    trouble->spurious += !judged->spurious;
    judged->spurious = true;
    take_loss_back(step, trouble, judged, evidence);
}

/* --- why something was sent again ----------------------------------------------------------- */

struct cause {
    enum word kind, evidence;
    uint32_t frame; /* what it answers or follows */
    const char *detail;
};

/* What is being sent again. */
struct resend {
    int64_t start, end;
    int64_t sent_ns; /* when it was last sent, or its hole was opened */
    bool again;      /* that was not the first time */
    uint32_t sent_frame;
};

static int64_t sacked_above(const struct tcp_trouble *trouble, int64_t position) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < trouble->sacked_count; i++) {
        int64_t from = later_of(trouble->sacked[i].start, position);
        if (trouble->sacked[i].end > from)
            bytes += trouble->sacked[i].end - from;
    }
    return bytes;
}

static int64_t segment_size(const struct step *step) {
    int64_t most = step->flow->directions[step->direction].segment_max;
    int64_t announced = step->other->mss ? step->other->mss : SEGMENT_USUAL;
    return most && most < announced ? most : announced;
}

/* RFC 5681: three duplicate ACKs; RFC 6675: more than two segments reported above it. */
static bool is_reported_lost(const struct step *step, int64_t start, int64_t end) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    if (step->other->repeats >= DUPLICATE_ACKS && start == step->stream->acked)
        return true;
    return sacked_above(trouble, end) > 2 * segment_size(step);
}

static bool is_suspected(const struct step *step, int64_t end) {
    return step->other->repeats || sacked_above(tcp_trouble_of(step->stream), end);
}

/* How long the sender had heard nothing that would restart its timers. */
static int64_t silence_ns(const struct step *step, const struct resend *resend) {
    int64_t since = resend->sent_ns;
    if (step->stream->acked_known)
        since = later_of(since, step->stream->advanced_ns);
    since = later_of(since, tcp_trouble_of(step->other)->opened_ns);
    return step->seen->time_ns - since;
}

/* RFC 8985 section 7: the probe takes SACK. */
static bool may_probe(const struct step *step) {
    const struct tcp_stream *stream = step->stream, *other = step->other;
    return !stream->syn_seen || !other->syn_seen ||
           (stream->sack_permitted && other->sack_permitted);
}

/* The FIN that goes with the data counts. */
static bool is_last(const struct step *step, const struct resend *resend) {
    int64_t highest = step->stream->highest;
    bool fin = step->tcp && step->tcp->flags & TCP_FIN;
    return resend->end == highest || (fin && resend->end + 1 == highest);
}

static bool is_tail_probe(const struct step *step, const struct resend *resend) {
    int64_t rtt = step_path_rtt(step), silence = silence_ns(step, resend);
    int64_t expected = later_of(2 * rtt, TAIL_PROBE_LEAST_NS);
    if (rtt < 0 || resend->start < 0 || !is_last(step, resend) || !may_probe(step) ||
        is_suspected(step, resend->end) ||
        last_again(step->stream->trouble, resend->start, resend->end))
        return false;
    /* Where both timers are near, the nearer. */
    int64_t timeout = rtt + later_of(TIMEOUT_LEAST_NS, 4 * step->stream->rttvar_ns);
    if (timeout > expected && silence > (timeout + expected) / 2)
        return false;
    return silence >= expected - expected / 4 && silence <= expected + expected / 2;
}

static bool is_timeout(const struct step *step, const struct resend *resend) {
    int64_t timeout = timeout_ns(step);
    bool lowest = !step->stream->acked_known || resend->start <= step->stream->acked;
    return lowest && silence_ns(step, resend) >= timeout - timeout / 10;
}

static struct cause timer_cause(const struct step *step, const struct resend *resend) {
    if (is_tail_probe(step, resend))
        return (struct cause){WORD_PROBE_RETRANSMISSION, WORD_TIME, resend->sent_frame, NULL};
    if (is_timeout(step, resend))
        return (struct cause){WORD_TIMEOUT_RETRANSMISSION, WORD_TIME, resend->sent_frame, NULL};
    return (struct cause){WORD_RETRANSMISSION, WORD_NONE, resend->sent_frame, NULL};
}

/* Whether the acknowledgments gave cause just now. */
static bool news_is_fresh(const struct step *step) {
    int64_t rtt = step_path_rtt(step);
    int64_t age = step->seen->time_ns - tcp_trouble_of(step->stream)->news_ns;
    /* RACK waits for a quarter of a round trip more (RFC 8985 section 6.2). */
    return age <= (rtt < 0 ? 0 : rtt + rtt / 4) + NEWS_FRESH_NS;
}

/* Up to what was the highest when the timer expired, the sender goes on as it began, until it knows
 * of an acknowledgment of all that. */
static bool goes_back(const struct step *step, const struct resend *resend) {
    int64_t point = tcp_trouble_of(step->stream)->timeout_point, delay = sender_rtt(step);
    bool knows = step->stream->acked >= point && step->seen->time_ns - step->stream->advanced_ns >
                                                     (delay < 0 ? 0 : delay) + SENDER_SLACK_NS;
    return tcp_trouble_of(step->stream)->timeouts && resend->start < point && !knows;
}

static struct cause acks_cause(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    int64_t acked = step->stream->acked, rtt = step_path_rtt(step);
    if (goes_back(step, resend))
        return (struct cause){WORD_TIMEOUT_RETRANSMISSION, WORD_TIME, trouble->timeout_frame,
                              "go-back-N after a timeout"};
    if (is_reported_lost(step, resend->start, resend->end))
        return (struct cause){WORD_FAST_RETRANSMISSION, WORD_ACKS, resend->sent_frame, NULL};
    if (trouble->recovery_frame && resend->start < trouble->recovery_point &&
        acked < trouble->recovery_point)
        return (struct cause){WORD_FAST_RETRANSMISSION, WORD_ACKS, trouble->recovery_frame,
                              "in the recovery that an earlier one began"};
    if (is_suspected(step, resend->end) && step->seen->time_ns - resend->sent_ns >= rtt)
        return (struct cause){WORD_FAST_RETRANSMISSION, WORD_ACKS, resend->sent_frame,
                              "RACK: sent a round trip ago, and later data was reported"};
    return (struct cause){WORD_NONE, WORD_NONE, 0, NULL};
}

static struct cause cause_of(const struct step *step, const struct resend *resend) {
    struct cause none = {WORD_RETRANSMISSION, WORD_NONE, resend->sent_frame, NULL};
    if (!step->seen->time_known || (!step->stream->acked_known && resend->start >= 0))
        return none;
    struct cause acks = {WORD_NONE, WORD_NONE, 0, NULL};
    /* What is lost once more is sent again after a round trip or by the timer, whatever is heard of
     * later data in between. */
    bool fresh = news_is_fresh(step) && !resend->again;
    if (resend->start >= 0 && (fresh || !is_timeout(step, resend)))
        acks = acks_cause(step, resend);
    return acks.kind == WORD_NONE ? timer_cause(step, resend) : acks;
}

static void count_cause(struct step *step, struct tcp_trouble *trouble, const struct cause *cause) {
    int64_t highest = step->stream->highest;
    bool timeout = cause->kind == WORD_TIMEOUT_RETRANSMISSION;
    bool fast = cause->kind == WORD_FAST_RETRANSMISSION;
    trouble->retransmissions++;
    trouble->fast += fast;
    trouble->timeout += timeout;
    trouble->probe += cause->kind == WORD_PROBE_RETRANSMISSION;
    if (timeout && !cause->detail) {
        trouble->timeouts++;
        trouble->timeout_point = highest;
        trouble->timeout_frame = step_frame(step);
        trouble->recovery_point = 0;
        trouble->recovery_frame = 0;
    } else if (fast &&
               (!trouble->recovery_frame || step->stream->acked >= trouble->recovery_point)) {
        trouble->recovery_point = highest;
        trouble->recovery_frame = step_frame(step);
    }
}

/* --- sent again ----------------------------------------------------------------------------- */

/* Whether what the sender sends now, it sends knowing what passed here at `time_ns`. */
static bool sender_heard(const struct step *step, int64_t time_ns) {
    int64_t there_and_back = sender_rtt(step);
    return step->seen->time_known &&
           step->seen->time_ns - time_ns > (there_and_back < 0 ? timeout_ns(step) : there_and_back);
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

/* Whether the receiver has reported that it holds them. */
static bool is_sacked(const struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; i < trouble->sacked_count; i++)
        if (trouble->sacked[i].start <= start && end <= trouble->sacked[i].end)
            return start >= 0;
    return false;
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
}

/* Where it was lost: downstream takes acknowledgments to know. */
static enum word place_of(const struct step *step, int64_t start, bool lost, bool upstream) {
    if (!lost || (!upstream && start >= 0 && !step->stream->acked_known))
        return WORD_NONE;
    return upstream ? WORD_UPSTREAM : WORD_DOWNSTREAM;
}

static void tell_again(struct step *step, int64_t start, int64_t end, const struct cause *cause,
                       bool upstream, const char *detail) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    bool sacked = is_sacked(trouble, start, end);
    bool acked = step->stream->acked_known && end <= step->stream->acked;
    bool needless = is_needless(step, end) || (sacked && sender_heard(step, trouble->news_ns));
    bool lost = !acked && !sacked;
    struct tcp_event event = {.kind = cause->kind,
                              .evidence = needless ? WORD_ACKNOWLEDGED : cause->evidence,
                              .spurious = needless ? SPURIOUS_YES : SPURIOUS_NO,
                              .bytes = start < 0 ? 0 : end - start,
                              .related_frame = cause->frame,
                              .detail = detail ? detail : cause->detail};
    event.place = place_of(step, start, lost, upstream);
    count_cause(step, trouble, cause);
    step->effect->lost += lost;
    trouble->spurious += needless;
    trouble->lost_upstream += lost && upstream;
    trouble->lost_downstream += lost && !upstream;
    remember(step, trouble,
             (struct judged){.start = start,
                             .end = end,
                             .event = step_tell(step, &event),
                             .kind = (uint16_t)cause->kind,
                             .upstream = upstream,
                             .lost = lost,
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

/* The resend of these bytes that filled a hole, NULL without one. */
static struct judged *filled_by(struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!judged->copy && judged->upstream && overlaps(judged, start, end))
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
        if (judged->timestamps && judged->tsval == tsval && overlaps(judged, start, end))
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
        if (judged->ip_id == id && overlaps(judged, start, end))
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
    take_loss_back(step, trouble, fill, evidence);
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
    judge_copy(step, start, end, hasty, first ? first->frame : 0);
    return true;
}

bool judge_again(struct step *step, int64_t start, int64_t end, const char *detail) {
    const struct tcp_stream *stream = step->stream;
    const struct segment *first = segment_ring_find(&stream->unacked, start);
    struct judged *again = last_again(stream->trouble, start, end);
    struct resend resend = {start, end, first ? first->time_ns : stream->advanced_ns, false,
                            first ? first->frame : 0};
    if (is_late_original(step, start, end))
        return true;
    if (is_late_copy(step, first, start, end))
        return false;
    if (again) {
        resend.again = true;
        resend.sent_ns = again->time_ns;
        resend.sent_frame = again->frame;
    }
    struct cause cause = cause_of(step, &resend);
    tell_again(step, start, end, &cause, false, detail);
    return true;
}

/* --- holes that are filled ------------------------------------------------------------------ */

enum order { ORDER_UNKNOWN, ORDER_LATE, ORDER_AGAIN };

/* Without the handshake and without samples of both halves the round trip is longer than known. */
static bool path_rtt_is_whole(const struct step *step) {
    return step->flow->handshake_rtt_ns >= 0 || (step->stream->rtt.count && step->other->rtt.count);
}

/* Whether the sender had any cause to send the bytes again. */
static bool could_know(const struct step *step, const struct hole *hole, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    const struct tcp_trouble *trouble = tcp_trouble_of(stream);
    bool asked = is_suspected(step, end) || trouble->news_ns >= hole->opened_ns;
    bool mends = (trouble->recovery_frame && hole->start < trouble->recovery_point) ||
                 (trouble->timeouts && hole->start < trouble->timeout_point);
    return !stream->acked_known || asked || mends ||
           step->seen->time_ns - hole->opened_ns >= timeout_ns(step) - timeout_ns(step) / 10;
}

/* By time: what comes so soon that no sender can have known of a loss was late; what comes a round
 * trip after was sent again. */
static enum order order_by_time(const struct step *step, const struct hole *hole, int64_t end) {
    int64_t rtt = step_path_rtt(step), waited = step->seen->time_ns - hole->opened_ns;
    if (rtt < 0 || !step->seen->time_known)
        return ORDER_UNKNOWN;
    if (waited >= rtt - rtt / 20)
        return path_rtt_is_whole(step) && could_know(step, hole, end) ? ORDER_AGAIN : ORDER_UNKNOWN;
    bool reported =
        is_reported_lost(step, step->stream->acked, end) || step->other->repeats >= DUPLICATE_ACKS;
    return waited <= rtt / 4 && !reported ? ORDER_LATE : ORDER_UNKNOWN;
}

static enum order order_of(const struct step *step, const struct hole *hole, int64_t end,
                           enum word *evidence) {
    int age;
    *evidence = evidence_of_age(step, hole->timestamps, hole->tsval, hole->ip_id, &age);
    if (age)
        return age < 0 ? ORDER_LATE : ORDER_AGAIN;
    *evidence = WORD_TIME;
    return order_by_time(step, hole, end);
}

/* The receiver had acknowledged it: the capture stored it late, or it is sent again needlessly. */
static bool judge_acked_fill(struct step *step, int64_t start, int64_t end,
                             const struct hole *hole) {
    enum word evidence;
    bool soon = step->seen->time_ns - hole->acked_ns <= LATE_STORED_NS;
    int age;
    evidence = evidence_of_age(step, hole->timestamps, hole->tsval, hole->ip_id, &age);
    if (age < 0 || (!age && soon)) {
        step_trouble(step, step->stream)->late_stored++;
        step->listener->amend(step->listener->context, hole->event,
                              &(struct tcp_event){.kind = WORD_ACK_BEFORE_DATA,
                                                  .place = WORD_CAPTURE,
                                                  .evidence = age ? evidence : WORD_TIME});
        return false;
    }
    struct resend resend = {start, end, hole->opened_ns, false, hole->opener_frame};
    struct cause cause = cause_of(step, &resend);
    tell_again(step, start, end, &cause, false, NULL);
    return true;
}

bool judge_fill(struct step *step, int64_t start, int64_t end, const struct hole_fill *fill) {
    const struct hole *hole = &fill->hole;
    enum word evidence;
    if (hole->acked)
        return judge_acked_fill(step, start, end, hole);
    enum order order = order_of(step, hole, end, &evidence);
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    if (order == ORDER_AGAIN) {
        struct resend resend = {start, end, hole->opened_ns, false, hole->opener_frame};
        struct cause cause = cause_of(step, &resend);
        cause.evidence = evidence;
        tell_again(step, start, end, &cause, true, NULL);
        return true;
    }
    bool late = order == ORDER_LATE;
    trouble->out_of_order += late;
    trouble->undecided += !late;
    step_tell(step, &(struct tcp_event){.kind = late ? WORD_OUT_OF_ORDER : WORD_UNDECIDED,
                                        .evidence = late ? evidence : WORD_NONE,
                                        .place = late ? WORD_UPSTREAM : WORD_NONE,
                                        .bytes = fill->bytes,
                                        .related_frame = hole->opener_frame});
    return false;
}

void judge_from_before(struct step *step, int64_t start, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    if (!stream->acked_known || start < stream->acked || !step->seen->time_known)
        return;
    struct resend resend = {start, end, step->seen->time_ns, false, 0};
    struct cause cause = acks_cause(step, &resend);
    if (cause.kind != WORD_FAST_RETRANSMISSION)
        return;
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    count_cause(step, trouble, &cause);
    struct tcp_event event = {.kind = cause.kind,
                              .evidence = cause.evidence,
                              .spurious = SPURIOUS_NO,
                              .bytes = end - start,
                              .detail = "first sent before the capture began"};
    remember(step, trouble,
             (struct judged){.start = start,
                             .end = end,
                             .event = step_tell(step, &event),
                             .kind = (uint16_t)cause.kind});
}

/* --- copies --------------------------------------------------------------------------------- */

void judge_copy(struct step *step, int64_t start, int64_t end, bool mirror, uint32_t frame) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    struct tcp_event event = {.kind = mirror ? WORD_MIRROR_DUPLICATE : WORD_NETWORK_DUPLICATE,
                              .place = mirror ? WORD_CAPTURE : WORD_NONE,
                              .evidence = step->seen->ip_id ? WORD_IP_ID : WORD_SIGNATURE,
                              .bytes = step->seen->payload_bytes,
                              .related_frame = frame};
    uint64_t row = step_tell(step, &event);
    trouble->mirror_duplicates += mirror;
    step->effect->mirrored += mirror;
    trouble->network_duplicates += !mirror;
    trouble->mirror_ip_bytes += mirror ? step->seen->ip_bytes : 0;
    if (start < 0 || end <= start)
        return;
    remember(step, trouble,
             (struct judged){.start = start,
                             .end = end,
                             .event = row,
                             .kind = (uint16_t)event.kind,
                             .copy = true,
                             .settled = true});
}

/* A copy that reached the receiver was none of the mirror's. */
static void prove_network_copy(struct step *step, struct tcp_trouble *trouble,
                               struct judged *copy) {
    copy->reported = true;
    trouble->mirror_duplicates--;
    step->effect->mirrored--;
    trouble->network_duplicates++;
    step->listener->amend(
        step->listener->context, copy->event,
        &(struct tcp_event){.kind = WORD_NETWORK_DUPLICATE, .evidence = WORD_DSACK});
}

/* --- what the receiver reports -------------------------------------------------------------- */

/* The receiver got [start, end) twice: what was sent again for it was needless; else the network
 * made a copy of it. */
static void take_dsack(struct step *step, int64_t start, int64_t end) {
    struct tcp_trouble *trouble = step->other->trouble;
    struct judged *copy = NULL;
    bool found = false;
    for (uint32_t i = 0; trouble && i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (judged->reported || judged->start < 0 || !overlaps(judged, start, end) ||
            (end - start == 1 && judged->end - judged->start > 1)) /* a keep-alive's byte */
            continue;
        if (judged->kind == WORD_NETWORK_DUPLICATE && !found) {
            judged->reported = true; /* it is this copy that arrived twice */
            return;
        }
        if (judged->copy) {
            copy = copy ? copy : judged;
            continue;
        }
        judged->reported = true;
        prove_spurious(step, trouble, judged, WORD_DSACK);
        found = true;
        end = judged->start; /* once for each report of these bytes */
        if (end <= start)
            break;
    }
    if (copy && !found)
        prove_network_copy(step, trouble, copy);
}

/* Holes told by SACK alone: the data itself was not captured. */
static void note_sack_hole(struct step *step, struct tcp_trouble *trouble, int64_t start,
                           int64_t position) {
    int64_t known = later_of(trouble->sacked_highest, position);
    if (start <= known || step->other->based)
        return;
    trouble->sack_holes++;
    step_tell_kind(step, WORD_SACK_HOLE, start - known, 0);
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
        note_sack_hole(step, trouble, blocks[i][0], position);
        trouble->sacked_highest = later_of(trouble->sacked_highest, blocks[i][1]);
        trouble->sacked[trouble->sacked_count].start = blocks[i][0];
        trouble->sacked[trouble->sacked_count++].end = blocks[i][1];
    }
}

void judge_sack(struct step *step, int64_t position) {
    int64_t blocks[SACK_BLOCKS_MAX][2] = {{0}};
    for (unsigned i = 0; i < step->tcp->sack_count; i++) {
        blocks[i][0] = stream_position(step->other, step->tcp->sack[i].start);
        blocks[i][1] = stream_position(step->other, step->tcp->sack[i].end);
    }
    step->effect->sack_start = blocks[0][0];
    step->effect->sack_end = blocks[0][1];
    bool dsack = is_dsack(step->tcp, blocks, position);
    if (dsack && blocks[0][0] < blocks[0][1])
        take_dsack(step, blocks[0][0], blocks[0][1]);
    struct tcp_trouble *trouble = step_trouble(step, step->other);
    keep_blocks(step, trouble, blocks, dsack, position);
    if (trouble->sacked_count)
        trouble->news_ns = step->seen->time_ns;
}

/* Of several segments under one acknowledgment the echo is of the first (RFC 7323 section 4.3):
 * only that one is told by it. */
static bool echoes_earlier(const struct step *step, const struct judged *judged) {
    bool first = step->other->acked_known && judged->start <= step->other->acked;
    return first && judged->timestamps && step_timestamps(step) &&
           (int32_t)(step->tcp->timestamp_echo - judged->tsval) < 0;
}

/* Sooner than the way to the receiver and back allows: it answers an earlier sending. */
static bool is_answer_too_soon(const struct step *step, const struct judged *judged) {
    const struct sample_set *rtt = &step->other->rtt;
    return rtt->count && step->seen->time_known &&
           step->seen->time_ns - judged->time_ns < rtt->least / 2;
}

void judge_acknowledged(struct step *step, int64_t position) {
    struct tcp_trouble *trouble = step->other->trouble;
    if (!step->other->unsettled || position < trouble->settled_from)
        return;
    trouble->settled_from = INT64_MAX;
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
        if (judged->upstream)
            continue;
        if (echoes_earlier(step, judged))
            prove_spurious(step, trouble, judged, WORD_TIMESTAMPS);
        else if (is_answer_too_soon(step, judged))
            prove_spurious(step, trouble, judged, WORD_TIME);
    }
    step->other->unsettled = trouble->unsettled;
}

/* --- pauses --------------------------------------------------------------------------------- */

/* How long a sender waits at most until it has sent `times` in vain. */
static int64_t timers_ns(const struct step *step, int times) {
    int64_t first = later_of(timeout_ns(step), FIRST_TIMEOUT_MOST_NS);
    return first * ((1 << (times < 6 ? times : 6)) - 1);
}

/* Beside the receiver, the last segment of a burst lost before this point and sent again after a
 * timeout comes in order: only its number among the sender's packets, and the pause, give it away.
 */
void judge_pause(struct step *step, int64_t length) {
    const struct tcp_stream *stream = step->stream;
    uint16_t id = step->seen->ip_id;
    int64_t pause = step->seen->time_ns - stream->last_data_ns;
    if (!length || !stream->data_sent_last || !step->seen->time_known || pause < timeout_ns(step))
        return;
    int16_t jump = 0; /* not known */
    if (step_ids_count(stream) && id && stream->last_ip_id)
        jump = (int16_t)(id - stream->last_ip_id);
    if (jump == 1) /* it had nothing to send */
        return;
    bool suspected = jump > 1 && jump <= 64 && pause <= timers_ns(step, jump - 1);
    step_trouble(step, step->stream)->suspected_timeouts += suspected;
    step_tell(step, &(struct tcp_event){.kind = suspected ? WORD_SUSPECTED_TIMEOUT : WORD_PAUSE,
                                        .place = suspected ? WORD_UPSTREAM : WORD_NONE,
                                        .evidence = suspected ? WORD_IP_ID : WORD_NONE,
                                        .bytes = length});
}
