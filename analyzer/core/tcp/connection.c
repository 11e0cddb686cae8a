/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the path. The capture point divides the path into two halves, and the RTT samples of a
 * stream measure the half between the capture point and its receiver. Both halves add up to the RTT
 * between the endpoints. The handshake measures that at once, but it may include a wait for address
 * resolution or for the server, so it counts only if it is not longer than the sum. */
#include "tcp/connection.h"

int64_t path_rtt(const struct tcp_connection *connection) {
    int64_t a = min_rtt(&connection->streams[0]), b = min_rtt(&connection->streams[1]);
    int64_t handshake = connection->handshake_rtt_ns, sum = max64(a, 0) + max64(b, 0);
    if (handshake >= 0)
        return a >= 0 && b >= 0 ? min64(handshake, sum) : handshake;
    return a >= 0 || b >= 0 ? sum : RTT_UNKNOWN;
}

int64_t sender_rtt(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    const struct histogram *down = &stream->rtt, *up = &peer_of(connection, stream)->rtt;
    if (up->count)
        return up->least;
    if (connection->handshake_rtt_ns < 0)
        return RTT_UNKNOWN;
    return max64(connection->handshake_rtt_ns - (down->count ? down->least : 0), 0);
}

int64_t rto_ns(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    int64_t rtt = path_rtt(connection);
    return rtt < 0 ? MIN_RTO_NS : max64(rtt + 4000 * (int64_t)stream->rttvar_us, MIN_RTO_NS);
}

int64_t full_segment_size(const struct tcp_connection *connection,
                          const struct tcp_stream *stream) {
    int64_t announced = peer_of(connection, stream)->mss;
    int64_t most = announced ? announced : SEGMENT_USUAL;
    return stream->segment_max && stream->segment_max < most ? stream->segment_max : most;
}
