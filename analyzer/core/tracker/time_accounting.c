/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the data of a direction in its sender's view (sender_view.c), so that the capture point
 * does not matter: moves the view to the time at which the sender created a segment, has
 * time_account.c account the gap before it, and keeps what that needs next: whether the segment
 * filled the receive window, and round trips (steady_flight.c).
 *
 * While bytes in flight double every few RTTs and nothing was lost, the network's time is slow
 * start (RFC 5681 section 3.1).
 *
 * A direction has this state from its 8th packet on. A full segment is the largest seen, or the MSS
 * if that is less. */
#include "tracker/steps.h"

#define RTTS_PER_DOUBLING   3        /* slow start doubles in one or two */
#define SLOW_START_CITED_NS 60000000 /* 30% of the shortest transfer whose shares are reported */
#define MIN_DOUBLED_BYTES   INT64_C(2000)

/* --- state ----------------------------------------------------------------------------------- */

static inline int64_t full_segment(const struct segment_context *seg) {
    int64_t most = seg->sender->segment_max, mss = seg->receiver->mss;
    return mss && mss < most ? mss : most;
}

/* One more full segment does not fit the window that the sender sees. */
static inline bool is_window_full(const struct segment_context *seg,
                                  const struct time_accounting *accounting) {
    int64_t edge = accounting->view.seen.edge;
    return edge != INT64_MAX && edge - accounting->end < full_segment(seg);
}

/* --- intervals ------------------------------------------------------------------------------- */

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
    accounting->slow_start_ns = sender_time(seg->connection, sender, SENDER_NETWORK);
    struct steady_flight *steady = accounting->slow_start_ns >= SLOW_START_CITED_NS
                                       ? steady_flight(seg, accounting)
                                       : accounting->steady;
    if (steady)
        steady->longest[WAIT_SLOW_START] = wait_before(seg, accounting->slow_start_ns);
}

/* --- segments -------------------------------------------------------------------------------- */

static inline void note_data(const struct segment_context *seg,
                             struct time_accounting *accounting) {
    accounting->end = seg->sender->snd_nxt;
    accounting->una = accounting->view.seen.una;
    bool pushed = seg->tcp->flags & TCP_PSH;
    if (accounting->steady) {
        accounting->steady->pushes += pushed;
        accounting->steady->queued += accounting->view.queued_ns > 0;
    }
}

static NOINLINE struct time_accounting *begin_accounting(const struct segment_context *seg) {
    if (seg->sender->packets < ACCOUNTING_MIN_PACKETS)
        return NULL;
    struct time_accounting *accounting = pool_alloc(seg->pool, sizeof *accounting);
    if (!accounting)
        return NULL;
    *accounting = (struct time_accounting){.created_ns = seg->packet->time_ns,
                                           .doubled_ns = seg->packet->time_ns,
                                           .doubled_bytes = doubled_bytes(seg->sender->flight_max)};
    begin_view(seg, &accounting->view);
    return seg->sender->accounting = accounting;
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
    int64_t gap_ns = created - accounting->created_ns;
    if (gap_ns > steady->gap_ns) {
        steady->gap_ns = gap_ns;
        steady->gap = wait_before(seg, gap_ns);
        steady->late = is_late_release(seg, accounting, created, gap_ns);
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
    account_time(seg);
    if (accounting->view.seen.una != una)
        note_round(seg, accounting, una, created);
    accounting->created_ns = max64(created, accounting->created_ns);
    note_data(seg, accounting);
    if (!accounting->slow_start_over)
        note_growth(seg, accounting);
    accounting->blocked = is_window_full(seg, accounting);
}

void account_segment(const struct segment_context *seg, int64_t flight) {
    bool data = seg->packet->payload_bytes && !seg->effect.probe;
    if (!seg->packet->time_known)
        return;
    if (data && flight >= 0 && (seg->sender->accounting || begin_accounting(seg)))
        account_data(seg);
    else
        account_time(seg);
    if (flight >= 0 && seg->receiver->accounting && seg->effect.acknowledges)
        pass_ack(seg, &seg->receiver->accounting->view);
    account_after(seg);
}
