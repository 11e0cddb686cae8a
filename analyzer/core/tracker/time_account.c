/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts the life of a flow by what its endpoints waited for: columns time_*_ns of `flows`.
 *
 * One cursor moves along the flow. Data of either direction closes the gap since the data before
 * it; pure ACKs only leave facts behind: RTT samples, the ACK that ends a recovery, a delayed ACK,
 * a window that opened. So the parts sum to the flow's life. The gap between two data segments is
 * divided by the first rule that fits (docs/tables.md, "Where the time went"):
 *
 * - The segment answers the other endpoint's data: the least round trip to its sender is path, a
 *   longer one queue, the rest its sender's own time.
 * - It is retransmitted after an RTO, or its sender had not yet received the ACK that ends its
 *   recovery: loss. That ACK takes the round trip to the sender, and the next segment back.
 * - The bottleneck is busy with this flow: transfer.
 * - It did not fit the receive window: window.
 * - No ACK released it: its sender's application paused. A delayed ACK is the pause of its sender.
 * - An ACK released it: path, and queue by the share of the round trip above the least.
 *
 * Later evidence moves time between parts: a spurious RTO, time without room in the send buffer
 * (steady_flight.c), and at the end the pauses that belong to no dialogue. */
#include "tracker/time_account.h"

#include "tracker/steps.h"
#include "tracker/turns.h"

#define LONG_PAUSE_NS INT64_C(5000000000)  /* nobody waits for a client that pauses longer */
#define PUSH_PAUSE_NS INT64_C(60000000000) /* a server that pauses longer in its data may push */
#define LONE_PAUSE_NS                                                                              \
    INT64_C(1000000000) /* nor for one of which the dialogue has no other like it */
#define ACK_DELAY_MOST INT64_C(220000000) /* the longest delayed-ACK timer in use is 200 ms */
#define EXACT_NS       100000             /* a sender's response to an ACK, */
#define GAP_PART       4                  /* of the round trip: less is the spacing of writes */
#define EXACT_PART     64                 /* and of the round trip to it */
#define HELD_RTTS      4                  /* by which a delayed ACK exceeds the round trip */
#define BURST_PART     2                  /* of the spacing that would fill the round trip */
#define QUEUE_PART     16                 /* of the least round trip: less is jitter */
#define REQUEST_MOST   10                 /* segments: more data without an answer is an upload */
#define ALIKE_LEAST    400                /* bytes: a smaller one is no full segment */
#define EVEN_BLOCK     INT64_C(8)         /* segments whose spacing is compared */
#define EVEN_PART      8                  /* of the spacing: blocks differ by less */
#define EVEN_LATE      4                  /* times the spacing: a segment did not follow */
#define EVEN_MOST_US   INT64_C(60000)     /* a longer gap is no spacing */
#define EVEN_SURE      3                  /* blocks: less may have been held up together */
#define EVEN_RTTS      2                  /* that an even spacing lasts */
#define REDUCED_PERMIL 900                /* of the flight before the last loss */

/* --- parts ----------------------------------------------------------------------------------- */

/* Returns the unusual part of the account for writing, NULL without memory. */
static struct unusual_time *unusual_time(struct time_account *account, struct pool *pool) {
    if (!account->unusual)
        account->unusual = pool_zeroed(pool, sizeof *account->unusual);
    account->incomplete |= !account->unusual;
    return account->unusual;
}

static NOINLINE struct sending_unusual *unusual_state(struct tcp_connection *connection,
                                                      struct pool *pool, unsigned direction) {
    struct unusual_time *unusual = unusual_time(&connection->time, pool);
    return unusual ? &unusual->sending[direction] : NULL;
}

void time_account_free(struct time_account *account, struct pool *pool) {
    pool_release(pool, account->unusual, 1, sizeof *account->unusual);
}

static NOINLINE void add_unusual_part(struct time_account *account, struct pool *pool,
                                      unsigned place, int64_t ns) {
    struct unusual_time *unusual = ns ? unusual_time(account, pool) : NULL;
    if (unusual)
        unusual->parts[place - USUAL_PARTS] += ns;
}

static inline void add_to_part(struct time_account *account, struct pool *pool, enum time_part part,
                               int64_t ns) {
    unsigned place = part_place(part);
    if (place < USUAL_PARTS)
        account->usual[place] += ns;
    else
        add_unusual_part(account, pool, place, ns);
}

/* The endpoint that sends data of `direction` was waited for. */
static inline void add_part(struct tcp_connection *connection, struct pool *pool,
                            unsigned direction, enum time_part part, int64_t ns) {
    struct time_account *account = &connection->time;
    add_to_part(account, pool, part, ns);
    if (connection->spans)
        span_log_add(connection->spans, pool, part, direction, account->cursor_ns, ns);
    account->cursor_ns += ns;
}

int64_t time_move(struct tcp_connection *connection, struct pool *pool, enum time_part from,
                  enum time_part to, unsigned direction, int64_t ns) {
    struct time_account *account = &connection->time;
    int64_t moved = max64(min64(ns, part_ns(account, from)), 0);
    add_to_part(account, pool, from, -moved);
    add_to_part(account, pool, to, moved);
    if (connection->spans)
        span_log_move(connection->spans, pool, from, to, direction, moved);
    return moved;
}

/* Accounts `ns` more to what the sender of a direction waited for. */
static NOINLINE void add_unusual_time(struct tcp_connection *connection, struct pool *pool,
                                      unsigned direction, enum sender_time time, int64_t ns) {
    struct sending_unusual *unusual = ns ? unusual_state(connection, pool, direction) : NULL;
    if (unusual)
        unusual->ns[time - SENDER_USUAL] += ns;
}

void add_sender_time(struct tcp_connection *connection, struct pool *pool, unsigned direction,
                     enum sender_time time, int64_t ns) {
    if (time < SENDER_USUAL)
        connection->time.sending[direction].ns[time] += ns;
    else
        add_unusual_time(connection, pool, direction, time, ns);
}

static void move_sender_time(struct tcp_connection *connection, struct pool *pool,
                             unsigned direction, enum sender_time from, enum sender_time to,
                             int64_t ns) {
    const struct tcp_stream *stream = &connection->streams[direction];
    int64_t moved = max64(min64(ns, sender_time(connection, stream, from)), 0);
    add_sender_time(connection, pool, direction, from, -moved);
    add_sender_time(connection, pool, direction, to, moved);
}

/* The data of `direction` waited for one part. */
static void spend_in(struct tcp_connection *connection, struct pool *pool, unsigned direction,
                     enum time_part part, int64_t ns) {
    static const uint8_t times[PARTS] = {
        [PART_LOSS] = SENDER_LOSS,         [PART_QUEUE] = SENDER_NETWORK,
        [PART_PATH] = SENDER_NETWORK,      [PART_WINDOW] = SENDER_WINDOW,
        [PART_TRANSFER] = SENDER_NETWORK,  [PART_UNKNOWN] = SENDER_UNKNOWN,
        [PART_SEND_BUFFER] = SENDER_BUFFER};
    add_sender_time(connection, pool, direction, times[part], ns);
    add_part(connection, pool, direction, part, ns);
}

static inline void spend(const struct segment_context *seg, enum time_part part, int64_t ns) {
    spend_in(seg->connection, seg->pool, segment_direction(seg), part, ns);
}

/* An answer was on its way. */
static inline void spend_on_way(const struct segment_context *seg, enum time_part part,
                                int64_t ns) {
    add_part(seg->connection, seg->pool, segment_direction(seg), part, ns);
}

/* Returns the direction of the requests: of the turns, else by the ports, else the initiator's. */
static unsigned requests_of(const struct tcp_connection *connection) {
    if (connection->turns)
        return connection->turns->requester;
    return connection->requester == REQUESTER_UNKNOWN ? 0 : connection->requester;
}

/* Returns whose time a pause is: none of a client that pauses long, and not known if a server says
 * more of itself after so long. */
static enum time_part part_of_pause(bool client, bool within, int64_t ns) {
    if (client)
        return ns > LONG_PAUSE_NS ? PART_IDLE : PART_CLIENT;
    return within && ns > PUSH_PAUSE_NS ? PART_UNKNOWN : PART_SERVER;
}

/* The application of the endpoint that sends `direction` let `ns` pass; `before`: between a
 * response and the next request. */
static void add_pause(const struct segment_context *seg, unsigned direction, int64_t ns,
                      bool before) {
    struct tcp_connection *connection = seg->connection;
    struct time_account *account = &connection->time;
    bool client = direction == requests_of(connection), own = direction == segment_direction(seg);
    enum time_part part = part_of_pause(client, own && !before, ns);
    add_sender_time(connection, seg->pool, segment_direction(seg),
                    own ? SENDER_PAUSE : SENDER_DELAYED_ACK, ns);
    add_part(connection, seg->pool, segment_direction(seg), part, ns);
    if (part == PART_IDLE || part == PART_UNKNOWN)
        return;
    if (!connection->turns)
        account->stream_pause_ns += ns;
    if (client && before && ns > account->pause_2nd_ns)
        account->pause_2nd_ns = ns;
    if (account->pause_2nd_ns > account->pause_ns) {
        account->pause_2nd_ns = account->pause_ns;
        account->pause_ns = ns;
    }
}

/* --- the path -------------------------------------------------------------------------------- */

static inline struct sending_state *sending_of(const struct segment_context *seg) {
    return &seg->connection->time.sending[segment_direction(seg)];
}

static inline struct sending_unusual *unusual_sending(const struct segment_context *seg) {
    return unusual_state(seg->connection, seg->pool, segment_direction(seg));
}

/* Returns how much longer than the least the round trip of the sender's data is: behind the capture
 * point by its last sample, before it by the age of the segment. */
static int64_t queue_of(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    int64_t latest = 1000 * (int64_t)sending_of(seg)->rtt_us;
    int64_t behind = latest && sender->rtt.count ? latest - least_sample(sender) : 0;
    return max64(behind, 0) + (sender->accounting ? sender->accounting->view.queued_ns : 0);
}

/* Segments follow one another at the spacing of the bottleneck while a queue stands. */
static bool fills_queue(const struct segment_context *seg, int64_t gap_ns, int64_t queue_ns) {
    return queue_ns >= gap_ns && queue_ns >= max64(path_rtt(seg->connection), 0) / QUEUE_PART;
}

/* Segments of a size, one after another at the same spacing for two round trips or more, come from
 * a bottleneck that is busy, unless they have been closer together before: then the sender paces.
 * It is seen in blocks, because single segments are late. Only where no timestamps show a queue
 * before the capture point. */
static bool is_even(const struct segment_context *seg) {
    const struct time_accounting *accounting = seg->sender->accounting;
    const struct sending_state *sending = sending_of(seg);
    if (!accounting || sending->pushed || sending->blocked || seg->sender->timestamps)
        return false;
    int64_t rtt = path_rtt(seg->connection),
            near = view_rtt(seg->connection, seg->sender, &accounting->view);
    bool far = near > SLACK_NS && NEAR_PART * near > rtt && accounting->spacing_us;
    int64_t block_us = accounting->even_block_us, least_us = EVEN_BLOCK * accounting->spacing_us;
    return far && 1000 * block_us * accounting->even_blocks > EVEN_RTTS * rtt &&
           EVEN_PART * (block_us - least_us) <= 2 * block_us;
}

static void end_even_run(struct time_accounting *accounting) {
    accounting->block_us = accounting->block_most_us = accounting->even_block_us = 0;
    accounting->even_blocks = accounting->block_count = 0;
}

/* The present block is complete. */
static void end_block(struct time_accounting *accounting) {
    int64_t us = accounting->block_us, before = accounting->even_block_us;
    int64_t gap_us = us / EVEN_BLOCK, least = accounting->spacing_us;
    bool smooth = 2 * EVEN_BLOCK * (int64_t)accounting->block_most_us <= 3 * us;
    bool even = smooth && EVEN_PART * max64(us - before, before - us) <= us;
    if (even && accounting->even_blocks >= EVEN_SURE && (!least || gap_us < least))
        accounting->spacing_us = (uint16_t)max64(gap_us, 1);
    accounting->even_blocks += even && accounting->even_blocks < UINT16_MAX;
    accounting->even_blocks = even ? accounting->even_blocks : 0;
    accounting->even_block_us = smooth ? accounting->block_us : 0;
    accounting->block_us = accounting->block_most_us = accounting->block_count = 0;
}

/* A gap before a segment that continues the data of its direction. Segments that were lost behind
 * the bottleneck had their share of it, those that it dropped had none. */
static void note_spacing(const struct segment_context *seg, int64_t gap_ns) {
    struct time_accounting *accounting = seg->sender->accounting;
    uint32_t payload = seg->packet->payload_bytes;
    if (!accounting || seg->sender->timestamps)
        return;
    int64_t missing = max64(seg->effect.sequence - accounting->end, 0) / payload;
    int64_t gap_us = gap_ns / 1000, usual = accounting->even_block_us;
    if (usual && 2 * EVEN_BLOCK * gap_us > 3 * usual)
        gap_us /= 1 + missing;
    bool late = gap_us > EVEN_MOST_US || (usual && EVEN_BLOCK * gap_us > EVEN_LATE * usual);
    if (late || payload != sending_of(seg)->payload) {
        end_even_run(accounting);
        return;
    }
    accounting->block_us += (uint32_t)gap_us;
    accounting->block_most_us = (uint32_t)max64(accounting->block_most_us, gap_us);
    if (++accounting->block_count == EVEN_BLOCK)
        end_block(accounting);
}

/* The flight leaves back to back: much faster than if it filled the round trip. */
static bool is_burst(const struct segment_context *seg, int64_t gap_ns) {
    const struct tcp_stream *sender = seg->sender;
    const struct time_accounting *accounting = sender->accounting;
    int64_t rtt = path_rtt(seg->connection);
    int64_t flight =
        accounting ? accounting->end - accounting->view.seen.una : stream_flight(sender);
    int64_t segments = max64(flight, 0) / max64(sender->last_payload, 1);
    return rtt >= 0 && gap_ns <= rtt / (BURST_PART * max64(segments, 1));
}

/* The network alone held the sender back. */
static inline void note_active(const struct segment_context *seg, int64_t ns) {
    const struct time_accounting *accounting = seg->sender->accounting;
    if (accounting && accounting->steady)
        accounting->steady->active_ns += ns;
}

/* Without timestamps, a queue before the capture point may have spread the data that the
 * application wrote before a pause. */
static inline void note_pause_after(const struct segment_context *seg) {
    const struct time_accounting *accounting = seg->sender->accounting;
    struct steady_flight *steady = accounting ? accounting->steady : NULL;
    if (!steady)
        return;
    int64_t most = max64(path_rtt(seg->connection), 0) + HIDDEN_QUEUE_NS;
    steady->unsure_ns += min64(steady->active_ns, most);
    steady->active_ns = 0;
}

/* `ns` of the path passed, or of transfer: the path may have spread segments that the sender
 * created at once. If they fill the receive window, the time between them is the window's
 * (note_sent()). */
static void note_burst(const struct segment_context *seg, int64_t ns) {
    struct sending_state *sending = sending_of(seg);
    const struct time_accounting *accounting = seg->sender->accounting;
    bool burst = accounting && accounting->view.same &&
                 ns <= view_rtt(seg->connection, seg->sender, &accounting->view);
    sending->burst_ns = burst ? (uint32_t)min64(sending->burst_ns + ns, UINT32_MAX) : 0;
}

/* The bottleneck was busy with this flow; `seen`: its queue or its shaper was. */
static void add_transfer(const struct segment_context *seg, int64_t ns, bool seen) {
    if (seg->sender->accounting && seen)
        seg->sender->accounting->transfer_ns += ns;
    if (!seen)
        note_burst(seg, ns);
    note_active(seg, ns);
    struct sending_unusual *recovering = sending_of(seg)->recovering ? unusual_sending(seg) : NULL;
    if (recovering)
        recovering->recovery_ns += ns;
    spend(seg, PART_TRANSFER, ns);
}

/* The part of the path in which the congestion window is below its level before the last loss. */
static void note_reduced(const struct segment_context *seg, int64_t path_ns) {
    struct time_account *account = &seg->connection->time;
    unsigned direction = segment_direction(seg);
    int64_t peak = unusual_of(account, direction)->peak_bytes;
    if (peak && 1000 * stream_flight(seg->sender) < REDUCED_PERMIL * peak)
        account->unusual->sending[direction].reduced_path_ns += path_ns;
}

/* An ACK released the segment. */
static void add_round_trip(const struct segment_context *seg, int64_t ns, int64_t queue_ns) {
    int64_t least = path_rtt(seg->connection);
    if (least < 0) {
        spend(seg, PART_UNKNOWN, ns);
        return;
    }
    double share = queue_ns > 0 ? (double)queue_ns / (double)(queue_ns + max64(least, 1)) : 0;
    int64_t queued = (int64_t)((double)ns * share);
    note_active(seg, ns);
    note_reduced(seg, ns - queued);
    spend(seg, PART_PATH, ns - queued);
    spend(seg, PART_QUEUE, queued);
}

/* --- gaps ------------------------------------------------------------------------------------ */

/* Returns how long after the last data of a direction its ACK came, at most `ns`. If a FIN came
 * later, the last ACK is that of the FIN. */
static int64_t acked_after(const struct tcp_connection *connection, unsigned direction,
                           int64_t least, int64_t ns) {
    const struct time_account *account = &connection->time;
    const struct tcp_stream *stream = &connection->streams[direction];
    bool of_fin = stream->fin_seen && stream->snd_una >= stream->fin_end &&
                  account->fin_ns > account->cursor_ns;
    int64_t most = of_fin && !account->sending[direction].recovering ? least : ns;
    return min64(max64(stream->una_advanced_ns - account->cursor_ns, 0), min64(most, ns));
}

/* The segment is the answer to data of the other endpoint, which passed at the cursor. */
static void add_answer(const struct segment_context *seg, int64_t gap_ns) {
    int64_t least = sender_rtt(seg->connection, seg->sender);
    if (least < 0) {
        spend(seg, PART_UNKNOWN, gap_ns);
        return;
    }
    int64_t acked = acked_after(seg->connection, !segment_direction(seg), least, gap_ns);
    bool delayed = acked - least >= ACK_DELAY_NS && acked - least <= ACK_DELAY_MOST;
    bool separate = acked > 0 && acked < gap_ns && !delayed;
    int64_t path = min64(least, gap_ns);
    int64_t queue = separate ? max64(acked - path, 0) : 0;
    bool shown = is_rtt_shown(seg->connection, seg->receiver);
    spend_on_way(seg, shown ? PART_PATH : PART_UNKNOWN, path);
    spend_on_way(seg, shown ? PART_QUEUE : PART_UNKNOWN, queue);
    add_pause(seg, segment_direction(seg), gap_ns - path - queue, true);
}

/* Returns the data whose ACK ends the sender's recovery. */
static inline int64_t recovery_end(const struct tcp_stream *sender) {
    const struct tcp_recovery_state *recovery = sender->recovery;
    if (LIKELY(!recovery))
        return INT64_MIN;
    return max64(recovery->recovery_frame ? recovery->recovery_point : INT64_MIN,
                 recovery->rto_count ? recovery->rto_point : INT64_MIN);
}

/* Returns until when the sender was recovering: until the ACK that covers all came to it. */
static int64_t recovered_ns(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    if (!sending_of(seg)->recovering)
        return INT64_MIN;
    if (sender->snd_una < recovery_end(sender))
        return seg->packet->time_ns;
    return add_ns(sender->una_advanced_ns, max64(sender_rtt(seg->connection, sender), 0));
}

/* What the sender had received when it created the segment. */
struct release {
    bool acknowledged; /* all of its data */
    bool advanced;     /* an ACK of new data since its data before */
    int64_t late_ns;   /* how long after the newest ACK it came, less the round trip */
    int64_t rtt_ns;    /* to the sender */
};

/* The view of the sender shows it; of a short direction the last ACK, which takes the round trip to
 * the sender, and the data back. */
static struct release release_of(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    const struct time_accounting *accounting = sender->accounting;
    const struct time_account *account = &seg->connection->time;
    if (accounting) {
        const struct sender_view *view = &accounting->view;
        int64_t rtt = max64(view_rtt(seg->connection, sender, view), 0);
        return (struct release){view->seen.una >= accounting->end, view->seen.una > accounting->una,
                                seg->packet->time_ns - view->queued_ns - view->seen.time_ns - rtt,
                                rtt};
    }
    int64_t rtt = max64(sender_rtt(seg->connection, sender), 0), now = seg->packet->time_ns;
    bool came = sender->una_advanced_ns + rtt <= now + SLACK_NS;
    int64_t since = sending_of(seg)->acked_ns;
    return (struct release){came && sender->snd_una >= seg->effect.sequence,
                            came && sender->una_advanced_ns > account->cursor_ns, now - since - rtt,
                            rtt};
}

/* Returns for how long of the gap the application of the sender paused, at its end: no ACK released
 * the data, and the sender had no more, since its data before or since the ACK of all. A small
 * segment with PSH shows that, unless the ACK of all data released the next (Nagle). Nor does it if
 * data comes in bursts, each at the very time of an ACK: the send buffer was full. */
static int64_t pause_before(const struct segment_context *seg, const struct release *release,
                            int64_t gap_ns) {
    const struct sending_state *sending = sending_of(seg);
    int64_t slack = sending->ended ? EXACT_NS + release->rtt_ns / EXACT_PART : SLACK_NS;
    bool burst = gap_ns >= path_rtt(seg->connection) / GAP_PART;
    bool more = release->acknowledged || !sending->ended || burst;
    if (release->late_ns <= (release->acknowledged ? SLACK_NS : slack) &&
        (sending->blocked || (release->advanced && more)))
        return 0;
    if (!release->acknowledged && !sending->ended)
        return 0;
    if (sending->ended)
        return gap_ns;
    bool may_pause = sending->pushed || gap_ns > MIN_RTO_NS;
    return may_pause ? min64(max64(release->late_ns, 0), gap_ns) : 0;
}

/* No ACK released the segment, which comes more than a round trip after the one before, and the
 * sender had more to send: a shaper in its host spaces the segments. */
static bool is_shaped(const struct segment_context *seg, const struct release *release,
                      int64_t gap_ns) {
    int64_t rtt = path_rtt(seg->connection);
    bool released = release->advanced && !release->acknowledged;
    return !released && !sending_of(seg)->pushed && rtt >= 0 && gap_ns > 2 * rtt;
}

/* The sender of a gap that is neither transfer nor loss: its application, the receive window, a
 * delayed ACK, or the round trip. */
static void add_wait(const struct segment_context *seg, int64_t gap_ns, int64_t queue) {
    struct time_accounting *accounting = seg->sender->accounting;
    const struct sending_state *sending = sending_of(seg);
    struct release release = release_of(seg);
    int64_t paused = pause_before(seg, &release, gap_ns);
    bool may_hold = release.acknowledged && !paused && !sending->blocked;
    int64_t held = may_hold ? min64(1000 * (int64_t)sending->held_us, gap_ns) : 0;
    int64_t rest = gap_ns - paused - held;
    if (rest && !sending->blocked && is_shaped(seg, &release, rest)) {
        add_transfer(seg, gap_ns, true);
        return;
    }
    if (paused)
        note_pause_after(seg);
    if (accounting)
        note_waits(seg, accounting, paused, held, sending->blocked ? SENDER_WINDOW : SENDER_NETWORK,
                   rest);
    if (sending->blocked) {
        spend(seg, PART_WINDOW, rest);
    } else if (may_hold && !is_rtt_shown(seg->connection, seg->sender)) {
        spend(seg, PART_UNKNOWN, rest);
    } else {
        note_burst(seg, rest);
        add_round_trip(seg, rest, queue);
    }
    add_pause(seg, !segment_direction(seg), held, false);
    add_pause(seg, segment_direction(seg), paused, false);
}

/* The sender continues its own data. */
static void add_continuation(const struct segment_context *seg, int64_t gap_ns) {
    const struct time_accounting *accounting = seg->sender->accounting;
    int64_t cursor = seg->connection->time.cursor_ns, queue = queue_of(seg);
    bool queued = fills_queue(seg, gap_ns, queue);
    if (queued || is_burst(seg, gap_ns) || is_even(seg)) {
        add_transfer(seg, gap_ns, queued);
        return;
    }
    int64_t until = recovered_ns(seg);
    if (until > cursor) {
        int64_t loss = min64(until - cursor, gap_ns);
        spend(seg, PART_LOSS, loss);
        gap_ns -= loss;
    }
    if (gap_ns && accounting && accounting->view.unknown)
        spend(seg, PART_UNKNOWN, gap_ns);
    else if (gap_ns)
        add_wait(seg, gap_ns, queue);
}

/* Before the first data: of the client, or a greeting of the server. */
static void add_first(const struct segment_context *seg, int64_t gap_ns) {
    struct time_account *account = &seg->connection->time;
    unsigned direction = segment_direction(seg);
    int64_t rtt = direction ? max64(sender_rtt(seg->connection, seg->sender), 0) : 0;
    if (!account->opened) {
        spend(seg, PART_UNKNOWN, gap_ns);
        return;
    }
    spend_on_way(seg, PART_PATH, min64(rtt, gap_ns));
    account->first_pause_ns = gap_ns - min64(rtt, gap_ns);
    add_pause(seg, direction, account->first_pause_ns, true);
}

/* A timer ended the gap. It ran since the last ACK, or since the data: the time before that was a
 * round trip, or of the recovery before. */
static void add_timeout(const struct segment_context *seg, int64_t gap_ns) {
    int64_t waited = min64(seg->packet->time_ns - seg->sender->una_advanced_ns, gap_ns);
    if (sending_of(seg)->recovering)
        spend(seg, PART_LOSS, gap_ns - waited);
    else
        add_round_trip(seg, gap_ns - waited, queue_of(seg));
    struct sending_unusual *unusual = unusual_sending(seg);
    if (unusual)
        unusual->timeout_ns += waited;
    spend(seg, PART_LOSS, waited);
    if (seg->sender->accounting)
        end_run(seg->sender->accounting->steady);
}

/* An RTO is suspected to have ended the gap. */
static void add_suspected(const struct segment_context *seg, int64_t gap_ns) {
    struct sending_unusual *unusual = unusual_sending(seg);
    if (unusual)
        unusual->suspected_ns += gap_ns;
    spend(seg, PART_UNKNOWN, gap_ns);
}

/* What the next gap of the direction is compared with. */
static NOINLINE void note_recovery(const struct segment_context *seg, bool resent) {
    const struct tcp_recovery_state *recovery = seg->sender->recovery;
    struct sending_unusual *unusual = unusual_sending(seg);
    if (!unusual)
        return;
    if (resent && stream_flight(seg->sender) > unusual->peak_bytes)
        unusual->peak_bytes = (uint32_t)min64(stream_flight(seg->sender), UINT32_MAX);
    unusual->rtos = (uint16_t)recovery->rto_count;
    unusual->paused = (uint16_t)recovery->suspected_rto_count;
    unusual->resent = (uint32_t)recovery->retransmissions;
}

static void add_gap(const struct segment_context *seg, int64_t gap_ns) {
    struct time_account *account = &seg->connection->time;
    unsigned direction = segment_direction(seg);
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    const struct sending_unusual *before = unusual_of(account, direction);
    bool resent = (uint32_t)recovery->retransmissions != before->resent;
    note_spacing(seg, gap_ns);
    bool covers = seg->effect.acknowledges &&
                  seg->effect.acknowledged >= seg->receiver->snd_nxt - seg->receiver->fin_seen;
    if ((uint16_t)recovery->rto_count != before->rtos)
        add_timeout(seg, gap_ns);
    else if ((uint16_t)recovery->suspected_rto_count != before->paused)
        add_suspected(seg, gap_ns);
    else if (recovery->suspected_ns == seg->packet->time_ns)
        spend(seg, PART_UNKNOWN, gap_ns);
    else if (account->last == NO_DIRECTION)
        add_first(seg, gap_ns);
    else if (account->last != direction && covers)
        add_answer(seg, gap_ns);
    else if (resent && !is_even(seg) && !fills_queue(seg, gap_ns, queue_of(seg)) &&
             !is_burst(seg, gap_ns))
        spend(seg, PART_LOSS, gap_ns);
    else
        add_continuation(seg, gap_ns);
    if (seg->sender->recovery)
        note_recovery(seg, resent);
}

/* --- packets --------------------------------------------------------------------------------- */

static NOINLINE void begin_account(struct time_account *account,
                                   const struct segment_context *seg) {
    account->begun = true;
    account->last = NO_DIRECTION;
    account->cursor_ns = seg->packet->time_ns;
    account->connecting = seg->tcp->flags & TCP_SYN;
    account->opened = account->connecting;
}

/* Until a segment follows the handshake. */
static NOINLINE void add_connecting(struct time_account *account, const struct segment_context *seg,
                                    int64_t gap_ns, bool data) {
    add_part(seg->connection, seg->pool, NO_DIRECTION, PART_CONNECTING, max64(gap_ns, 0));
    account->connecting = seg->tcp->flags & TCP_SYN || (!data && segment_direction(seg));
    if (data)
        account->last = (uint8_t)segment_direction(seg);
}

/* One more full segment does not fit the window that the receiver of the stream announced last. */
static inline bool is_blocked(const struct segment_context *seg, const struct tcp_stream *sender,
                              const struct tcp_stream *receiver) {
    return receiver->window >= 0 && sender->snd_una_known &&
           sender->snd_una + receiver->window - sender->snd_nxt <
               full_segment_size(seg->connection, sender);
}

/* Whether the segment had room for more data. One of the size of the one before has none: the path
 * carries less than the MSS. */
static inline bool is_small(const struct segment_context *seg,
                            const struct sending_state *sending) {
    uint32_t payload = seg->packet->payload_bytes, mss = seg->receiver->mss;
    if (payload == sending->payload && payload >= ALIKE_LEAST)
        return sending->small && payload < (mss ? mss : SEGMENT_USUAL) / 2;
    return payload < full_segment_size(seg->connection, seg->sender) ||
           payload < (mss ? mss : SEGMENT_USUAL) / 2;
}

/* The segments since the sender's view moved have filled the receive window together. */
static NOINLINE void fill_window(const struct segment_context *seg, struct sending_state *sending) {
    struct time_accounting *accounting = seg->sender->accounting;
    unsigned direction = segment_direction(seg);
    int64_t moved = time_move(seg->connection, seg->pool, PART_TRANSFER, PART_WINDOW, direction,
                              sending->burst_ns);
    moved += time_move(seg->connection, seg->pool, PART_PATH, PART_WINDOW, direction,
                       sending->burst_ns - moved);
    sending->burst_ns = 0;
    move_sender_time(seg->connection, seg->pool, direction, SENDER_NETWORK, SENDER_WINDOW, moved);
    if (accounting && accounting->steady && !has_timestamps(seg))
        accounting->steady->spread_ns += moved;
}

static inline void note_sent(const struct segment_context *seg, struct sending_state *sending) {
    const struct time_accounting *accounting = seg->sender->accounting;
    sending->small = is_small(seg, sending);
    sending->ended = seg->tcp->flags & TCP_PSH && (sending->pushed || sending->small);
    sending->pushed = seg->tcp->flags & TCP_PSH;
    sending->payload = (uint16_t)min64(seg->packet->payload_bytes, UINT16_MAX);
    sending->held_us = 0;
    sending->recovering =
        (accounting ? accounting->view.seen.una : seg->sender->snd_una) < recovery_end(seg->sender);
    sending->blocked = seg->sender->accounting ? seg->sender->accounting->blocked
                                               : is_blocked(seg, seg->sender, seg->receiver);
    if (sending->blocked && sending->burst_ns)
        fill_window(seg, sending);
}

/* The segment as an ACK of the other direction's data. */
static inline void note_acked(const struct segment_context *seg, struct sending_state *sending) {
    const struct tcp_stream *sender = seg->receiver;
    int64_t now = seg->packet->time_ns;
    if (seg->effect.rtt_ns >= 0)
        sending->rtt_us = (uint32_t)min64(max64(seg->effect.rtt_ns / 1000, 1), UINT32_MAX);
    if (sender->una_advanced_ns == now) {
        int64_t delay = now - sender->last_data_ns;
        delay -= sender->rtt.count ? least_sample(sender) : 0;
        bool held = delay >= ACK_DELAY_NS &&
                    (sending->ended || delay >= HELD_RTTS * 1000 * (int64_t)sending->rtt_us) &&
                    sender->snd_una >= sender->snd_nxt;
        sending->held_us = held ? (uint32_t)min64(delay / 1000, UINT32_MAX) : 0;
    }
    sending->acked_ns = now;
    sending->blocked |= is_blocked(seg, sender, seg->sender);
}

/* A FIN behind the ACK that ended the recovery: its own ACK does not end it. */
static NOINLINE void end_recovery(const struct segment_context *seg) {
    int64_t until = min64(recovered_ns(seg), seg->packet->time_ns);
    int64_t ns = until - seg->connection->time.cursor_ns;
    if (seg->sender->snd_una < recovery_end(seg->sender) || ns < 0)
        return;
    spend(seg, PART_LOSS, ns);
    sending_of(seg)->recovering = false;
}

void account_time(const struct segment_context *seg) {
    struct time_account *account = &seg->connection->time;
    bool data = seg->packet->payload_bytes && !seg->effect.probe && !seg->effect.duplicate;
    unsigned direction = segment_direction(seg);
    if (!account->begun)
        begin_account(account, seg);
    int64_t gap_ns = seg->packet->time_ns - account->cursor_ns;
    if (seg->sender->fin_seen && !account->fin_ns)
        account->fin_ns = seg->packet->time_ns;
    if (account->connecting)
        add_connecting(account, seg, gap_ns, data);
    else if (data && gap_ns > 0)
        add_gap(seg, gap_ns);
    else if (seg->tcp->flags & TCP_FIN && account->last == direction && sending_of(seg)->recovering)
        end_recovery(seg);
    if (data)
        account->last = (uint8_t)direction;
}

void account_after(const struct segment_context *seg) {
    struct time_account *account = &seg->connection->time;
    unsigned direction = segment_direction(seg);
    if (seg->effect.acknowledges)
        note_acked(seg, &account->sending[!direction]);
    if (seg->packet->payload_bytes && !seg->effect.probe && !seg->effect.duplicate)
        note_sent(seg, &account->sending[direction]);
}

/* --- the end --------------------------------------------------------------------------------- */

/* The last request was acknowledged, and nobody answered. */
static bool is_unanswered(const struct tcp_connection *connection, unsigned direction) {
    const struct tcp_stream *stream = &connection->streams[direction];
    const struct turn_log *log = connection->turns;
    if (direction != requests_of(connection))
        return false;
    uint64_t bytes = stream->unique_bytes - (log && log->open && !log->responding ? log->base : 0);
    return bytes <= REQUEST_MOST * (uint64_t)full_segment_size(connection, stream);
}

/* The time after the last data of a direction, which was acknowledged. */
static void add_acked_tail(struct tcp_connection *connection, struct pool *pool, unsigned direction,
                           int64_t ns) {
    struct time_account *account = &connection->time;
    const struct tcp_stream *stream = &connection->streams[direction];
    int64_t least = stream->rtt.count ? least_sample(stream) : 0;
    int64_t acked = acked_after(connection, direction, least, ns);
    if (account->sending[direction].recovering) {
        spend_in(connection, pool, direction, PART_LOSS, acked);
        ns -= acked;
        acked = 0;
    }
    int64_t path = min64(least, acked);
    int64_t queue = acked - path < ACK_DELAY_NS ? acked - path : 0;
    int64_t rest = ns - path - queue, closed = rest;
    if (account->fin_ns)
        closed = min64(max64(account->fin_ns - account->cursor_ns - path - queue, 0), rest);
    bool shown = is_rtt_shown(connection, stream);
    spend_in(connection, pool, direction, shown ? PART_PATH : PART_UNKNOWN, path);
    spend_in(connection, pool, direction, shown ? PART_QUEUE : PART_UNKNOWN, queue);
    if (!is_unanswered(connection, direction))
        closed = 0;
    add_part(connection, pool, !direction, PART_SERVER, closed);
    add_part(connection, pool, NO_DIRECTION, PART_IDLE, rest - closed);
}

/* The time after the last data. */
static void add_tail(struct tcp_connection *connection, struct pool *pool, int64_t ns) {
    struct time_account *account = &connection->time;
    unsigned direction = account->last;
    if (account->connecting || direction == NO_DIRECTION) {
        add_part(connection, pool, NO_DIRECTION, account->connecting ? PART_CONNECTING : PART_IDLE,
                 ns);
        return;
    }
    const struct tcp_stream *stream = &connection->streams[direction];
    if (stream->snd_una_known && stream->snd_una < stream->snd_nxt - stream->fin_seen) {
        bool silent = ns >= MIN_RTO_NS;
        struct sending_unusual *unusual =
            silent ? unusual_state(connection, pool, direction) : NULL;
        if (unusual)
            unusual->timeout_ns += ns;
        spend_in(connection, pool, direction, silent ? PART_LOSS : PART_PATH, ns);
        return;
    }
    if (peer_of(connection, stream)->zero_window) {
        spend_in(connection, pool, direction, PART_WINDOW, ns);
        return;
    }
    add_acked_tail(connection, pool, direction, ns);
}

/* A queue may hide what held the data of a direction back. */
static void doubt_network(struct tcp_connection *connection, struct pool *pool, unsigned direction,
                          int64_t life_ns) {
    const struct tcp_stream *stream = &connection->streams[direction];
    if (!stream->accounting || !hides_limit(connection, stream, life_ns))
        return;
    int64_t ns = sender_time(connection, stream, SENDER_NETWORK) - stream->accounting->transfer_ns;
    int64_t window = sender_time(connection, stream, SENDER_WINDOW);
    move_sender_time(connection, pool, direction, SENDER_NETWORK, SENDER_UNKNOWN, ns);
    move_sender_time(connection, pool, direction, SENDER_WINDOW, SENDER_UNKNOWN, window);
    ns -= time_move(connection, pool, PART_PATH, PART_UNKNOWN, direction, ns);
    time_move(connection, pool, PART_QUEUE, PART_UNKNOWN, direction, ns);
    time_move(connection, pool, PART_WINDOW, PART_UNKNOWN, direction, window);
}

/* What an RTO cost that was not needed was the wait in a queue. */
static void move_needless(struct tcp_connection *connection, struct pool *pool,
                          unsigned direction) {
    struct unusual_time *unusual = connection->time.unusual;
    int64_t ns = recovery_of(&connection->streams[direction])->needless_ns;
    time_move(connection, pool, PART_LOSS, PART_QUEUE, direction, ns);
    move_sender_time(connection, pool, direction, SENDER_LOSS, SENDER_NETWORK, ns);
    if (unusual)
        unusual->sending[direction].timeout_ns =
            max64(unusual->sending[direction].timeout_ns - ns, 0);
}

/* Nobody waited in the pauses of a flow in which one direction alone has data, in one that is alone
 * in its dialogue, nor for messages of a server that are no answers. */
static void move_idle(struct tcp_connection *connection, struct pool *pool) {
    struct time_account *account = &connection->time;
    bool client = requests_of(connection) == account->last;
    if (!connection->turns)
        time_move(connection, pool, client ? PART_CLIENT : PART_SERVER, PART_IDLE, NO_DIRECTION,
                  account->stream_pause_ns);
    else if (account->pause_ns >= LONE_PAUSE_NS && account->pause_2nd_ns < account->pause_ns / 2)
        time_move(connection, pool, PART_CLIENT, PART_IDLE, NO_DIRECTION, account->pause_ns);
    if (connection->turns && connection->turns->server_talk != WORD_NONE)
        time_move(connection, pool, PART_SERVER, PART_IDLE, NO_DIRECTION,
                  part_ns(account, PART_SERVER) - answers_ns(connection));
    if (connection->turns && connection->turns->server_talk == WORD_TYPED)
        time_move(connection, pool, PART_CLIENT, PART_IDLE, NO_DIRECTION,
                  part_ns(account, PART_CLIENT));
    if (!connection->turns && account->last != NO_DIRECTION) /* it was not yet sending */
        account->sending[account->last].ns[SENDER_PAUSE] -= account->first_pause_ns;
}

void finish_time(struct tcp_connection *connection, struct pool *pool, int64_t first_ns,
                 int64_t last_ns) {
    struct time_account *account = &connection->time;
    int64_t sum = 0;
    if (account->begun && last_ns > account->cursor_ns)
        add_tail(connection, pool, last_ns - account->cursor_ns);
    move_idle(connection, pool);
    for (unsigned direction = 0; direction < 2; direction++) {
        move_needless(connection, pool, direction);
        doubt_network(connection, pool, direction, last_ns - first_ns);
    }
    for (unsigned part = 0; part < PARTS; part++)
        sum += part_ns(account, part);
    add_to_part(account, pool, PART_UNKNOWN, last_ns - first_ns - sum);
}

int64_t reduced_path_ns(const struct time_account *account) {
    int64_t ns = unusual_of(account, 0)->reduced_path_ns + unusual_of(account, 1)->reduced_path_ns;
    return min64(ns, part_ns(account, PART_PATH));
}
