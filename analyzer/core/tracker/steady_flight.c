/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes a sender whose send buffer is too small, in its own view (sender_view.c).
 *
 * TCP takes data from the application only when ACKs have freed room in the send buffer, so flight
 * never exceeds the buffer. A sender that is held by its congestion window, or by the path, looks
 * otherwise:
 *
 * - A congestion window that is full grows by half a segment per round trip or more until a segment
 *   is lost (RFC 5681 section 3.1, RFC 9438 section 4.3). After a loss CUBIC hardly grows for
 *   seconds, so that a level counts only if it was reached before the first loss as well.
 * - BBR, and a path that is full, leave no long gap in a round trip, and a queue makes it longer.
 * - An application that sends at a rate of its own ends a gap when it has data, and not when an ACK
 *   makes room.
 *
 * Thus, if flight reaches the same level in STEADY_ROUNDS round trips with a long gap in each, and
 * the receive window has room, time in which the network seemed to be the limit is the send
 * buffer's, from the first of these round trips on. An application that waits for its peer after as
 * many bytes (a window of its own protocol) looks the same. */
#include "tcp/connection.h"
#include "tracker/steps.h"

#define STEADY_ROUNDS   8  /* in which a congestion window would grow by four segments */
#define STEADY_SEGMENTS 2  /* by which flight may differ */
#define STEADY_PACKETS  32 /* of a direction; a shorter one has no such state */
#define QUEUE_RTTS      2  /* a longer round trip had a queue */
#define GAP_PART        4  /* a long gap is a quarter of the round trip at least */
#define LATE_PART       16 /* of a gap: data that come so much later waited for no room, */
#define LATE_LEAST_NS   INT64_C(1000000) /* but for the time in which a program wakes up */
#define GAP_SEGMENTS    3 /* and at the mean rate so many full segments would have filled it */

/* Time that was accounted to the network since the direction began. */
static inline int64_t network_ns(const struct segment_context *seg) {
    return sender_time(seg->connection, seg->sender, SENDER_NETWORK);
}

/* Returns false if a loss makes the level uncertain. */
static bool check_losses(const struct segment_context *seg, struct steady_flight *steady) {
    uint64_t retransmissions = recovery_of(seg->sender)->retransmissions;
    if (retransmissions != steady->retransmissions) {
        steady->uncertain |= steady->rounds < STEADY_ROUNDS;
        steady->retransmissions = retransmissions;
    }
    return !steady->uncertain;
}

/* The network's time since `since_ns` of it was time without room in the send buffer. */
static void move_to_buffer(const struct segment_context *seg, struct time_accounting *accounting,
                           int64_t since_ns) {
    static const enum time_part parts[] = {PART_PATH, PART_QUEUE, PART_TRANSFER};
    unsigned direction = segment_direction(seg);
    int64_t ns = network_ns(seg) - max64(since_ns, accounting->slow_start_ns);
    if (ns <= 0)
        return;
    add_sender_time(seg->connection, seg->pool, direction, SENDER_NETWORK, -ns);
    add_sender_time(seg->connection, seg->pool, direction, SENDER_BUFFER, ns);
    accounting->transfer_ns = min64(accounting->transfer_ns, network_ns(seg));
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        ns -= time_move(seg->connection, seg->pool, parts[i], PART_SEND_BUFFER, direction, ns);
}

/* Returns true if a round trip of `span` ns was without a queue, and most of its data came in
 * bursts. */
static bool has_gap(const struct segment_context *seg, const struct time_accounting *accounting,
                    int64_t span) {
    int64_t gap_ns = accounting->steady->gap_ns, bytes = accounting->end - accounting->steady->end;
    double gap_bytes = (double)gap_ns * (double)bytes / (double)span;
    return !accounting->steady->late && gap_ns >= span / GAP_PART &&
           span <= QUEUE_RTTS * path_rtt(seg->connection) &&
           gap_bytes >= GAP_SEGMENTS * (double)full_segment_size(seg->connection, seg->sender);
}

/* Compares the flight of a round trip of `span` ns with the level. */
static void compare_round(const struct segment_context *seg, struct time_accounting *accounting,
                          int64_t span) {
    struct steady_flight *steady = accounting->steady;
    int64_t differs = steady->highest - steady->level;
    int64_t tolerance = STEADY_SEGMENTS * full_segment_size(seg->connection, seg->sender);
    bool gap = has_gap(seg, accounting, span);
    bool network = network_ns(seg) - steady->round_ns >= span / 2;
    bool doubles = 2 * steady->highest >= 3 * steady->previous;
    if (differs > tolerance) {
        steady->uncertain |= steady->retransmissions > 0;
        steady->level = steady->highest;
        steady->rounds = 0;
        steady->since_ns = network_ns(seg);
    } else if (!gap || doubles) {
        steady->rounds -= steady->rounds > 0;
        if (!steady->rounds)
            steady->since_ns = network_ns(seg);
    } else if (network && ++steady->rounds >= STEADY_ROUNDS) {
        steady->rounds = 2 * STEADY_ROUNDS;
    }
    steady->previous = steady->highest;
}

bool is_late_release(const struct segment_context *seg, const struct time_accounting *accounting,
                     int64_t created, int64_t gap_ns) {
    int64_t rtt = view_rtt(seg->connection, seg->sender, &accounting->view);
    return rtt >= 0 &&
           created - accounting->view.seen.time_ns - rtt > max64(gap_ns / LATE_PART, LATE_LEAST_NS);
}

void begin_steady_flight(const struct segment_context *seg, struct time_accounting *accounting) {
    if (seg->sender->packets < STEADY_PACKETS || !steady_flight(seg, accounting))
        return;
    struct steady_flight *steady = accounting->steady;
    steady->begun = true;
    steady->end = steady->first = accounting->end;
    steady->pushes = steady->queued = 0;
    steady->began_ns = seg->packet->time_ns;
    steady->round_ns = steady->since_ns = network_ns(seg);
    steady->retransmissions = recovery_of(seg->sender)->retransmissions;
}

void end_round(const struct segment_context *seg, struct time_accounting *accounting,
               int64_t created) {
    struct steady_flight *steady = accounting->steady;
    int64_t span = created - steady->began_ns;
    if (span < path_rtt(seg->connection) / 2) /* two bursts in a round trip */
        return;
    if (check_losses(seg, steady))
        compare_round(seg, accounting, span);
    if (!steady->uncertain && steady->rounds >= STEADY_ROUNDS) {
        move_to_buffer(seg, accounting, steady->since_ns);
        keep_longest(&steady->longest[WAIT_SEND_BUFFER], &steady->gap);
        steady->since_ns = network_ns(seg);
    }
    steady->round_ns = network_ns(seg);
    steady->began_ns = created;
    steady->end = accounting->end;
    steady->highest = steady->gap_ns = 0;
    steady->gap = (struct packet_wait){0};
}
