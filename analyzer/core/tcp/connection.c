/* SPDX-License-Identifier: Apache-2.0 */
/* How far a conversation came, and where another begins on the same ports. */
#include "tracker/tracker.h"

bool tcp_begins_anew(const struct flow *flow, unsigned direction, const struct tcp_header *tcp) {
    const struct tcp_stream *stream = &flow->directions[direction].tcp;
    const struct tcp_stream *other = &flow->directions[!direction].tcp;
    if (!(tcp->flags & TCP_SYN) || tcp->flags & TCP_RST)
        return false;
    /* The same SYN again, or one stored after its answer; after its sender's reset of an old
     * connection it begins anew (RFC 9293 section 3.5.1). */
    if (stream->started && stream->zero_sequence == tcp->sequence + 1)
        return stream->resets && !flow->syn_ack_seen && !(tcp->flags & TCP_ACK);
    bool ended = flow->reset || (stream->fin_seen && other->fin_seen);
    if (tcp->flags & TCP_ACK)
        return ended;
    bool simultaneous = !stream->started && other->syn_seen && !flow->syn_ack_seen && !ended;
    return !simultaneous; /* RFC 9293 section 3.5: both ends may open at once */
}

int tcp_state(const struct flow *flow) {
    const struct tcp_stream *from = &flow->directions[0].tcp, *to = &flow->directions[1].tcp;
    if (from->fin_seen && to->fin_seen)
        return WORD_CLOSED;
    if (flow->reset)
        return flow->refused ? WORD_REFUSED : WORD_RESET;
    if (from->fin_seen || to->fin_seen)
        return WORD_HALF_CLOSED;
    if (from->syn_seen && flow->syn_ack_seen)
        return flow->handshake_ack_seen ? WORD_ESTABLISHED : WORD_SYN_RECEIVED;
    /* What it acknowledges was sent, on a way that was not captured. */
    if (from->syn_seen && !to->based && !to->acked_known)
        return WORD_SYN_SENT;
    return from->syn_seen || to->syn_seen ? WORD_ESTABLISHED : WORD_MIDSTREAM;
}
