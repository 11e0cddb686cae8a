/* SPDX-License-Identifier: Apache-2.0 */
/* One segment on its way through tcp_track and those that judge it. */
#ifndef WIRETALE_TCP_STEP_H
#define WIRETALE_TCP_STEP_H

#include "base/vocabulary.h"
#include "tracker/tracker.h"

/* A sequence number this far from the stream's highest is no part of it (RFC 9293 windows reach
 * 2^30 at most, RFC 7323 section 2.3). */
#define POSITION_SPAN ((int64_t)1 << 30)

/* What takes longer (13 days) is a clock's fault and no round trip; sums of some do not overflow.
 */
#define ROUND_TRIP_MOST (INT64_C(1) << 50)

struct step {
    struct flow *flow;
    struct tcp_stream *stream; /* of the segment's own direction */
    struct tcp_stream *other;
    const struct tcp_header *tcp; /* NULL for a later fragment of a segment */
    const struct sighting *seen;
    struct allowance *allowance;
    const struct tcp_listener *listener;
    void *context;  /* the listener's */
    uint32_t frame; /* 0 when it takes more */
    struct tcp_effect effect;
};

static inline unsigned step_direction(const struct step *step) {
    return (unsigned)(direction_of(step->stream) - step->flow->directions);
}

static inline uint32_t step_frame(const struct step *step) {
    return step->frame;
}

static inline bool step_timestamps(const struct step *step) {
    return step->tcp && step->tcp->options & TCP_OPTION_TIMESTAMPS;
}

/* Returns the event's row, EVENT_NONE when there is none. */
static inline uint64_t step_tell(const struct step *step, const struct tcp_event *event) {
    return step->listener->event(step, event);
}

static inline void step_amend(const struct step *step, uint64_t row,
                              const struct tcp_event *event) {
    step->listener->amend(step, row, event);
}

static inline uint64_t step_tell_kind(const struct step *step, enum word kind, int64_t bytes,
                                      uint32_t related_frame) {
    return step_tell(
        step, &(struct tcp_event){.kind = kind, .bytes = bytes, .related_frame = related_frame});
}

static inline int64_t stream_position(const struct tcp_stream *stream, uint32_t sequence) {
    uint32_t highest = stream->zero_sequence + (uint32_t)stream->highest;
    return stream->highest + (int32_t)(sequence - highest);
}

/* Whether acknowledgments ask for data to be sent again. */
static inline bool step_asked(const struct step *step) {
    const struct tcp_trouble *trouble = tcp_trouble_of(step->stream);
    return step->other->repeats || trouble->sacked_count ||
           (trouble->recovery_frame && trouble->recovery_point > step->stream->acked);
}

/* What the end that sends `acks` can at most have received beyond what was seen here. */
static inline int64_t step_reach(const struct tcp_stream *acks) {
    int64_t reach = acks->window_known ? 2 * acks->window_max : POSITION_SPAN;
    return reach < 1 << 20 ? 1 << 20 : reach;
}

/* Whether the sender's IP identifications rise by small steps, and so tell the order of sending. */
static inline bool step_ids_rise(const struct tcp_stream *stream) {
    return stream->ids_good >= 2 && stream->ids_good >= 4 * stream->ids_bad;
}

/* Whether they are known not to tell one packet from another: always the same, or at random. */
static inline bool step_ids_tell_nothing(const struct tcp_stream *stream) {
    return stream->ids_bad && !step_ids_rise(stream);
}

/* Whether they rise by one with each packet: then one that is missing was sent. */
static inline bool step_ids_count(const struct tcp_stream *stream) {
    return step_ids_rise(stream) && stream->ids_good >= 4 * stream->ids_skips;
}

/* Whether nothing but this connection seems to take numbers: those that were left out were its own.
 */
static inline bool step_ids_own(const struct tcp_stream *stream) {
    return step_ids_count(stream) && stream->ids_good >= 64 &&
           stream->ids_good >= 16 * stream->ids_skips;
}

/* The stream's trouble, made if there is none; never NULL. */
struct tcp_trouble *step_trouble(const struct step *step, struct tcp_stream *stream);

/* The round trip between both ends, from the handshake or the least of both halves, -1 when not
 * known. */
int64_t step_path_rtt(const struct step *step);

#endif
