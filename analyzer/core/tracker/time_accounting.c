/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts each interval between two data segments to one limiting factor: the state that the first
 * segment left in the sender's view (sender_view.c), so that the capture point does not matter. The
 * segment that ends the interval may correct that:
 *
 * - A retransmission after an RTO makes the interval RTO time.
 * - If no data was in flight when the sender created the segment, or the last segment was short,
 *   new data shows whether the application was idle or waited for an ACK: data that follows an ACK
 *   within the time that the ACK takes to the sender, and the data back, was released by it. If the
 *   receiver delayed that ACK, the time until it is delayed-ACK time.
 * - The application was not idle while the segment was queued between the sender's TCP and the
 *   capture point (qdisc, shaper), nor after a full segment without PSH, which had more behind it.
 * - Segments that the sender created at once, with the same view, may be spread by the path. If
 * they filled the receive window, the time between them is the window's, too.
 * - Time without room in the send buffer is recognized by whole round trips (steady_flight.c).
 * - While bytes in flight double every few RTTs and nothing was lost, network time is slow start
 *   (RFC 5681 section 3.1).
 *
 * Accounting begins with the 8th packet of a direction, idle time with the first if the flow has
 * turns. A full segment is the largest seen, or the MSS if that is less. */
#include "tracker/steps.h"
#include "tracker/turns.h"

#define MIN_ACK_DELAY_NS    30000000   /* the shortest delayed-ACK timer, Linux's, is 40 ms */
#define MAX_SPACING_NS      MIN_RTO_NS /* between segments of one write: pacing or a shaper */
#define RTTS_PER_DOUBLING   3          /* slow start doubles in one or two */
#define SLOW_START_CITED_NS 60000000   /* 30% of the shortest transfer whose shares are reported */
#define MIN_DOUBLED_BYTES   INT64_C(2000)
#define MIN_WINDOW_WAIT_NS  10000000 /* a shorter one gets no memory for its place */

/* After a segment. The first two may be pauses; the others are limiting factors. */
enum limit_state {
    STATE_OPEN,  /* nothing but the congestion window held the next segment back */
    STATE_SHORT, /* the last segment was short: there may be no more data */
    STATE_WINDOW = LIMIT_WINDOW,
    STATE_RECOVERY = LIMIT_RECOVERY
};
_Static_assert(STATE_WINDOW > STATE_SHORT && STATE_RECOVERY > STATE_SHORT, "no limiting factors");

/* --- state ----------------------------------------------------------------------------------- */

static inline int64_t full_segment(const struct segment_context *seg) {
    int64_t most = seg->sender->segment_max, mss = seg->receiver->mss;
    return mss && mss < most ? mss : most;
}

static inline bool is_window_full(const struct segment_context *seg,
                                  const struct time_accounting *accounting) {
    int64_t edge = accounting->view.seen.edge;
    return edge != INT64_MAX && edge - accounting->end < full_segment(seg);
}

/* Until the sender has processed the ACK that ends the recovery. */
static inline bool is_recovering(const struct tcp_stream *sender,
                                 const struct time_accounting *accounting) {
    const struct tcp_recovery_state *recovery = sender->recovery;
    int64_t una = accounting->view.seen.una;
    return recovery && ((recovery->recovery_frame && recovery->recovery_point > una) ||
                        (recovery->rto_count && recovery->rto_point > una));
}

static inline enum limit_state state_of(const struct segment_context *seg,
                                        const struct time_accounting *accounting) {
    if (is_window_full(seg, accounting))
        return STATE_WINDOW;
    if (is_recovering(seg->sender, accounting))
        return STATE_RECOVERY;
    return accounting->last_short ? STATE_SHORT : STATE_OPEN;
}

/* Suspected RTOs count: the sender was stalled, and its data was lost upstream. */
static inline uint16_t rtos_of(const struct tcp_stream *sender) {
    const struct tcp_recovery_state *recovery = sender->recovery;
    return recovery ? (uint16_t)(recovery->rto_count + recovery->suspected_rto_count) : 0;
}

static inline uint32_t up_to_4s(int64_t ns) {
    return (uint32_t)min64(ns, UINT32_MAX);
}

/* --- intervals ------------------------------------------------------------------------------- */

/* Returns how long the application was idle in an interval of `span` ns, and sets how long a
 * delayed ACK held the data back. If the peer sent data in it, it was the turn of this endpoint's
 * application: `waiting` is the time until that data reached it. */
static int64_t idle_time(const struct segment_context *seg,
                         const struct time_accounting *accounting, int64_t span, int64_t *held,
                         int64_t *waiting) {
    const struct sender_view *view = &accounting->view;
    bool acknowledged = view->seen.una >= accounting->end;
    bool is_short = accounting->state == STATE_SHORT;
    bool more = !is_short && !accounting->last_pushed && !accounting->peer_replied &&
                span <= MAX_SPACING_NS;
    if ((!acknowledged && !is_short) || more)
        return 0;
    /* An ACK takes so long to the sender, and the data that it releases back. */
    int64_t reaction = max64(view_rtt(seg->connection, seg->sender, view), 0) + SLACK_NS;
    int64_t since = max64(accounting->accounted_until_ns, view->seen.time_ns);
    int64_t idle = accounting->accounted_until_ns + span - since - reaction;
    bool released = acknowledged && idle <= 0 && !accounting->peer_replied;
    if (released)
        *held = min64(accounting->ack_held_ns, span);
    if (accounting->peer_replied || (is_short && !released))
        idle = span;
    idle = min64(max64(idle, 0), span);
    if (accounting->peer_replied) {
        int64_t until = add_ns(seg->receiver->last_data_ns, reaction - SLACK_NS);
        *waiting = min64(max64(until - accounting->accounted_until_ns, 0), idle);
    }
    return idle;
}

/* Returns true if the path may have spread segments that the sender created at the same time.
 * Without timestamps, a sender that paces them looks the same. */
static inline bool is_one_burst(const struct segment_context *seg, const struct sender_view *view,
                                int64_t span) {
    return view->same && span <= view_rtt(seg->connection, seg->sender, view);
}

/* Without timestamps, a queue before the capture point may have spread the data that the
 * application wrote before an idle time. */
static NOINLINE void note_idle(const struct segment_context *seg, struct steady_flight *steady,
                               int64_t idle, int64_t network) {
    if (idle > 0) {
        int64_t most = max64(path_rtt(seg->connection), 0) + HIDDEN_QUEUE_NS;
        steady->unsure_ns += min64(steady->active_ns, most);
        steady->active_ns = 0;
    }
    steady->active_ns += network;
}

/* Adds `network` ns to the time since the view of the sender moved. */
static inline void note_network(const struct segment_context *seg,
                                struct time_accounting *accounting, int64_t span, int64_t idle,
                                int64_t network) {
    bool one = network && is_one_burst(seg, &accounting->view, span);
    accounting->burst_ns = one ? up_to_4s(accounting->burst_ns + network) : 0;
    if (accounting->steady && accounting->steady->begun && !has_timestamps(seg))
        note_idle(seg, accounting->steady, idle, network);
}

/* Adds the parts of an interval to the log: an ACK was awaited first, and the application was idle
 * at the end. */
static NOINLINE void log_interval(const struct segment_context *seg, struct limit_log *log,
                                  int64_t start, enum limit_cause rest, const int64_t parts[4]) {
    const unsigned kinds[] = {rest, LIMIT_DELAYED_ACK, SPAN_WAITING, LIMIT_IDLE};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; start += parts[i++])
        limit_log_add(log, seg->pool, kinds[i], start, parts[i]);
}

static inline struct limit_log *log_of(const struct tcp_stream *sender) {
    return recovery_of(sender)->limits;
}

/* Moves network time, the newest first, to another factor. */
static void move_network(const struct segment_context *seg, struct time_accounting *accounting,
                         const struct tcp_stream *sender, int64_t ns, enum limit_cause cause) {
    accounting->ns[LIMIT_NETWORK] -= ns;
    accounting->ns[cause] += ns;
    if (log_of(sender))
        limit_log_move(log_of(sender), seg->pool, ns, cause);
}

/* Accounts `span` ns, the interval that the segment ends, with the view in which its sender created
 * it. */
static inline void account_interval(const struct segment_context *seg,
                                    struct time_accounting *accounting, int64_t span) {
    int64_t held = 0, waiting = 0;
    uint16_t rtos = rtos_of(seg->sender);
    struct limit_log *log = log_of(seg->sender);
    if (rtos != accounting->rto_count) {
        accounting->ns[LIMIT_TIMEOUT] += span;
        end_run(accounting->steady);
    } else if (accounting->state == STATE_RECOVERY) {
        accounting->ns[LIMIT_RECOVERY] += span;
        if (log)
            limit_log_add(log, seg->pool, LIMIT_RECOVERY, accounting->accounted_until_ns, span);
        end_run(accounting->steady);
    } else {
        int64_t idle = idle_time(seg, accounting, span, &held, &waiting);
        enum limit_cause rest = accounting->state == STATE_WINDOW ? LIMIT_WINDOW : LIMIT_NETWORK;
        accounting->ns[LIMIT_IDLE] += idle;
        accounting->waiting_ns += waiting;
        accounting->ns[LIMIT_DELAYED_ACK] += held;
        accounting->ns[rest] += span - idle - held;
        if (log)
            log_interval(seg, log, accounting->accounted_until_ns, rest,
                         (const int64_t[]){span - idle - held, held, waiting, idle - waiting});
        note_network(seg, accounting, span, idle, rest == LIMIT_NETWORK ? span - idle - held : 0);
        if (accounting->steady || held || (rest == LIMIT_WINDOW && span >= MIN_WINDOW_WAIT_NS))
            note_waits(seg, accounting, idle, held, rest, span - idle - held);
    }
    accounting->rto_count = rtos;
    accounting->accounted_until_ns += span;
}

static inline uint32_t doubled_bytes(int64_t flight) {
    return (uint32_t)min64(max64(flight, MIN_DOUBLED_BYTES), UINT32_MAX);
}

/* Slow start ends with a loss, or if bytes in flight no longer double. */
static NOINLINE void note_growth(const struct segment_context *seg,
                                 struct time_accounting *accounting) {
    const struct tcp_stream *sender = seg->sender;
    int64_t now = seg->packet->time_ns, flight = accounting->end - accounting->view.seen.una;
    int64_t rtt = max64(path_rtt(seg->connection), 1000 * (int64_t)sender->srtt_us);
    accounting->slow_start_over =
        recovery_of(sender)->retransmissions ||
        (rtt > 0 && now - accounting->doubled_ns > RTTS_PER_DOUBLING * rtt + SLACK_NS);
    if (accounting->slow_start_over || flight < 2 * (int64_t)accounting->doubled_bytes)
        return;
    accounting->doubled_bytes = doubled_bytes(flight);
    accounting->doubled_ns = now;
    move_network(seg, accounting, sender, accounting->ns[LIMIT_NETWORK], LIMIT_SLOW_START);
    int64_t slow_start_ns = accounting->ns[LIMIT_SLOW_START];
    struct steady_flight *steady =
        slow_start_ns >= SLOW_START_CITED_NS ? steady_flight(seg, accounting) : accounting->steady;
    if (steady)
        steady->longest[WAIT_SLOW_START] = wait_before(seg, slow_start_ns);
}

/* --- segments -------------------------------------------------------------------------------- */

/* A stream may never send a full segment, so one under half the MSS is short, too. A sender with
 * more data sets PSH rarely: full segments in a row that have it are one write each. */
static inline bool is_short(const struct segment_context *seg) {
    uint32_t mss = seg->receiver->mss ? seg->receiver->mss : SEGMENT_USUAL;
    return seg->packet->payload_bytes < full_segment(seg) || seg->packet->payload_bytes < mss / 2;
}

static inline void note_data(const struct segment_context *seg,
                             struct time_accounting *accounting) {
    accounting->end = seg->sender->snd_nxt;
    bool pushed = seg->tcp->flags & TCP_PSH;
    if (accounting->steady) {
        accounting->steady->pushes += pushed;
        accounting->steady->queued += accounting->view.queued_ns > 0;
    }
    accounting->last_short = pushed && (accounting->last_pushed || is_short(seg));
    accounting->last_pushed = pushed;
    accounting->peer_replied = false;
    accounting->ack_held_ns = 0;
}

static NOINLINE struct time_accounting *begin_accounting(const struct segment_context *seg) {
    if (seg->sender->packets < ACCOUNTING_MIN_PACKETS)
        return NULL;
    struct time_accounting *accounting = pool_alloc(seg->pool, sizeof *accounting);
    if (!accounting)
        return NULL;
    *accounting = (struct time_accounting){.accounted_until_ns = seg->packet->time_ns,
                                           .doubled_ns = seg->packet->time_ns,
                                           .rto_count = rtos_of(seg->sender),
                                           .doubled_bytes = doubled_bytes(seg->sender->flight_max)};
    begin_view(seg, &accounting->view);
    accounting->ns[LIMIT_IDLE] =
        idle_in_turns(seg->connection, segment_direction(seg), &accounting->waiting_ns);
    struct limit_log *log = limit_log(seg, seg->sender);
    if (log)
        log_turns(seg->connection, segment_direction(seg), log, seg->pool);
    return seg->sender->accounting = accounting;
}

/* The segments since the sender's view moved have filled the receive window together. */
static void fill_window(const struct segment_context *seg, struct time_accounting *accounting) {
    int64_t moved = min64(accounting->burst_ns, accounting->ns[LIMIT_NETWORK]);
    move_network(seg, accounting, seg->sender, moved, LIMIT_WINDOW);
    if (accounting->steady && !has_timestamps(seg))
        accounting->steady->spread_ns += moved;
    accounting->burst_ns = 0;
}

/* Before a segment, created when new ACKs had advanced `una`. */
static inline void note_round(const struct segment_context *seg, struct time_accounting *accounting,
                              int64_t una, int64_t created) {
    struct steady_flight *steady = accounting->steady;
    if (!steady || !steady->begun) {
        begin_steady_flight(seg, accounting);
        return;
    }
    steady->highest = max64(steady->highest, accounting->end - una);
    steady->most = max64(steady->most, steady->highest);
    int64_t gap_ns = created - accounting->accounted_until_ns;
    if (gap_ns > steady->gap_ns) {
        steady->gap_ns = gap_ns;
        steady->gap = wait_before(seg, gap_ns);
    }
    if (accounting->view.seen.una >= steady->end)
        end_round(seg, accounting, created);
}

static ALWAYS_INLINE void account_data(const struct segment_context *seg) {
    struct time_accounting *accounting = seg->sender->accounting;
    int64_t una = accounting->view.seen.una;
    view_data(seg, &accounting->view);
    /* A queue before the capture point stretches intervals: they end when segments are created. */
    int64_t created = seg->packet->time_ns - accounting->view.queued_ns;
    if (accounting->view.seen.una != una)
        note_round(seg, accounting, una, created);
    if (created >= accounting->accounted_until_ns)
        account_interval(seg, accounting, created - accounting->accounted_until_ns);
    note_data(seg, accounting);
    if (!accounting->slow_start_over)
        note_growth(seg, accounting);
    accounting->state = (uint8_t)state_of(seg, accounting);
    if (accounting->state == STATE_WINDOW && accounting->burst_ns)
        fill_window(seg, accounting);
}

/* The segment as an ACK of the other direction's data. If the receiver delayed its ACK of a short
 * segment by a delayed-ACK timer or more, that time is remembered. Time in which the window stays
 * zero, and the last recovery, may end without data, so ACKs end them. */
static void account_ack(const struct segment_context *seg, struct time_accounting *accounting,
                        bool data) {
    const struct tcp_stream *sender = seg->receiver;
    accounting->peer_replied |= data;
    if (sender->una_advanced_ns == seg->packet->time_ns) {
        int64_t delay = seg->packet->time_ns - sender->last_data_ns;
        delay -= sender->rtt.count ? least_sample(sender) : 0;
        accounting->ack_held_ns =
            accounting->last_short && delay >= MIN_ACK_DELAY_NS ? up_to_4s(delay) : 0;
    }
    int64_t span = seg->packet->time_ns - accounting->accounted_until_ns;
    bool closed = seg->sender->zero_window && accounting->state == STATE_WINDOW;
    if ((closed || accounting->state == STATE_RECOVERY) && span > 0) {
        accounting->ns[accounting->state] += span;
        if (log_of(sender))
            limit_log_add(log_of(sender), seg->pool, accounting->state,
                          accounting->accounted_until_ns, span);
        accounting->accounted_until_ns = seg->packet->time_ns;
    }
    pass_ack(seg, &accounting->view);
}

void account_segment(const struct segment_context *seg, int64_t flight) {
    bool data = seg->packet->payload_bytes && !seg->effect.probe;
    if (!seg->packet->time_known || flight < 0)
        return;
    if (data && (seg->sender->accounting || begin_accounting(seg)))
        account_data(seg);
    if (seg->receiver->accounting && seg->effect.acknowledges)
        account_ack(seg, seg->receiver->accounting, data);
}
