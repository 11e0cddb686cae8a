/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the window that each endpoint announces. Windows are in bytes if the scale is known,
 * which takes both SYNs (RFC 7323 section 2.2), else -1.
 *
 * A window probe (RFC 9293 section 3.8.6.1) and a keep-alive (section 3.8.4) carry 0 or 1 byte near
 * snd_una or snd_nxt. They bring no data, so they change neither the gaps nor the RTT; but the
 * receiver may accept the byte of a window probe, which becomes data when the stream goes on above
 * it. */
#include "tracker/steps.h"

#define MAX_WINDOW_SHIFT  14         /* RFC 7323 section 2.3 */
#define MIN_KEEP_ALIVE_NS 1000000000 /* the least interval that systems can be set to */
#define PROBE_ANSWER_NS   5000000    /* beyond the round trip */

/* --- scale ----------------------------------------------------------------------------------- */

/* Returns the shift of the stream's windows, -1 if unknown: rule V10.5. */
static int find_window_shift(const struct tcp_stream *stream, const struct tcp_stream *peer) {
    if (!stream->syn_seen)
        return -1;
    if (!stream->scale_offered)
        return stream->syn_truncated ? -1 : 0;
    if (!peer->syn_seen)
        return -1;
    if (!peer->scale_offered)
        return peer->syn_truncated ? -1 : 0;
    return stream->window_scale < MAX_WINDOW_SHIFT ? stream->window_scale : MAX_WINDOW_SHIFT;
}

void negotiate_window_scale(struct tcp_connection *connection) {
    for (unsigned i = 0; i < 2; i++) {
        struct tcp_stream *stream = &connection->streams[i];
        int shift = find_window_shift(stream, &connection->streams[!i]);
        stream->window_shift_known = shift >= 0;
        stream->window_shift = shift < 0 ? 0 : (uint8_t)shift;
    }
}

/* --- windows --------------------------------------------------------------------------------- */

int64_t zero_window_ns(const struct tcp_stream *stream, int64_t now_ns) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    int64_t current = stream->zero_window ? max64(now_ns - recovery->zero_since_ns, 0) : 0;
    return add_ns(recovery->zero_window_ns, current);
}

int64_t low_window_ns(const struct tcp_stream *stream, int64_t now_ns) {
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    int64_t current = stream->low_window ? max64(now_ns - recovery->low_since_ns, 0) : 0;
    return add_ns(recovery->low_window_ns, current);
}

/* A sender waits with a full segment until the window has room for it, or for half of the largest
 * window (RFC 9293 section 3.8.6.2.1). */
static NOINLINE void note_low_window(struct segment_context *seg, int32_t window, bool low) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    if (low) {
        recovery->low_since_ns = seg->packet->time_ns;
    } else {
        recovery->low_window_ns = low_window_ns(seg->sender, seg->packet->time_ns);
        if (window) {
            recovery->window_opened_ns = seg->packet->time_ns;
            recovery->window_opened_frame = seg->frame;
        }
    }
    seg->sender->low_window = low;
}

/* All data of the other end has come, and its FIN: nobody waits for room any more. */
static bool has_received_all(const struct segment_context *seg) {
    const struct tcp_stream *data = seg->receiver;
    return data->fin_seen && data->snd_una_known && data->snd_una >= data->fin_end;
}

static inline bool is_low(const struct segment_context *seg, int32_t window) {
    const struct tcp_stream *data = seg->receiver;
    return window >= 0 && window < full_segment_size(seg->connection, data) && data->unique_bytes &&
           window < seg->sender->window_max / 2 && seg->packet->time_known &&
           !has_received_all(seg);
}

static void close_window(struct segment_context *seg) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->zero_windows++;
    emit_kind(seg, WORD_ZERO_WINDOW, 0); /* V10.1 */
    if (has_received_all(seg))
        return;
    if (!seg->sender->zero_window)
        recovery->zero_since_ns = seg->packet->time_ns;
    seg->sender->zero_window = true;
}

/* The other end has just probed the window: a round trip before at most. */
static bool is_probed(const struct segment_context *seg) {
    const struct tcp_recovery_state *prober = recovery_of(seg->receiver);
    int64_t late_ns = seg->packet->time_ns - prober->window_probed_ns;
    int64_t rtt = max64(min_rtt(seg->receiver), 0);
    return prober->window_probes && late_ns <= rtt + rtt / 4 + PROBE_ANSWER_NS;
}

static void reopen_window(struct segment_context *seg) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->window_openings++;
    recovery->probed_openings += is_probed(seg);
    recovery->zero_window_ns = zero_window_ns(seg->sender, seg->packet->time_ns);
    recovery->window_opened_ns = seg->packet->time_ns;
    recovery->window_opened_frame = seg->frame;
    seg->sender->zero_window = false;
    seg->receiver->probe_pending = PROBE_NONE;
}

/* Returns the window of a segment that closes or reopens it, or whose scale is not that of others:
 * a SYN's is never scaled (RFC 7323 section 2.2). */
static NOINLINE int32_t take_unusual(struct segment_context *seg, const struct tcp_header *tcp) {
    const struct tcp_stream *sender = seg->sender;
    if (!tcp->window && !(tcp->flags & (TCP_SYN | TCP_FIN)))
        close_window(seg);
    else if (sender->zero_window)
        reopen_window(seg);
    if (tcp->flags & TCP_SYN)
        return tcp->window;
    return sender->window_shift_known ? tcp->window << sender->window_shift : -1;
}

static NOINLINE void note_range(struct tcp_stream *stream, int32_t window) {
    if (!stream->window_range_known || window < stream->window_min)
        stream->window_min = window;
    if (!stream->window_range_known || window > stream->window_max)
        stream->window_max = window;
    stream->window_range_known = true;
}

void update_window(struct segment_context *seg, struct tcp_stream *sender,
                   const struct tcp_header *tcp) {
    bool usual = sender->window_shift_known && !sender->zero_window;
    int32_t window = usual && tcp->window && !(tcp->flags & TCP_SYN)
                         ? tcp->window << sender->window_shift
                         : take_unusual(seg, tcp);
    seg->effect.window = window;
    if (window == sender->window) /* it is within the range, or unknown */
        return;
    sender->window = window;
    if (is_low(seg, window) != sender->low_window)
        note_low_window(seg, window, !sender->low_window);
    if (window >= 0)
        note_range(sender, window);
}

NOINLINE void emit_window_full(struct segment_context *seg) {
    recovery_state(seg, seg->sender)->window_full++;
    emit_kind(seg, WORD_WINDOW_FULL, seg->receiver->window);
}

/* --- probes and keep-alives ------------------------------------------------------------------ */

/* Rule V10.3. Linux probes with 0 bytes one below snd_una, others with 1 byte at snd_una or one
 * above. A pure ACK has 0 bytes at snd_una. */
static bool is_window_probe(const struct segment_context *seg, int64_t start, uint32_t length) {
    int64_t edge = seg->sender->snd_una;
    return seg->receiver->zero_window &&
           (start == edge - 1 || (length && start - edge <= 1 && start >= edge));
}

/* Rule V10.4. If the last data was a single byte, that may be retransmitted because its ACK was
 * lost. A keep-alive has no PSH and follows an idle time longer than an RTO. */
static bool is_keep_alive(const struct segment_context *seg, int64_t start, uint32_t length) {
    const struct tcp_stream *sender = seg->sender;
    bool may_be_data = length && sender->last_payload == 1 &&
                       (seg->tcp->flags & TCP_PSH ||
                        seg->packet->time_ns - sender->last_data_ns < MIN_KEEP_ALIVE_NS);
    return sender->snd_una >= sender->snd_nxt && start == sender->snd_nxt - 1 && !may_be_data;
}

NOINLINE bool take_probe(struct segment_context *seg, int64_t start, uint32_t length) {
    struct tcp_stream *sender = seg->sender;
    if (!sender->flight_known || seg->tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST))
        return false;
    bool probe = is_window_probe(seg, start, length);
    if (!probe && !is_keep_alive(seg, start, length))
        return false;
    struct tcp_recovery_state *recovery = recovery_state(seg, sender);
    recovery->window_probes += probe;
    if (probe)
        recovery->window_probed_ns = seg->packet->time_ns;
    recovery->keep_alives += !probe;
    recovery->probe_bytes += length;
    sender->probe_pending = probe ? PROBE_WINDOW : PROBE_KEEP_ALIVE;
    seg->effect.probe = true;
    emit_kind(seg, probe ? WORD_WINDOW_PROBE : WORD_KEEP_ALIVE, length);
    return true;
}

NOINLINE void accept_probe_byte(struct segment_context *seg, struct tcp_stream *stream,
                                int64_t position) {
    if (position != stream->snd_nxt + 1 || !recovery_of(stream)->probe_bytes || stream->fin_seen)
        return;
    recovery_state(seg, stream)->probe_bytes--;
    stream->unique_bytes++;
    stream->snd_nxt++;
    stream->probe_pending = PROBE_NONE;
}

NOINLINE bool answer_probe(struct segment_context *seg) {
    struct tcp_stream *prober = seg->receiver;
    uint8_t pending = prober->probe_pending;
    if (seg->packet->payload_bytes)
        return false;
    prober->probe_pending = PROBE_NONE;
    if (pending == PROBE_WINDOW)
        return true;
    if (prober->snd_nxt > prober->snd_una) /* of data since: the keep-alive was never answered */
        return false;
    emit_kind(seg, WORD_KEEP_ALIVE_ACK, 0);
    return true;
}
