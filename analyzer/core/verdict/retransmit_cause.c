/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/retransmit_cause.h"

#include "verdict/stall.h"

/* RFC 8985 section 7.2, as Linux sets its timers: two round trips, and 2 ms at least, which a
 * coarse clock of its own makes more of. */
#define TAIL_PROBE_LEAST_NS INT64_C(2000000)
#define TAIL_PROBE_USUAL_NS INT64_C(10000000)
#define NEWS_FRESH_NS       INT64_C(50000000) /* beyond a round trip: what a sender may dawdle */
#define SENDER_SLACK_NS     1000000           /* what is on its way when an acknowledgment passes */
#define SEGMENT_USUAL       1460

static int64_t sacked_above(const struct tcp_trouble *trouble, int64_t position) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < trouble->sacked_count; i++) {
        int64_t from = later_of(trouble->sacked[i].start, position);
        if (trouble->sacked[i].end > from)
            bytes += trouble->sacked[i].end - from;
    }
    return bytes;
}

bool cause_is_held(const struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; i < trouble->sacked_count; i++)
        if (trouble->sacked[i].start <= start && end <= trouble->sacked[i].end)
            return start >= 0;
    return false;
}

/* Of the data that one end sends. */
static int64_t segment_size(const struct step *step, unsigned direction) {
    const struct direction *directions = step->flow->directions;
    int64_t most = directions[direction].segment_max;
    int64_t announced =
        directions[!direction].tcp.mss ? directions[!direction].tcp.mss : SEGMENT_USUAL;
    return most && most < announced ? most : announced;
}

/* RFC 5681: three duplicate ACKs; RFC 6675: more than two segments reported above it. */
bool cause_is_reported_lost(const struct step *step, int64_t start, int64_t end) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    if (step->other->repeats >= DUPLICATE_ACKS && start == step->stream->acked)
        return true;
    return sacked_above(trouble, end) > 2 * segment_size(step, step_direction(step));
}

APART void cause_keep_report(struct step *step, struct tcp_trouble *trouble) {
    int64_t start = step->other->acked, end = start, now = step->seen->time_ns;
    if (!step->other->acked_known)
        return;
    int64_t size = segment_size(step, !step_direction(step));
    if (step->stream->repeats >= DUPLICATE_ACKS)
        end = start + size;
    if (sacked_above(trouble, start) > 2 * size)
        end = later_of(end, trouble->sacked_highest - 2 * size);
    if (end == start)
        return;
    bool goes_on = now - trouble->reported.time_ns <= step_path_rtt(step);
    trouble->reported.start = goes_on ? sooner_of(start, trouble->reported.start) : start;
    trouble->reported.end = goes_on ? later_of(end, trouble->reported.end) : end;
    trouble->reported.time_ns = now;
}

/* Acknowledged by now, but the last that the sender had heard was that it is lost. */
static bool was_reported_lost(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    int64_t delay = step_sender_rtt(step), rtt = step_path_rtt(step);
    return resend->end <= step->stream->acked && resend->start >= trouble->reported.start &&
           resend->end <= trouble->reported.end && rtt >= 0 &&
           step->seen->time_ns - trouble->reported.time_ns <= delay + rtt / 4 + SENDER_SLACK_NS;
}

bool cause_is_suspected(const struct step *step, int64_t end) {
    return step->other->repeats || sacked_above(tcp_trouble_of(step->stream), end);
}

/* The last acknowledgment that the sender had heard: none that covers what it sends again. */
struct heard {
    int64_t acked, time_ns;
    uint32_t frame; /* 0: not known */
};

static struct heard heard_by_sender(const struct step *step, const struct resend *resend) {
    const struct tcp_stream *stream = step->stream;
    bool beside = step_sender_rtt(step) < step_path_rtt(step) / 4; /* what passes here is heard */
    if (resend->end > stream->acked || beside)
        return (struct heard){stream->acked, stream->advanced_ns, stream->advanced_frame};
    for (unsigned i = 2; i-- > 0;)
        if (stream->past[i].acked < resend->end)
            return (struct heard){stream->past[i].acked, stream->past[i].time_ns,
                                  stream->past_frames[i]};
    return (struct heard){0, 0, 0};
}

struct silence {
    int64_t ns;
    uint32_t frame; /* with which it began, 0: not known */
};

/* How long the sender had heard nothing that would restart its timers. */
static struct silence silence_of(const struct step *step, const struct resend *resend) {
    struct heard since = {.time_ns = resend->sent_ns, .frame = resend->since_frame};
    const struct tcp_trouble *other = tcp_trouble_of(step->other);
    if (step->stream->acked_known) {
        struct heard heard = heard_by_sender(step, resend);
        since = heard.time_ns > since.time_ns ? heard : since;
    }
    if (other->opened_ns > since.time_ns)
        since = (struct heard){.time_ns = other->opened_ns, .frame = other->opened_frame};
    return (struct silence){step->seen->time_ns - since.time_ns, since.frame};
}

static int64_t silence_ns(const struct step *step, const struct resend *resend) {
    return silence_of(step, resend).ns;
}

/* RFC 8985 takes SACK, for RACK (section 3) as for the probe (section 7). */
static bool may_use_rack(const struct step *step) {
    const struct tcp_stream *stream = step->stream, *other = step->other;
    return (!stream->syn_seen || stream->syn_cut || stream->sack_permitted) &&
           (!other->syn_seen || other->syn_cut || other->sack_permitted);
}

/* The FIN that goes with the data counts. */
static bool is_last(const struct step *step, const struct resend *resend) {
    int64_t highest = step->stream->highest;
    bool fin = step->tcp && step->tcp->flags & TCP_FIN;
    return resend->end == highest || (fin && resend->end + 1 == highest);
}

/* The segment sent last, alone, while the sender hears of nothing: where the receiver has reported
 * just this one, not of that either. */
static bool may_be_probe(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    return resend->start >= 0 && step_path_rtt(step) >= 0 && may_use_rack(step) &&
           is_last(step, resend) &&
           (!cause_is_suspected(step, resend->end) ||
            cause_is_held(trouble, resend->start, resend->end)) &&
           !judged_last_again(step->stream->trouble, resend->start, resend->end);
}

static bool is_tail_probe(const struct step *step, const struct resend *resend) {
    if (!may_be_probe(step, resend))
        return false;
    int64_t rtt = step_path_rtt(step), silence = silence_ns(step, resend);
    int64_t expected = later_of(2 * rtt, TAIL_PROBE_USUAL_NS);
    int64_t timeout = rtt + later_of(TIMEOUT_LEAST_NS, 4000 * (int64_t)step->stream->rttvar_us);
    if (silence < later_of(rtt + rtt / 2, TAIL_PROBE_LEAST_NS))
        return false;
    /* The timer sends the lowest again, not the last of several. */
    if (resend->start > heard_by_sender(step, resend).acked)
        return silence <= later_of(expected + expected / 2, timeout);
    /* Where both timers are near, the nearer. */
    return silence <= expected + expected / 2 &&
           (timeout <= expected || silence <= (timeout + expected) / 2);
}

static bool is_timeout(const struct step *step, const struct resend *resend) {
    int64_t timeout = step_timeout_ns(step);
    bool lowest = !step->stream->acked_known || resend->start <= step->stream->acked;
    return lowest && silence_ns(step, resend) >= timeout - timeout / 10;
}

static struct cause timer_cause(const struct step *step, const struct resend *resend) {
    if (is_tail_probe(step, resend))
        return (struct cause){
            .kind = WORD_PROBE_RETRANSMISSION, .evidence = WORD_TIME, .frame = resend->sent_frame};
    if (is_timeout(step, resend)) {
        struct silence silence = silence_of(step, resend);
        return (struct cause){.kind = WORD_TIMEOUT_RETRANSMISSION,
                              .evidence = WORD_TIME,
                              .frame = resend->sent_frame,
                              .silence_ns = silence.ns,
                              .silence_frame = silence.frame};
    }
    return (struct cause){.kind = WORD_RETRANSMISSION, .frame = resend->sent_frame};
}

/* Whether the acknowledgments gave cause just now. */
static bool news_is_fresh(const struct step *step) {
    int64_t rtt = step_path_rtt(step);
    int64_t age = step->seen->time_ns - tcp_trouble_of(step->stream)->news_ns;
    /* RACK waits for a quarter of a round trip more (RFC 8985 section 6.2). */
    return age <= (rtt < 0 ? 0 : rtt + rtt / 4) + NEWS_FRESH_NS;
}

/* Whether the acknowledgment of all below `point` had reached the sender when it sent this. */
static bool sender_knows(const struct step *step, int64_t point) {
    int64_t delay = step_sender_rtt(step);
    return step->stream->acked >= point && step->seen->time_ns - step->stream->advanced_ns >
                                               (delay < 0 ? 0 : delay) + SENDER_SLACK_NS;
}

/* Whether it went past these bytes while it went back, which goes upwards, a round trip ago. */
static bool went_past(const struct step *step, const struct resend *resend) {
    struct tcp_trouble *trouble = step->stream->trouble;
    for (uint32_t i = 0; trouble && i < trouble->judged_count; i++) {
        const struct judged *judged = &trouble->judged[i];
        if (judged->kind == WORD_TIMEOUT_RETRANSMISSION && judged->start >= resend->end &&
            judged->frame > trouble->timeout_frame &&
            step->seen->time_ns - judged->time_ns >= step_path_rtt(step))
            return true;
    }
    return false;
}

/* Sent again while it went back, here or upstream, and lost once more, as reports of what was sent
 * later tell: Linux then recovers as without a timeout (FLAG_LOST_RETRANS). */
static bool is_lost_again(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    bool seen = resend->again && resend->sent_frame > trouble->timeout_frame &&
                step->seen->time_ns - resend->sent_ns >= step_path_rtt(step);
    return may_use_rack(step) && sacked_above(trouble, resend->end) &&
           (seen || went_past(step, resend));
}

/* Right behind what it sent again last, and soon after: an acknowledgment that passed here in
 * between was still under way to the sender. */
static bool goes_straight_on(const struct step *step, const struct resend *resend) {
    struct tcp_trouble *trouble = step->stream->trouble;
    const struct judged *last = trouble && trouble->judged_count ? judged_at(trouble, 0) : NULL;
    return last && last->kind == WORD_TIMEOUT_RETRANSMISSION && last->end == resend->start &&
           step->seen->time_ns - last->time_ns < step_path_rtt(step);
}

/* RFC 8985 section 6.2: sent a round trip ago, and something sent after it has arrived: data above
 * it that was reported, or what was sent again since and is acknowledged. */
static bool is_overtaken(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    int64_t waited = step->seen->time_ns - resend->sent_ns;
    if (!may_use_rack(step))
        return false;
    if (waited >= step_path_rtt(step))
        return resend->sent_ns < trouble->delivered_ns ||
               (cause_is_suspected(step, resend->end) && !is_last(step, resend));
    /* Far before any timer, and of the way to the sender nothing is known but the handshake, which
     * may have waited: the report must have been there. */
    return step->other->rtt.count <= 1 && waited < step_timeout_ns(step) / 2 &&
           resend->end > step->stream->acked && sacked_above(trouble, resend->end);
}

/* Up to what was the highest when the timer expired, the sender goes on as it began, until it knows
 * of an acknowledgment of all that. */
static bool goes_back(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    bool recovers =
        trouble->timeout_undone &&
        (trouble->recovery_frame || cause_is_reported_lost(step, resend->start, resend->end));
    recovers |= is_lost_again(step, resend);
    return trouble->timeout_frame && resend->start < trouble->timeout_point && !recovers &&
           (!sender_knows(step, trouble->timeout_point) || goes_straight_on(step, resend));
}

static bool is_in_recovery(const struct step *step, const struct resend *resend) {
    int64_t point = tcp_trouble_of(step->stream)->recovery_point;
    return tcp_trouble_of(step->stream)->recovery_frame && resend->start < point &&
           !sender_knows(step, point);
}

/* Without SACK Linux counts duplicate ACKs in place of reports (tcp_add_reno_sack), and takes some
 * of them over from a recovery before: the lowest segment then goes after two. No timer can have
 * expired. */
static bool counts_on(const struct step *step, const struct resend *resend) {
    return !may_use_rack(step) && tcp_trouble_of(step->stream)->recovery_frame &&
           step->other->repeats + 1 >= DUPLICATE_ACKS && resend->start == step->stream->acked &&
           silence_ns(step, resend) < step_timeout_ns(step) / 2;
}

static struct cause fast(uint32_t frame, const char *detail) {
    return (struct cause){
        .kind = WORD_FAST_RETRANSMISSION, .evidence = WORD_ACKS, .frame = frame, .detail = detail};
}

struct cause cause_in_acks(const struct step *step, const struct resend *resend) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    if (goes_back(step, resend))
        return (struct cause){.kind = WORD_TIMEOUT_RETRANSMISSION,
                              .evidence = WORD_TIME,
                              .frame = trouble->timeout_frame,
                              .detail = "go-back-N after a timeout"};
    if (cause_is_reported_lost(step, resend->start, resend->end))
        return fast(resend->sent_frame, NULL);
    if (is_in_recovery(step, resend))
        return fast(trouble->recovery_frame, "in the recovery that an earlier one began");
    if (counts_on(step, resend))
        return fast(resend->sent_frame,
                    "two duplicate ACKs, where an earlier recovery had begun to count");
    if (was_reported_lost(step, resend))
        return fast(resend->sent_frame, "reported lost a round trip to the sender ago");
    if (is_overtaken(step, resend))
        return fast(resend->sent_frame,
                    "RACK: sent a round trip ago, and what was sent later has arrived");
    return (struct cause){.kind = WORD_NONE};
}

struct cause cause_of(const struct step *step, const struct resend *resend) {
    struct cause none = {.kind = WORD_RETRANSMISSION, .frame = resend->sent_frame};
    if (!step->seen->time_known || (!step->stream->acked_known && resend->start >= 0))
        return none;
    struct cause acks = {.kind = WORD_NONE};
    /* What is lost once more is sent again after a round trip or by the timer, whatever is heard of
     * later data in between; a first one that never came by may be that. */
    bool overdue =
        !may_use_rack(step) &&
        silence_ns(step, resend) >= step_timeout_ns(step) + later_of(step_path_rtt(step), 0);
    bool fresh = news_is_fresh(step) && !resend->again && !overdue;
    if (resend->start >= 0 && (fresh || !is_timeout(step, resend)))
        acks = cause_in_acks(step, resend);
    return acks.kind == WORD_NONE ? timer_cause(step, resend) : acks;
}

void cause_count(struct step *step, struct tcp_trouble *trouble, const struct cause *cause,
                 int64_t start) {
    int64_t highest = step->stream->highest;
    bool timeout = cause->kind == WORD_TIMEOUT_RETRANSMISSION;
    bool fast = cause->kind == WORD_FAST_RETRANSMISSION;
    trouble->retransmissions++;
    trouble->fast += fast;
    trouble->timeout += timeout;
    trouble->probe += cause->kind == WORD_PROBE_RETRANSMISSION;
    /* Lost once more while it went back: the recovery goes for all of the rest too. */
    trouble->timeout_undone |= fast && trouble->timeout_frame && start < trouble->timeout_point;
    if (timeout && !cause->detail) {
        trouble->timeouts++;
        trouble->timeout_ns = sum_of(trouble->timeout_ns, later_of(cause->silence_ns, 0));
        stall_note(step, trouble, cause->silence_ns, cause->silence_frame);
        trouble->timeout_point = highest;
        trouble->timeout_frame = step_frame(step);
        trouble->timeout_undone = false;
        trouble->recovery_point = 0;
        trouble->recovery_frame = 0;
    } else if (fast && cause->frame != trouble->recovery_frame &&
               (!trouble->recovery_frame || step->stream->acked >= trouble->recovery_point)) {
        trouble->recovery_point = highest;
        trouble->recovery_frame = step_frame(step);
    }
}
