/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a connection (RFC 9293 sections 3.5 and 3.6) as far as SYN, FIN and RST segments at
 * the capture point show it, and the times of its path.
 *
 * The capture point divides the path into two halves, and the RTT samples of a
 * stream measure the half between the capture point and its receiver. Both halves add up to the RTT
 * between the endpoints. The handshake measures that at once, but it may include a wait for address
 * resolution or for the server, so it counts only if it is not longer than the sum. */
#include "tcp/connection.h"

#include "base/vocabulary.h"

/* --- times ----------------------------------------------------------------------------------- */

int64_t handshake_rtt(const struct tcp_connection *connection) {
    const struct tcp_stream *a = &connection->streams[0], *b = &connection->streams[1];
    if (connection->handshake_rtt_ns < 0)
        return RTT_UNKNOWN;
    return max64(connection->handshake_rtt_ns, max64(a->clock_step_ns, b->clock_step_ns));
}

int64_t path_rtt(const struct tcp_connection *connection) {
    int64_t a = min_rtt(&connection->streams[0]), b = min_rtt(&connection->streams[1]);
    int64_t handshake = handshake_rtt(connection), sum = max64(a, 0) + max64(b, 0);
    if (handshake >= 0)
        return a >= 0 && b >= 0 ? min64(handshake, sum) : handshake;
    return a >= 0 || b >= 0 ? sum : RTT_UNKNOWN;
}

int64_t sender_rtt(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    const struct tcp_stream *peer = peer_of(connection, stream);
    if (peer->rtt.count)
        return least_sample(peer);
    int64_t handshake = handshake_rtt(connection);
    if (handshake < 0)
        return RTT_UNKNOWN;
    return max64(handshake - (stream->rtt.count ? least_sample(stream) : 0), 0);
}

bool is_rtt_shown(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    if (stream->prompt_sample || !stream->rtt.count)
        return true;
    int64_t least = least_sample(stream), prompt = max64(handshake_rtt(connection), 0);
    return least < prompt + ACK_DELAY_NS || least > ACK_DELAY_ABOVE;
}

int64_t rto_ns(const struct tcp_connection *connection, const struct tcp_stream *stream) {
    int64_t rtt = path_rtt(connection);
    return rtt < 0 ? MIN_RTO_NS : max64(rtt + 4000 * (int64_t)stream->rttvar_us, MIN_RTO_NS);
}

bool is_without_sack(const struct tcp_connection *connection, const struct tcp_stream *data) {
    const struct tcp_stream *acks = peer_of(connection, data);
    if (data->syn_seen && acks->syn_seen && !data->syn_truncated && !acks->syn_truncated)
        return !data->sack_permitted || !acks->sack_permitted;
    return !acks->reports_truncated && !recovery_of(acks)->sack_acks;
}

int64_t full_segment_size(const struct tcp_connection *connection,
                          const struct tcp_stream *stream) {
    int64_t announced = peer_of(connection, stream)->mss;
    int64_t most = announced ? announced : SEGMENT_USUAL;
    return stream->segment_max && stream->segment_max < most ? stream->segment_max : most;
}

/* --- state ----------------------------------------------------------------------------------- */

bool starts_new_connection(const struct tcp_connection *connection, unsigned direction,
                           const struct tcp_header *tcp) {
    const struct tcp_stream *sender = &connection->streams[direction];
    const struct tcp_stream *receiver = &connection->streams[!direction];
    if (!(tcp->flags & TCP_SYN) || tcp->flags & TCP_RST)
        return false;
    /* A retransmitted SYN, or one captured after its answer. After its sender reset an old
     * connection, the same SYN opens a new one (RFC 9293 section 3.5.1). */
    if (sender->isn_known && sender->isn == tcp->sequence)
        return sender->resets && !connection->syn_ack_seen && !(tcp->flags & TCP_ACK);
    bool ended = connection->reset || (sender->fin_seen && receiver->fin_seen);
    if (tcp->flags & TCP_ACK)
        return ended;
    bool simultaneous =
        !sender->isn_known && receiver->syn_seen && !connection->syn_ack_seen && !ended;
    return !simultaneous;
}

/* Whether the initiator sent its SYN, and nothing is known of the other end. If the initiator
 * acknowledged data, that took a path that was not captured. */
static bool is_alone(const struct tcp_connection *connection) {
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    return from->syn_seen && !connection->syn_ack_seen && !to->base_known && !to->snd_una_known;
}

/* Returns the state of a connection that an end reset. One that repeated its SYN without
 * an answer may tell the other end that it gives up. */
static int state_of_reset(const struct tcp_connection *connection) {
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    if (from->syns > 1 && !to->resets && is_alone(connection))
        return WORD_SYN_SENT;
    return connection->refused ? WORD_REFUSED : WORD_RESET;
}

int connection_state(const struct tcp_connection *connection) {
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    if (from->fin_seen && to->fin_seen)
        return WORD_CLOSED;
    if (connection->reset)
        return state_of_reset(connection);
    if (from->fin_seen || to->fin_seen)
        return WORD_HALF_CLOSED;
    if (from->syn_seen && connection->syn_ack_seen)
        return connection->handshake_ack_seen ? WORD_ESTABLISHED : WORD_SYN_RECEIVED;
    if (is_alone(connection))
        return WORD_SYN_SENT;
    return from->syn_seen || to->syn_seen ? WORD_ESTABLISHED : WORD_MIDSTREAM;
}

/* --- captures of earlier packets ----------------------------------------------------------------
 *
 * A packet is told from those of another run by its time. Clocks of two files may differ, so times
 * up to the latest one at the begin of a run may be of both. */

/* Begins the runs of both directions with packets of a capture, CAPTURE_UNKNOWN if memory had run
 * out before. The last one of them had time `last_ns`. */
static struct capture_runs *begin_runs(uint32_t capture, int64_t last_ns, struct pool *pool) {
    struct capture_runs *runs = pool_zeroed(pool, sizeof *runs);
    for (unsigned i = 0; runs && i < 2; i++)
        runs->of[i] = (struct capture_run){.capture = capture,
                                           .before = CAPTURE_UNKNOWN,
                                           .first_ns = INT64_MIN,
                                           .last_ns = last_ns,
                                           .sure_ns = INT64_MIN,
                                           .before_last_ns = INT64_MIN};
    return runs;
}

void note_capture(struct tcp_connection *connection, unsigned direction,
                  const struct packet_info *packet, uint32_t first_capture, int64_t last_ns,
                  struct pool *pool) {
    if (!connection->captures)
        connection->captures =
            begin_runs(connection->captures_vary ? CAPTURE_UNKNOWN : first_capture, last_ns, pool);
    connection->captures_vary = true;
    if (!connection->captures)
        return;
    struct capture_run *run = &connection->captures->of[direction];
    if (run->capture != packet->capture)
        *run = (struct capture_run){.capture = packet->capture,
                                    .before = run->capture,
                                    .first_frame = (uint32_t)packet->frame,
                                    .first_ns = packet->time_ns,
                                    .last_ns = run->last_ns,
                                    .sure_ns = max64(packet->time_ns, last_ns),
                                    .before_sure_ns = run->sure_ns,
                                    .before_last_ns = run->last_ns};
    run->last_ns = max64(run->last_ns, packet->time_ns);
}

uint32_t capture_of(const struct tcp_connection *connection, unsigned direction, int64_t time_ns,
                    uint32_t frame, const struct packet_info *packet) {
    if (!connection->captures_vary)
        return packet->capture;
    if (!connection->captures)
        return CAPTURE_UNKNOWN;
    const struct capture_run *run = &connection->captures->of[direction];
    if (time_ns > run->sure_ns || (time_ns == run->first_ns && frame == run->first_frame))
        return run->capture;
    return time_ns < run->first_ns && time_ns > run->before_sure_ns ? run->before : CAPTURE_UNKNOWN;
}

/* Returns whether the direction may have a packet of this time: it is not between two runs, nor
 * after the last one. */
static bool may_have(const struct capture_run *run, int64_t time_ns) {
    return time_ns <= run->last_ns && (time_ns <= run->before_last_ns || time_ns >= run->first_ns);
}

uint32_t capture_of_any(const struct tcp_connection *connection, int64_t time_ns, uint32_t frame,
                        const struct packet_info *packet) {
    uint32_t sent = capture_of(connection, 0, time_ns, frame, packet);
    uint32_t returned = capture_of(connection, 1, time_ns, frame, packet);
    if (!connection->captures || sent == returned)
        return sent;
    bool may_be_sent = may_have(&connection->captures->of[0], time_ns);
    bool may_be_returned = may_have(&connection->captures->of[1], time_ns);
    if (may_be_sent == may_be_returned)
        return CAPTURE_UNKNOWN;
    return may_be_sent ? sent : returned;
}
