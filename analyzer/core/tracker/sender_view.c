/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds flight and window as the sender of the data saw them, from any capture point.
 *
 * ACKs that pass the capture point take sender_rtt() until data that they released returns. They
 * are kept until a segment shows that the sender has processed them:
 *
 * - With timestamps, the TSecr of a segment is the TSval of the newest ACK that its sender had
 *   processed (RFC 7323 section 4.3). Several ACKs can have that TSval: then the newest which
 *   passed early enough counts.
 * - Without timestamps, the newest which passed sender_rtt() before the segment counts. A queue
 *   makes the RTT longer, so the sender had processed no more than this.
 *
 * A sender never sends above the right edge of the window, so an ACK is also processed if a segment
 * needs its window.
 *
 * The TSval of a segment is the time of its creation. A segment whose age at the capture point
 * exceeds the least age by more than a tick was queued in between, by its host or by a link. The
 * least age, at first that of the SYN, grows by the drift that clocks can have.
 *
 * At most MAX_PASSING ACKs are kept. Above DENSE_PASSING, an ACK replaces the last one if both
 * passed within one part of the RTT, or of the time that the kept ones cover, which is longer if a
 * queue before the capture point grew. If there are still too many, every second one is dropped:
 * the rest covers that time evenly. */
#include "tracker/steps.h"

#define MAX_PASSING    64u
#define DENSE_PASSING  32u                 /* if more are kept, they are so many per RTT */
#define FIRST_PASSING  1u                  /* most flows are short */
#define TICKS_MEASURED 64u                 /* before the tick of the clock is trusted */
#define DRIFT          10000               /* clocks differ by less than one part in so many */
#define AGE_MOST_NS    (UINT64_C(1) << 62) /* sums of two do not overflow */

int64_t view_rtt(const struct tcp_connection *connection, const struct tcp_stream *stream,
                 const struct sender_view *view) {
    int64_t rtt = sender_rtt(connection, stream);
    if (view->echo_rtt_ns == INT64_MAX)
        return rtt;
    return rtt < 0 ? view->echo_rtt_ns : min64(rtt, view->echo_rtt_ns);
}

/* --- ACKs ------------------------------------------------------------------------------------ */

/* Returns the state that the last ACK for `data` announced. The segment is that ACK, or data. */
static inline struct passing_ack newest_ack(const struct tcp_stream *data,
                                            const struct tcp_stream *acks, int64_t time_ns,
                                            uint32_t tsval) {
    int64_t edge = acks->window >= 0 ? data->snd_una + acks->window : INT64_MAX;
    if (acks->zero_window)
        edge = data->snd_una;
    return (struct passing_ack){data->snd_una, edge, time_ns, tsval};
}

void begin_view(const struct segment_context *seg, struct sender_view *view) {
    const struct tcp_stream *data = seg->sender;
    *view = (struct sender_view){
        .seen = newest_ack(data, seg->receiver, data->una_advanced_ns, seg->receiver->max_tsval),
        .echo_rtt_ns = INT64_MAX,
        .least_age_at_ns = data->first_tsval_ns};
}

/* Makes room for an ACK. */
static NOINLINE bool make_room(struct sender_view *view, struct pool *pool) {
    uint32_t kept = 0, room = view->room;
    bool grown = !view->first && pool_grow(pool, (void **)&view->passing, &room,
                                           sizeof *view->passing, FIRST_PASSING, MAX_PASSING);
    view->room = (uint8_t)room;
    if (grown)
        return true;
    unsigned step = view->first ? 1 : 2;
    view->thinned |= step == 2;
    for (uint32_t i = view->first + step - 1; i < view->end; i += step)
        view->passing[kept++] = view->passing[i];
    view->first = 0;
    view->end = (uint8_t)kept;
    return kept < view->room;
}

/* Returns true if the ACK takes the place of the last one, because enough others are kept. */
static NOINLINE bool replace_last(const struct segment_context *seg, struct sender_view *view,
                                  const struct passing_ack *ack) {
    struct passing_ack *last = &view->passing[view->end - 1];
    int64_t covered = last->time_ns - view->passing[view->first].time_ns;
    int64_t whole = max64(covered, sender_rtt(seg->connection, seg->receiver));
    if (ack->time_ns - last[-1].time_ns >= whole / DENSE_PASSING)
        return false;
    *last = *ack;
    view->thinned = true;
    return true;
}

void pass_ack(const struct segment_context *seg, struct sender_view *view) {
    const struct passing_ack *last =
        view->first < view->end ? &view->passing[view->end - 1] : &view->seen;
    struct passing_ack ack =
        newest_ack(seg->receiver, seg->sender, seg->packet->time_ns,
                   has_timestamps(seg) ? seg->tcp->timestamp_value : last->tsval);
    if ((ack.una == last->una && ack.edge == last->edge && ack.tsval == last->tsval) ||
        (int32_t)(ack.tsval - last->tsval) < 0)
        return;
    if (view->end - view->first > (int)DENSE_PASSING && replace_last(seg, view, &ack))
        return;
    if (view->end < view->room || make_room(view, seg->pool))
        view->passing[view->end++] = ack;
}

/* --- data ------------------------------------------------------------------------------------ */

/* Learns from the first segment that echoes a TSval how long the ACK took to the sender, and the
 * data back. */
static inline void learn_rtt(struct sender_view *view, const struct passing_ack *ack, int64_t now) {
    int64_t rtt = now - ack->time_ns;
    if (!view->thinned && rtt > 0 && rtt <= MAX_RTT_NS && rtt < view->echo_rtt_ns)
        view->echo_rtt_ns = rtt;
}

/* Sets how long the segment was queued at least. */
static void measure_queue(const struct segment_context *seg, struct sender_view *view) {
    const struct tcp_stream *stream = seg->sender;
    int64_t now = seg->packet->time_ns;
    uint32_t ticks = seg->tcp->timestamp_value - stream->first_tsval;
    view->queued_ns = 0;
    if (!view->tick_ns && stream->max_tsval - stream->first_tsval >= TICKS_MEASURED)
        view->tick_ns = (int32_t)tsval_tick_ns(stream);
    int64_t since = now - stream->first_tsval_ns; /* negative if the clock stepped back */
    if (!view->tick_ns || ticks > INT32_MAX || (uint64_t)since > AGE_MOST_NS)
        return;
    int64_t age = since - (int64_t)view->tick_ns * ticks;
    int64_t least = view->least_age_ns + max64(now - view->least_age_at_ns, 0) / DRIFT;
    view->queued_ns = max64(age - least - view->tick_ns, 0);
    if (age <= least) {
        view->least_age_ns = age;
        view->least_age_at_ns = now;
    }
}

/* Returns the latest time at which an ACK passed that the sender had surely processed, INT64_MIN if
 * the RTT to the sender is unknown. */
static inline int64_t latest_processed(const struct segment_context *seg,
                                       const struct sender_view *view) {
    int64_t rtt = view_rtt(seg->connection, seg->sender, view);
    int64_t unsure = view->queued_ns ? view->tick_ns : 0;
    return rtt < 0 ? INT64_MIN : seg->packet->time_ns - view->queued_ns - unsure - rtt;
}

/* Moves the view to the ACKs that passed until `latest`, and to those whose window the data needs.
 */
static inline void view_without_echo(struct sender_view *view, int64_t latest, int64_t end) {
    for (; view->first < view->end; view->first++) {
        const struct passing_ack *ack = &view->passing[view->first];
        if (ack->time_ns > latest && end <= view->seen.edge)
            return;
        view->seen = *ack;
    }
}

/* Moves the view to the newest ACK that `echo` shows to be processed. */
static inline void view_echo(const struct segment_context *seg, struct sender_view *view,
                             int64_t end) {
    uint32_t echo = seg->tcp->timestamp_echo;
    int64_t latest = INT64_MIN;
    bool computed = false;
    for (; view->first < view->end; view->first++) {
        const struct passing_ack *ack = &view->passing[view->first];
        if ((int32_t)(echo - ack->tsval) < 0)
            return;
        if (ack->tsval == echo && view->seen.tsval != echo) {
            learn_rtt(view, ack, seg->packet->time_ns);
        } else if (ack->tsval == echo) {
            if (!computed)
                latest = latest_processed(seg, view);
            computed = true;
            if (ack->time_ns > latest && end <= view->seen.edge)
                return;
        }
        view->seen = *ack;
    }
}

void view_data(const struct segment_context *seg, struct sender_view *view) {
    int64_t end = seg->sender->snd_nxt, seen_ns = view->seen.time_ns;
    uint32_t tsval = has_timestamps(seg) ? seg->tcp->timestamp_value : 0;
    if (has_timestamps(seg) && seg->receiver->timestamps) {
        measure_queue(seg, view);
        view_echo(seg, view, end);
    } else {
        int64_t latest = latest_processed(seg, view);
        view->unknown |= latest == INT64_MIN;
        view_without_echo(view, latest, end);
    }
    if (view->first == view->end) {
        view->first = view->end = 0;
        view->thinned = false;
    }
    view->same = view->seen.time_ns == seen_ns && view->tsval == tsval;
    view->tsval = tsval;
}
