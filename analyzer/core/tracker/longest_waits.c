/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the places of the longest waits of a direction, which findings cite: the packets between
 * which the sender waited for its application, a delayed ACK, room in its send buffer or an ACK,
 * and the longest run of intervals in which the receive window or the network was the limit.
 *
 * A direction has this state (struct steady_flight) once it has some dozens of packets, with the
 * first wait for a delayed ACK or the window, or if slow start took so long that a finding may cite
 * its end, so that most short flows need no memory for it. */
#include "tracker/steps.h"

#define SHARE_PART     10       /* of the accounted time */
#define CITED_MIN_NS   20000000 /* that part of the shortest transfer whose shares mean anything */
#define BULK_MIN       1000000u /* bytes of a transfer whose rate matters */
#define QUEUE_RTTS_MIN 30u      /* samples */
#define QUEUE_NS_MIN   5000000  /* of an RTT that may show a queue */

struct steady_flight *steady_flight(const struct segment_context *seg,
                                    struct time_accounting *accounting) {
    if (!accounting->steady)
        accounting->steady = pool_zeroed(seg->pool, sizeof *accounting->steady);
    return accounting->steady;
}

/* Adds the interval to the run of the same factor, or begins one. */
static void note_run(const struct segment_context *seg, struct steady_flight *steady,
                     enum sender_time cause, int64_t ns) {
    struct packet_wait *run = &steady->run;
    if (!run->first_frame || steady->run_cause != cause) {
        end_run(steady);
        *run = wait_before(seg, ns);
        steady->run_cause = (uint8_t)cause;
    } else if (ns > 0) {
        run->ns = add_ns(run->ns, ns);
        run->last_ns = seg->packet->time_ns;
        run->last_frame = seg->frame;
        run->last_capture = seg->packet->capture;
    }
}

static void note_wait(const struct segment_context *seg, struct steady_flight *steady,
                      enum wait_kind kind, int64_t ns) {
    struct packet_wait wait = wait_before(seg, ns);
    keep_longest(&steady->longest[kind], &wait);
}

void note_waits(const struct segment_context *seg, struct time_accounting *accounting, int64_t idle,
                int64_t held, enum sender_time rest, int64_t ns) {
    struct steady_flight *steady = steady_flight(seg, accounting);
    if (!steady)
        return;
    if (idle > 0) /* otherwise `longest`, which is in other cache lines, is not read */
        note_wait(seg, steady, WAIT_IDLE, idle);
    if (held > 0)
        note_wait(seg, steady, WAIT_DELAYED_ACK, held);
    if (idle + held <= ns)
        note_run(seg, steady, rest, ns);
    else
        end_run(steady);
}

void note_rtt(const struct segment_context *seg, struct steady_flight *steady, int64_t rtt_ns,
              uint32_t frame) {
    int64_t sent_ns = seg->packet->time_ns - rtt_ns;
    struct packet_wait wait = {.ns = rtt_ns,
                               .first_ns = sent_ns,
                               .last_ns = seg->packet->time_ns,
                               .first_frame = frame,
                               .last_frame = seg->frame,
                               .first_capture = capture_of(seg->connection, !segment_direction(seg),
                                                           sent_ns, frame, seg->packet),
                               .last_capture = seg->packet->capture};
    keep_longest(&steady->longest[WAIT_RTT], &wait);
}

/* Returns true if a finding may cite the longest wait of a kind. */
static bool is_cited(const struct tcp_connection *connection, const struct tcp_stream *stream,
                     unsigned kind, int64_t total) {
    static const uint8_t times[WAIT_KINDS] = {[WAIT_IDLE] = SENDER_PAUSE,
                                              [WAIT_DELAYED_ACK] = SENDER_DELAYED_ACK,
                                              [WAIT_WINDOW] = SENDER_WINDOW,
                                              [WAIT_NETWORK] = SENDER_NETWORK,
                                              [WAIT_SEND_BUFFER] = SENDER_BUFFER};
    const struct time_accounting *accounting = stream->accounting;
    bool bulk = kind == WAIT_IDLE || kind == WAIT_NETWORK || kind == WAIT_SEND_BUFFER;
    if (!accounting->steady->longest[kind].last_frame)
        return false;
    if (kind == WAIT_RTT)
        return stream->rtt.count >= QUEUE_RTTS_MIN &&
               accounting->steady->longest[kind].ns >= QUEUE_NS_MIN;
    int64_t ns = kind == WAIT_SLOW_START ? accounting->slow_start_ns
                                         : sender_time(connection, stream, times[kind]);
    return ns >= max64(total / SHARE_PART, CITED_MIN_NS) &&
           (!bulk || stream->unique_bytes >= BULK_MIN);
}

void find_waits(const struct tcp_connection *connection, const struct tcp_stream *stream,
                const struct packet_wait *waits[static WAIT_KINDS]) {
    const struct time_accounting *accounting = stream->accounting;
    int64_t total = 0;
    for (unsigned kind = 0; kind < WAIT_KINDS; kind++)
        waits[kind] = NULL;
    if (!accounting || !accounting->steady)
        return;
    end_run(accounting->steady);
    for (unsigned i = 0; i < SENDER_TIMES; i++)
        total = add_ns(total, sender_time(connection, stream, i));
    for (unsigned kind = 0; kind < WAIT_KINDS; kind++)
        if (is_cited(connection, stream, kind, total))
            waits[kind] = &accounting->steady->longest[kind];
}
