/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a direction's time in the network may be something else, because a queue before the
 * capture point hides it. With timestamps, the age of segments shows that queue (sender_view.c);
 * without them:
 *
 * - Far from the sender, the path may have spread one write, or the segments that filled the
 * receive window, or the sender may have paced them.
 * - A queue may hold what fills the receive window, in the path or, of a few ms, in the sender's
 *   host.
 * - A shaper in the sender's host and too little data may have been the limit in turns. Then the
 *   sender never had as many segments in flight as a new connection may send, though losses were
 *   rare and the window had room, and PSH shows that no more data was behind them. */
#include "tracker/steps.h"

#define SHAPED_WINDOW   32768             /* bytes: a queue of a few ms can hold them */
#define SHAPED_QUEUE_NS INT64_C(50000000) /* a shaper's */
#define UNSURE_PART     10                /* of the time: more is too much */
#define INITIAL_WINDOW  10                /* segments (RFC 6928) */
#define RARE_LOSS       200 /* one of so many lets a congestion window of 17 grow (RFC 3649) */

/* Returns the time in which nothing but the path held the direction back. */
static int64_t path_ns(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    return sender_time(connection, stream, SENDER_NETWORK) - stream->accounting->transfer_ns;
}

/* Returns true if the data of `delay_ns`, at the mean rate, fill the receive window. */
static bool fills_window(const struct tcp_connection *connection, const struct tcp_stream *stream,
                         int64_t delay_ns, int64_t life_ns) {
    int64_t window = peer_of(connection, stream)->window;
    return window > 0 &&
           (double)window * (double)life_ns <= (double)stream->unique_bytes * (double)delay_ns;
}

static bool may_be_spread(const struct tcp_connection *connection, const struct tcp_stream *stream,
                          int64_t life_ns) {
    const struct steady_flight *steady = stream->accounting->steady;
    if (!steady)
        return false;
    int64_t unsure = min64(steady->unsure_ns, path_ns(connection, stream));
    return add_ns(unsure,
                  min64(steady->spread_ns, sender_time(connection, stream, SENDER_WINDOW))) >
           life_ns / UNSURE_PART;
}

static bool may_hide_window(const struct tcp_connection *connection,
                            const struct tcp_stream *stream, int64_t life_ns) {
    const struct time_accounting *accounting = stream->accounting;
    int64_t rtt = max64(path_rtt(connection), 0);
    int64_t near = view_rtt(connection, stream, &accounting->view);
    bool far = near > SLACK_NS && NEAR_PART * near > rtt;
    if (stream->timestamps)
        return false;
    if (far && may_be_spread(connection, stream, life_ns))
        return true;
    if (path_ns(connection, stream) < life_ns / UNSURE_PART)
        return false;
    if (far)
        return fills_window(connection, stream, rtt + HIDDEN_QUEUE_NS, life_ns);
    /* The queue holds little of a window of which half is in flight behind the capture point. */
    return peer_of(connection, stream)->window <= SHAPED_WINDOW &&
           fills_window(connection, stream, rtt + SHAPED_QUEUE_NS, life_ns) &&
           (path_ns(connection, stream) >= life_ns / 2 ||
            !fills_window(connection, stream, 2 * rtt, life_ns));
}

static bool may_lack_data(const struct tcp_connection *connection, const struct tcp_stream *stream,
                          int64_t life_ns) {
    const struct time_accounting *accounting = stream->accounting;
    const struct steady_flight *steady = accounting->steady;
    if (!steady || !steady->begun || path_ns(connection, stream) <= life_ns / UNSURE_PART)
        return false;
    int64_t segment = full_segment_size(connection, stream), initial = INITIAL_WINDOW * segment;
    int64_t most = max64(steady->most, stream->flight_max), sent = accounting->end - steady->first;
    int64_t window = peer_of(connection, stream)->window;
    if (most >= initial || (window >= 0 && window < most + 2 * segment) ||
        sent >= initial * steady->pushes)
        return false;
    if (stream->timestamps && UNSURE_PART * segment * steady->queued < sent)
        return false;
    return RARE_LOSS * segment * (int64_t)recovery_of(stream)->retransmissions <= sent;
}

bool hides_limit(const struct tcp_connection *connection, const struct tcp_stream *stream,
                 int64_t life_ns) {
    return may_hide_window(connection, stream, life_ns) ||
           may_lack_data(connection, stream, life_ns);
}
