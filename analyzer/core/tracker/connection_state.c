/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake and the end of a connection (RFC 9293 sections 3.5 and 3.6), as far as SYN, FIN and
 * RST segments at the capture point show them. Both endpoints may open at once; each then answers
 * with its own SYN-ACK. The handshake RTT is unknown if a SYN-ACK was retransmitted, because the
 * ACK does not show which one it answers. */
#include "tracker/connection_state.h"

#include "tracker/receive_window.h"
#include "verdict/retransmission.h"

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

int connection_state(const struct tcp_connection *connection) {
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    if (from->fin_seen && to->fin_seen)
        return WORD_CLOSED;
    if (connection->reset)
        return connection->refused ? WORD_REFUSED : WORD_RESET;
    if (from->fin_seen || to->fin_seen)
        return WORD_HALF_CLOSED;
    if (from->syn_seen && connection->syn_ack_seen)
        return connection->handshake_ack_seen ? WORD_ESTABLISHED : WORD_SYN_RECEIVED;
    /* If the initiator acknowledged data, that took a path that was not captured. */
    if (from->syn_seen && !to->base_known && !to->snd_una_known)
        return WORD_SYN_SENT;
    return from->syn_seen || to->syn_seen ? WORD_ESTABLISHED : WORD_MIDSTREAM;
}

static void take_syn_options(struct tcp_stream *sender, const struct tcp_header *tcp) {
    sender->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    sender->sack_permitted = tcp->options & TCP_OPTION_SACK_PERMITTED;
    sender->scale_offered = tcp->options & TCP_OPTION_WINDOW_SCALE;
    sender->window_scale = tcp->window_scale;
    sender->syn_truncated = tcp->options & TCP_OPTION_CUT;
}

void take_syn(struct segment_context *seg, const struct tcp_header *tcp) {
    struct tcp_stream *sender = seg->sender;
    struct tcp_connection *connection = seg->connection;
    bool answer = tcp->flags & TCP_ACK, first = !sender->syn_seen;
    bool repeated = sender->syn_seen && (!answer || sender->syn_ack_seen);
    /* Segments before the SYN were of an old connection. */
    bool replaces = first && sender->base_known && !sender->unique_bytes &&
                    !sender->snd_una_known && sender->isn != tcp->sequence;
    sender->syns++;
    if (!sender->isn_known || replaces)
        set_isn(sender, tcp->sequence);
    if (replaces)
        sender->snd_nxt = sender->first_seq = 0;
    sender->syn_seen = true;
    sender->base_known = true;
    sender->flight_known = sender->snd_una_known;
    if (repeated) { /* rule V4.8 */
        classify_repeated(seg, -1, 0, "SYN");
        unacked_exclude(&sender->unacked, -1, 0);
    } else if (first) {
        take_syn_options(sender, tcp);
        track_unacked(seg, sender, tcp, 0, 1);
    }
    sender->syn_ack_seen |= answer;
    if (answer) {
        connection->handshake_ambiguous |= connection->syn_ack_seen;
        connection->syn_ack_seen = true;
    } else {
        connection->syn_ns = seg->packet->time_ns;
        connection->handshake_ambiguous |= !seg->packet->time_known;
    }
    negotiate_window_scale(connection);
}

NOINLINE void complete_handshake(struct segment_context *seg, const struct tcp_header *tcp) {
    struct tcp_connection *connection = seg->connection;
    if (!connection->syn_ack_seen || segment_direction(seg) || tcp->flags & (TCP_SYN | TCP_RST))
        return;
    int64_t rtt = seg->packet->time_ns - connection->syn_ns;
    connection->handshake_ack_seen = true;
    if (seg->sender->syn_seen && !connection->handshake_ambiguous && seg->packet->time_known &&
        rtt <= MAX_RTT_NS)
        connection->handshake_rtt_ns = rtt;
}

void take_reset(struct segment_context *seg) {
    struct tcp_connection *connection = seg->connection;
    connection->refused |=
        seg->receiver->syn_seen && !connection->syn_ack_seen && !seg->sender->syn_seen;
    connection->reset = true;
    seg->sender->resets++;
    seg->sender->timestamps |= (seg->tcp->options & TCP_OPTION_TIMESTAMPS) != 0;
    emit_kind(seg, WORD_CONNECTION_RESET, seg->packet->reset_bytes);
}
