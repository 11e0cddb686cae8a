/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/recent_verdicts.h"

#include <string.h>

#include "verdict/mirror_duplicate.h"

struct tcp_trouble *step_trouble(const struct step *step, struct tcp_stream *stream) {
    if (!stream->trouble) {
        stream->trouble = allowance_take(step->allowance, sizeof *stream->trouble);
        if (stream->trouble)
            memset(stream->trouble, 0, sizeof *stream->trouble);
    }
    stream->unjudged |= !stream->trouble;
    return stream->trouble ? stream->trouble : step->listener->spare(step);
}

int64_t stream_least_rtt(const struct tcp_stream *stream) {
    int64_t reported = tcp_trouble_of(stream)->sacked_rtt_ns;
    if (!stream->rtt.count)
        return reported ? reported : -1;
    return reported ? sooner_of(reported, stream->rtt.least) : stream->rtt.least;
}

/* A handshake may wait: for an address to be resolved, for the server. */
int64_t step_path_rtt(const struct step *step) {
    int64_t down = stream_least_rtt(step->stream), up = stream_least_rtt(step->other);
    int64_t handshake = step->flow->handshake_rtt_ns;
    int64_t both = later_of(down, 0) + later_of(up, 0);
    if (handshake >= 0)
        return down >= 0 && up >= 0 ? sooner_of(handshake, both) : handshake;
    return down >= 0 || up >= 0 ? both : -1;
}

/* From this point to the sender and back, -1 when not known. */
int64_t step_sender_rtt(const struct step *step) {
    const struct sample_set *down = &step->stream->rtt, *up = &step->other->rtt;
    if (up->count)
        return up->least;
    if (step->flow->handshake_rtt_ns < 0)
        return -1;
    int64_t rest = step->flow->handshake_rtt_ns - (down->count ? down->least : 0);
    return rest > 0 ? rest : 0;
}

int64_t step_timeout_ns(const struct step *step) {
    int64_t rtt = step_path_rtt(step);
    int64_t timeout = rtt < 0 ? 0 : rtt + 4000 * (int64_t)step->stream->rttvar_us;
    return timeout > TIMEOUT_LEAST_NS ? timeout : TIMEOUT_LEAST_NS;
}

struct judged *judged_at(struct tcp_trouble *trouble, uint32_t newest_first) {
    uint32_t count = trouble->judged_count;
    return &trouble->judged[(trouble->judged_next + 2 * count - 1 - newest_first) % count];
}

/* The last time that these bytes were sent again, NULL when they were not. */
struct judged *judged_last_again(struct tcp_trouble *trouble, int64_t start, int64_t end) {
    for (uint32_t i = 0; trouble && i < trouble->judged_count; i++) {
        struct judged *judged = judged_at(trouble, i);
        if (!judged->copy && judged_overlaps(judged, start, end))
            return judged;
    }
    return NULL;
}

/* Nothing that comes later can tell of it: what is known must do. */
static void forget_copy(const struct step *step, struct tcp_trouble *trouble, struct judged *copy) {
    const struct direction *direction = direction_of(step->stream);
    if (trouble != step->stream->trouble || copy->kind != WORD_MIRROR_DUPLICATE ||
        mirror_is_throughout(trouble, direction->packets) ||
        !mirror_may_be_none(step->stream, copy))
        return;
    mirror_give_up(trouble, copy);
    step_amend(step, copy->event, &(struct tcp_event){.kind = WORD_UNKNOWN_DUPLICATE});
    step->listener->unmirror(step, copy->capture);
}

static void forget(const struct step *step, struct tcp_trouble *trouble, struct judged *judged) {
    forget_copy(step, trouble, judged);
    if (judged->settled)
        return;
    trouble->unsettled--;
    if (judged->lost && !judged->upstream && judged->start < trouble->held_below)
        judged_leave_open(step, trouble, judged);
}

static struct judged *judged_place(const struct step *step, struct tcp_trouble *trouble) {
    bool full = trouble->judged_count == trouble->judged_room;
    if (trouble == step->listener->spare(step))
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
    if (full)
        forget(step, trouble, &trouble->judged[place]);
    return &trouble->judged[place];
}

void judged_remember(const struct step *step, struct tcp_trouble *trouble, struct judged judged) {
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
void judged_take_loss_back(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence) {
    if (judged->lost && judged->upstream)
        trouble->lost_upstream--;
    else if (judged->lost)
        trouble->lost_downstream--;
    judged->lost = false;
    step_amend(step, judged->event,
               &(struct tcp_event){.kind = judged->kind,
                                   .evidence = evidence,
                                   .spurious = judged->spurious ? SPURIOUS_YES : SPURIOUS_NO});
}

void judged_leave_open(const struct step *step, struct tcp_trouble *trouble,
                       struct judged *judged) {
    enum word kind = judged->kind; /* why it was sent again is as clear as before */
    enum word evidence = kind == WORD_FAST_RETRANSMISSION      ? WORD_ACKS
                         : kind == WORD_TIMEOUT_RETRANSMISSION ? WORD_TIME
                                                               : WORD_NONE;
    judged->skipped = true;
    judged_take_loss_back(step, trouble, judged, evidence);
}

/* Whether the bytes had been sent again before: an older timestamp may be that one's. */
static bool was_again_before(const struct tcp_trouble *trouble, const struct judged *judged) {
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        const struct judged *other = &trouble->judged[i];
        if (!other->copy && other->frame < judged->frame &&
            judged_overlaps(other, judged->start, judged->end))
            return true;
    }
    return false;
}

void judged_prove_spurious(const struct step *step, struct tcp_trouble *trouble,
                           struct judged *judged, enum word evidence) {
    if (judged->spurious && evidence != WORD_DSACK)
        return;
    trouble->spurious += !judged->spurious;
    judged->spurious = true;
    if (evidence == WORD_TIMESTAMPS && judged->frame == trouble->timeout_frame)
        trouble->timeout_undone |= !was_again_before(trouble, judged);
    judged_take_loss_back(step, trouble, judged, evidence);
}
