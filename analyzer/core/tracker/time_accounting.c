/* SPDX-License-Identifier: Apache-2.0 */
/* An interval is what the state after its first packet says, unless the packet that ends it tells
 * better: data that comes long after the acknowledgment that would have let it go was not there
 * before. */
#include "tracker/time_accounting.h"

#include <string.h>

#include "tracker/receive_window.h"
#include "verdict/recent_verdicts.h"

#define SLACK_NS       1000000  /* what a sender needs to answer an acknowledgment */
#define HELD_LEAST_NS  30000000 /* the least delayed-ACK timer, Linux's, is 40 ms */
#define GROWTH_TRIPS   3        /* slow start doubles in one or two round trips (RFC 5681) */
#define SEGMENT_USUAL  1460
#define DOUBLING_LEAST INT64_C(2000)

/* After the last packet. The first two are pauses: without new data they go on. The others are the
 * causes of the time that follows. */
enum limit_state {
    STATE_EMPTY,                 /* nothing is outstanding */
    STATE_SHORT,                 /* the last segment was not full: there may be no more to send */
    STATE_CLOSED = LIMIT_WINDOW, /* the receiver's window takes no more */
    STATE_MENDING = LIMIT_RECOVERY,
    STATE_OPEN = LIMIT_NETWORK
};
_Static_assert(STATE_CLOSED > STATE_SHORT && STATE_MENDING > STATE_SHORT, "no pauses");

/* One direction's data, and who acknowledges it. */
struct way {
    struct tcp_stream *stream, *other;
};

/* The largest one of the direction. */
static inline int64_t largest_segment(const struct way *way) {
    return direction_of(way->stream)->segment_max;
}

static inline int64_t full_segment(const struct way *way) {
    int64_t most = largest_segment(way);
    int64_t announced = way->other->mss;
    return announced && announced < most ? announced : most;
}

/* A full segment is no more than the largest: where that fits, it need not be told. A window above
 * 0 is not closed by its announcement. */
static inline bool is_closed(const struct way *way, int64_t flight) {
    int64_t window = stream_window(way->other);
    if (window <= 0)
        return way->other->window_zero;
    return flight + largest_segment(way) > window && flight + full_segment(way) > window;
}

static inline bool is_mending(const struct tcp_stream *stream) {
    const struct tcp_trouble *trouble = stream->trouble;
    return trouble && ((trouble->recovery_frame && trouble->recovery_point > stream->acked) ||
                       (trouble->timeouts && trouble->timeout_point > stream->acked));
}

static inline enum limit_state state_of(const struct way *way, const struct tcp_limit *limit,
                                        int64_t flight) {
    if (is_closed(way, flight))
        return STATE_CLOSED;
    if (is_mending(way->stream))
        return STATE_MENDING;
    if (limit->last_short)
        return STATE_SHORT;
    return flight <= 0 ? STATE_EMPTY : STATE_OPEN;
}

/* The time that an acknowledgment takes from here to the sender, and what it lets go back to here.
 */
static inline int64_t reaction_ns(const struct step *step) {
    int64_t rtt = step_sender_rtt(step);
    return (rtt < 0 ? later_of(step_path_rtt(step), 0) : rtt) + SLACK_NS;
}

/* Data that came after a time in which there seemed to be none: what of that time was the sender's
 * own. What an acknowledgment let go, the network or the receiver had held back; what the other
 * end's data let go, is the turn of the application. */
static inline void part_pause(const struct step *step, struct tcp_limit *limit, int64_t span) {
    int64_t since = later_of(limit->mark_ns, step->stream->advanced_ns);
    int64_t own = step->seen->time_ns - since - reaction_ns(step);
    bool released = own <= 0 && !limit->turned;
    if (limit->turned || (limit->state == STATE_SHORT && !released))
        own = span;
    int64_t held = released ? sooner_of(limit->held_ns, span) : 0;
    own = sooner_of(later_of(own, 0), span);
    limit->ns[LIMIT_IDLE] += own;
    limit->ns[LIMIT_DELAYED_ACK] += held;
    limit->ns[LIMIT_NETWORK] += span - own - held;
}

/* How much later than at once a short segment was acknowledged, where that was as late as a
 * delayed-ACK timer. */
static int64_t held_ns(const struct step *step, const struct tcp_stream *stream) {
    const struct sample_set *rtt = &stream->rtt;
    int64_t waited = step->seen->time_ns - stream->last_data_ns;
    waited -= rtt->count ? rtt->least : 0;
    return waited >= HELD_LEAST_NS ? waited : 0;
}

/* In slow start each round trip doubles what is in flight; when it no longer does, or data was
 * lost, that is over. */
static APART void note_growth(const struct step *step, const struct tcp_stream *stream,
                              struct tcp_limit *limit, int64_t flight) {
    int64_t now = step->seen->time_ns;
    int64_t rtt = later_of(step_path_rtt(step), 1000 * (int64_t)stream->srtt_us);
    limit->grown = tcp_trouble_of(stream)->retransmissions ||
                   (rtt > 0 && now - limit->doubled_ns > GROWTH_TRIPS * rtt + SLACK_NS);
    if (limit->grown || flight < 2 * limit->doubled)
        return;
    limit->doubled = flight < DOUBLING_LEAST ? DOUBLING_LEAST : flight;
    limit->doubled_ns = now;
    limit->ns[LIMIT_SLOW_START] += limit->ns[LIMIT_NETWORK];
    limit->ns[LIMIT_NETWORK] = 0;
}

/* Those that were only suspected, too: the sender stood still, with what it had sent lost before
 * this point. */
static inline uint64_t timeouts_of(const struct tcp_trouble *trouble) {
    return trouble ? trouble->timeouts + trouble->suspected_timeouts : 0;
}

static inline void part(const struct step *step, const struct tcp_stream *stream,
                        struct tcp_limit *limit, bool data) {
    int64_t span = step->seen->time_ns - limit->mark_ns;
    uint64_t timeouts = timeouts_of(stream->trouble);
    bool pause = limit->state <= STATE_SHORT;
    if (timeouts != limit->timeouts)
        limit->ns[LIMIT_TIMEOUT] += span;
    else if (pause && !data)
        return; /* it goes on */
    else if (pause)
        part_pause(step, limit, span);
    else
        limit->ns[limit->state] += span;
    limit->timeouts = timeouts;
    limit->mark_ns = step->seen->time_ns;
}

/* Less than a full segment, as far as both can be told: some streams never have one. */
static inline bool is_short(const struct step *step, const struct way *way) {
    int64_t announced = way->other->mss ? way->other->mss : SEGMENT_USUAL;
    return step->seen->payload_bytes < full_segment(way) ||
           step->seen->payload_bytes < announced / 2;
}

static inline void note_data(const struct step *step, const struct way *way,
                             struct tcp_limit *limit) {
    limit->last_short = step->tcp->flags & TCP_PSH && is_short(step, way);
    limit->turned = false;
    limit->held_ns = 0;
}

static APART void begin(const struct step *step) {
    struct way way = {step->stream, step->other};
    if (direction_of(step->stream)->packets < LIMIT_PACKETS_LEAST)
        return;
    struct tcp_limit *limit = allowance_take(step->allowance, sizeof *limit);
    if (!limit)
        return;
    memset(limit, 0, sizeof *limit);
    limit->mark_ns = limit->doubled_ns = step->seen->time_ns;
    limit->timeouts = timeouts_of(step->stream->trouble);
    limit->doubled = later_of(step->stream->flight_max, DOUBLING_LEAST);
    step->stream->limit = limit;
    note_data(step, &way, limit);
    limit->state = (uint8_t)state_of(&way, limit, stream_flight(step->stream));
}

/* What the segment leaves behind. */
static inline void settle(const struct step *step, const struct way *way, struct tcp_limit *limit,
                          int64_t flight) {
    if (!limit->grown)
        note_growth(step, way->stream, limit, flight);
    limit->state = (uint8_t)state_of(way, limit, flight);
}

static inline void take_data(const struct step *step, int64_t flight) {
    struct way way = {step->stream, step->other};
    struct tcp_limit *limit = step->stream->limit;
    if (!limit) {
        begin(step);
        return;
    }
    if (step->seen->time_ns >= limit->mark_ns)
        part(step, way.stream, limit, true);
    note_data(step, &way, limit);
    settle(step, &way, limit, flight);
}

/* The segment as what it tells of the other direction's data. */
static void take_answer(const struct step *step, struct tcp_limit *limit, bool data) {
    struct way way = {step->other, step->stream};
    limit->turned |= data;
    if (way.stream->advanced_ns == step->seen->time_ns)
        limit->held_ns = limit->last_short ? held_ns(step, way.stream) : 0;
    if (step->seen->time_ns >= limit->mark_ns)
        part(step, way.stream, limit, false);
    settle(step, &way, limit, stream_flight(way.stream));
}

void limit_take(const struct step *step, int64_t flight) {
    bool data = step->seen->payload_bytes && !step->effect.probe;
    if (!step->seen->time_known || flight < 0)
        return;
    if (data)
        take_data(step, flight);
    if (step->other->limit && step->effect.acknowledges)
        take_answer(step, step->other->limit, data);
}

void limit_free(struct tcp_stream *stream, struct allowance *allowance) {
    if (stream->limit)
        allowance_give(allowance, stream->limit, sizeof *stream->limit);
    stream->limit = NULL;
}
