/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker/receive_window.h"

#include "verdict/recent_verdicts.h"

#define WINDOW_SHIFT_MAX    14         /* RFC 7323 section 2.3 */
#define KEEP_ALIVE_LEAST_NS 1000000000 /* the least that systems can be set to */

/* The shift of the windows that `stream` announces, -1 when not known. Scaling is in force only
 * when both SYNs offered it (RFC 7323 section 2.2). */
static int window_shift(const struct tcp_stream *stream, const struct tcp_stream *other) {
    if (!stream->syn_seen)
        return -1;
    if (!stream->scale_offered)
        return stream->syn_cut ? -1 : 0;
    if (!other->syn_seen)
        return -1;
    if (!other->scale_offered)
        return other->syn_cut ? -1 : 0;
    return stream->window_scale < WINDOW_SHIFT_MAX ? stream->window_scale : WINDOW_SHIFT_MAX;
}

static void keep_shift(struct tcp_stream *stream, const struct tcp_stream *other) {
    int shift = window_shift(stream, other);
    stream->shift_known = shift >= 0;
    stream->window_shift = shift < 0 ? 0 : (uint8_t)shift;
}

void window_agree(struct tcp_stream *stream, struct tcp_stream *other) {
    keep_shift(stream, other);
    keep_shift(other, stream);
}

int64_t tcp_window(const struct flow *flow, unsigned direction) {
    return stream_window(&flow->directions[direction].tcp);
}

int64_t window_closed_ns(const struct tcp_stream *stream, int64_t now_ns) {
    const struct tcp_trouble *trouble = tcp_trouble_of(stream);
    int64_t open_since = stream->window_zero && now_ns > trouble->zero_since_ns
                             ? now_ns - trouble->zero_since_ns
                             : 0;
    return sum_of(trouble->zero_window_ns, open_since);
}

static APART void take_zero(struct step *step) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->zero_windows++;
    if (!step->stream->window_zero)
        trouble->zero_since_ns = step->seen->time_ns;
    step->stream->window_zero = true;
    step_tell_kind(step, WORD_ZERO_WINDOW, 0, 0);
}

static APART void take_opening(struct step *step) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->zero_window_ns = window_closed_ns(step->stream, step->seen->time_ns);
    trouble->opened_ns = step->seen->time_ns;
    trouble->opened_frame = step_frame(step);
    step->stream->window_zero = false;
    step->other->pending = PROBE_NONE;
}

static APART void note_range(struct tcp_stream *stream, int32_t window) {
    if (!stream->window_known || window < stream->window_min)
        stream->window_min = window;
    if (!stream->window_known || window > stream->window_max)
        stream->window_max = window;
    stream->window_known = true;
}

/* The window in bytes, -1 when not known, that closes or opens, or is not scaled as others are. */
static APART int32_t take_unusual(struct step *step, const struct tcp_header *tcp) {
    const struct tcp_stream *stream = step->stream;
    if (!tcp->window && !(tcp->flags & (TCP_SYN | TCP_FIN)))
        take_zero(step);
    else if (stream->window_zero)
        take_opening(step);
    if (tcp->flags & TCP_SYN) /* never scaled (RFC 7323 section 2.2) */
        return tcp->window;
    return stream->shift_known ? tcp->window << stream->window_shift : -1;
}

void window_take(struct step *step, struct tcp_stream *stream, const struct tcp_header *tcp) {
    bool usual = stream->shift_known && !stream->window_zero;
    int32_t window = usual && tcp->window && !(tcp->flags & TCP_SYN)
                         ? tcp->window << stream->window_shift
                         : take_unusual(step, tcp);
    step->effect.window = window;
    if (window == stream->window) /* so it is within the range, or not known */
        return;
    stream->window = window;
    if (window >= 0)
        note_range(stream, window);
}

APART void window_tell_full(struct step *step) {
    step_trouble(step, step->stream)->window_full++;
    step_tell_kind(step, WORD_WINDOW_FULL, stream_window(step->other), 0);
}

/* A probe is of 0 or 1 byte, at the edge of the closed window or beside it (RFC 9293 section
 * 3.8.6.1; Linux probes without data, one below). A bare acknowledgment stands at the edge too. */
static bool is_window_probe(const struct step *step, int64_t start, uint32_t length) {
    int64_t edge = step->stream->acked;
    return step->other->window_zero &&
           (start == edge - 1 || (length && start - edge <= 1 && start >= edge));
}

/* The stream's last byte came alone, and may be sent again because its acknowledgment was lost: a
 * keep-alive pushes nothing, and waits for longer than a retransmission. */
static bool may_be_data(const struct step *step, uint32_t length) {
    return length && step->stream->last_tiny &&
           (step->tcp->flags & TCP_PSH ||
            step->seen->time_ns - step->stream->last_data_ns < KEEP_ALIVE_LEAST_NS);
}

/* RFC 9293 section 3.8.4. */
static bool is_keep_alive(const struct step *step, int64_t start, uint32_t length) {
    const struct tcp_stream *stream = step->stream;
    return stream->acked >= stream->highest && start == stream->highest - 1 &&
           !may_be_data(step, length);
}

APART bool window_take_tiny(struct step *step, int64_t start, uint32_t length) {
    struct tcp_stream *stream = step->stream;
    if (!step->tcp || !stream->acked_known || !stream->based ||
        step->tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST))
        return false;
    bool probe = is_window_probe(step, start, length);
    if (!probe && !is_keep_alive(step, start, length))
        return false;
    struct tcp_trouble *trouble = step_trouble(step, stream);
    trouble->window_probes += probe;
    trouble->keep_alives += !probe;
    trouble->probe_bytes += length;
    stream->pending = probe ? PROBE_WINDOW : PROBE_KEEP_ALIVE;
    step->effect.probe = true;
    step_tell_kind(step, probe ? WORD_WINDOW_PROBE : WORD_KEEP_ALIVE, length, 0);
    return true;
}

APART void window_pass_byte(struct step *step, struct tcp_stream *stream, int64_t position) {
    if (position != stream->highest + 1 || !tcp_trouble_of(stream)->probe_bytes || stream->fin_seen)
        return;
    step_trouble(step, stream)->probe_bytes--;
    stream->unique_bytes++;
    stream->highest++;
    stream->pending = PROBE_NONE;
}

APART bool window_settle_probe(struct step *step) {
    uint8_t pending = step->other->pending;
    if (step->seen->payload_bytes)
        return false;
    step->other->pending = PROBE_NONE;
    if (pending == PROBE_KEEP_ALIVE && step->other->highest > step->other->acked)
        return false; /* it was never answered: this is about data sent since */
    if (pending == PROBE_KEEP_ALIVE)
        step_tell_kind(step, WORD_KEEP_ALIVE_ACK, 0, 0);
    return true;
}
