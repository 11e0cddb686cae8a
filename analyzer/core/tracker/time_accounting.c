/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts each interval between two segments to one limiting factor: the state that the first
 * segment left. The segment that ends the interval may correct that:
 *
 * - A retransmission after an RTO makes the interval RTO time.
 * - If there was no data in flight, or the last segment was short, new data shows whether the
 *   application was idle or waited for an ACK: data that follows an ACK within the time that the
 *   ACK takes to the sender, and the data back, was released by it. If the receiver delayed that
 *   ACK, the time until it is delayed-ACK time.
 * - While bytes in flight double every few RTTs and nothing was lost, network time is slow start
 *   (RFC 5681 section 3.1).
 *
 * A full segment is the largest seen, or the MSS if that is less. */
#include "tracker/steps.h"

#define SLACK_NS          1000000  /* a sender's response to an ACK */
#define MIN_ACK_DELAY_NS  30000000 /* the shortest delayed-ACK timer, Linux's, is 40 ms */
#define RTTS_PER_DOUBLING 3        /* slow start doubles in one or two */
#define MIN_DOUBLED_BYTES INT64_C(2000)

/* After a segment. The first two are pauses, which continue until new data; the others are limiting
 * factors. */
enum limit_state {
    STATE_IDLE,  /* no data in flight */
    STATE_SHORT, /* the last segment was short: there may be no more data */
    STATE_WINDOW = LIMIT_WINDOW,
    STATE_RECOVERY = LIMIT_RECOVERY,
    STATE_NETWORK = LIMIT_NETWORK
};
_Static_assert(STATE_WINDOW > STATE_SHORT && STATE_RECOVERY > STATE_SHORT, "not pauses");

struct half_connection {
    struct tcp_stream *sender, *receiver; /* of the data that is accounted */
};

/* --- state ----------------------------------------------------------------------------------- */

static inline int64_t full_segment(const struct half_connection *half) {
    int64_t most = half->sender->segment_max, mss = half->receiver->mss;
    return mss && mss < most ? mss : most;
}

static inline bool is_window_full(const struct half_connection *half, int64_t flight) {
    int64_t window = half->receiver->window;
    if (window <= 0)
        return half->receiver->zero_window;
    return flight + half->sender->segment_max > window && flight + full_segment(half) > window;
}

static inline bool is_recovering(const struct tcp_stream *sender) {
    const struct tcp_recovery_state *recovery = sender->recovery;
    return recovery && ((recovery->recovery_frame && recovery->recovery_point > sender->snd_una) ||
                        (recovery->rto_count && recovery->rto_point > sender->snd_una));
}

static inline enum limit_state state_of(const struct half_connection *half,
                                        const struct time_accounting *accounting, int64_t flight) {
    if (is_window_full(half, flight))
        return STATE_WINDOW;
    if (is_recovering(half->sender))
        return STATE_RECOVERY;
    if (accounting->last_short)
        return STATE_SHORT;
    return flight <= 0 ? STATE_IDLE : STATE_NETWORK;
}

/* Suspected RTOs count: the sender was stalled, and its data was lost upstream. */
static inline uint64_t rtos_of(const struct tcp_stream *sender) {
    const struct tcp_recovery_state *recovery = sender->recovery;
    return recovery ? recovery->rto_count + recovery->suspected_rto_count : 0;
}

/* --- intervals ------------------------------------------------------------------------------- */

/* Divides a pause of `span` ns that new data ended. If the peer sent data in it, it was the turn of
 * this endpoint's application. */
static inline void account_pause(const struct segment_context *seg,
                                 struct time_accounting *accounting, int64_t span) {
    int64_t since = max64(accounting->accounted_until_ns, seg->sender->una_advanced_ns);
    /* An ACK takes so long to the sender, and the data that it releases back. */
    int64_t rtt = sender_rtt(seg->connection, seg->sender);
    int64_t reaction = (rtt < 0 ? max64(path_rtt(seg->connection), 0) : rtt) + SLACK_NS;
    int64_t idle = seg->packet->time_ns - since - reaction;
    bool released = idle <= 0 && !accounting->peer_replied;
    if (accounting->peer_replied || (accounting->state == STATE_SHORT && !released))
        idle = span;
    int64_t held = released ? min64(accounting->ack_held_ns, span) : 0;
    idle = min64(max64(idle, 0), span);
    accounting->ns[LIMIT_IDLE] += idle;
    accounting->ns[LIMIT_DELAYED_ACK] += held;
    accounting->ns[LIMIT_NETWORK] += span - idle - held;
}

static inline void account_interval(const struct segment_context *seg,
                                    const struct tcp_stream *sender,
                                    struct time_accounting *accounting, bool data) {
    int64_t span = seg->packet->time_ns - accounting->accounted_until_ns;
    uint64_t rtos = rtos_of(sender);
    bool pause = accounting->state <= STATE_SHORT;
    if (rtos != accounting->rto_count)
        accounting->ns[LIMIT_TIMEOUT] += span;
    else if (pause && !data)
        return;
    else if (pause)
        account_pause(seg, accounting, span);
    else
        accounting->ns[accounting->state] += span;
    accounting->rto_count = rtos;
    accounting->accounted_until_ns = seg->packet->time_ns;
}

/* Slow start ends with a loss, or if bytes in flight no longer double. */
static NOINLINE void note_growth(const struct segment_context *seg, const struct tcp_stream *sender,
                                 struct time_accounting *accounting, int64_t flight) {
    int64_t now = seg->packet->time_ns;
    int64_t rtt = max64(path_rtt(seg->connection), 1000 * (int64_t)sender->srtt_us);
    accounting->slow_start_over =
        recovery_of(sender)->retransmissions ||
        (rtt > 0 && now - accounting->doubled_ns > RTTS_PER_DOUBLING * rtt + SLACK_NS);
    if (accounting->slow_start_over || flight < 2 * accounting->doubled_bytes)
        return;
    accounting->doubled_bytes = max64(flight, MIN_DOUBLED_BYTES);
    accounting->doubled_ns = now;
    accounting->ns[LIMIT_SLOW_START] += accounting->ns[LIMIT_NETWORK];
    accounting->ns[LIMIT_NETWORK] = 0;
}

/* --- segments -------------------------------------------------------------------------------- */

/* A stream may never send a full segment, so one under half the MSS is short, too. */
static inline bool is_short(const struct segment_context *seg, const struct half_connection *half) {
    uint32_t mss = half->receiver->mss ? half->receiver->mss : SEGMENT_USUAL;
    return seg->packet->payload_bytes < full_segment(half) || seg->packet->payload_bytes < mss / 2;
}

static inline void note_data(const struct segment_context *seg, const struct half_connection *half,
                             struct time_accounting *accounting) {
    accounting->last_short = seg->tcp->flags & TCP_PSH && is_short(seg, half);
    accounting->peer_replied = false;
    accounting->ack_held_ns = 0;
}

static NOINLINE struct time_accounting *begin_accounting(const struct segment_context *seg) {
    if (seg->sender->packets < ACCOUNTING_MIN_PACKETS)
        return NULL;
    struct time_accounting *accounting = pool_alloc(seg->pool, sizeof *accounting);
    if (accounting)
        *accounting = (struct time_accounting){
            .accounted_until_ns = seg->packet->time_ns,
            .doubled_ns = seg->packet->time_ns,
            .rto_count = rtos_of(seg->sender),
            .doubled_bytes = max64(seg->sender->flight_max, MIN_DOUBLED_BYTES)};
    return seg->sender->accounting = accounting;
}

/* Accounts the time until the segment, which brings data of this half-connection or an ACK of it,
 * and sets the state that the segment leaves. */
static ALWAYS_INLINE void account(const struct segment_context *seg,
                                  const struct half_connection *half, int64_t flight, bool data) {
    struct time_accounting *accounting = half->sender->accounting;
    if (seg->packet->time_ns >= accounting->accounted_until_ns)
        account_interval(seg, half->sender, accounting, data);
    if (data)
        note_data(seg, half, accounting);
    if (!accounting->slow_start_over)
        note_growth(seg, half->sender, accounting, flight);
    accounting->state = (uint8_t)state_of(half, accounting, flight);
}

/* The segment as an ACK of the other direction's data. If the receiver delayed its ACK of a short
 * segment by a delayed-ACK timer or more, that time is remembered. */
static void account_ack(const struct segment_context *seg, struct time_accounting *accounting,
                        bool data) {
    struct half_connection half = {seg->receiver, seg->sender};
    accounting->peer_replied |= data;
    if (half.sender->una_advanced_ns == seg->packet->time_ns) {
        int64_t delay = seg->packet->time_ns - half.sender->last_data_ns;
        delay -= half.sender->rtt.count ? least_sample(half.sender) : 0;
        accounting->ack_held_ns = accounting->last_short && delay >= MIN_ACK_DELAY_NS ? delay : 0;
    }
    account(seg, &half, stream_flight(half.sender), false);
}

void account_segment(const struct segment_context *seg, int64_t flight) {
    bool data = seg->packet->payload_bytes && !seg->effect.probe;
    struct half_connection half = {seg->sender, seg->receiver};
    if (!seg->packet->time_known || flight < 0)
        return;
    if (data && (seg->sender->accounting || begin_accounting(seg)))
        account(seg, &half, flight, true);
    if (seg->receiver->accounting && seg->effect.acknowledges)
        account_ack(seg, seg->receiver->accounting, data);
}
