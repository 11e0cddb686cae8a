/* SPDX-License-Identifier: Apache-2.0 */
/* The stream as this capture point sees it: what is new, what was seen before, what is missing, and
 * how long data waited for its acknowledgment. */
#include "tcp_track.h"

#include "vocabulary.h"

/* A sequence number this far from the stream's highest is no part of it (RFC 9293 windows reach
 * 2^30 at most, RFC 7323 section 2.3). */
#define POSITION_SPAN    ((int64_t)1 << 30)
#define WINDOW_SHIFT_MAX 14 /* RFC 7323 section 2.3 */
/* An acknowledgment that waited this much longer than the least round trip, for one segment with
 * nothing behind it, waited for the receiver's delayed-ACK timer (Linux from 40 ms, RFC 9293 up to
 * 500 ms), not for the network. */
#define DELAYED_ACK_NS 25000000

/* One segment on its way through the functions below. */
struct step {
    struct flow *flow;
    struct tcp_stream *stream; /* of the segment's direction */
    struct tcp_stream *other;
    const struct sighting *seen;
    struct allowance *allowance;
    const struct tcp_listener *listener;
    struct tcp_effect *effect;
    unsigned direction;
};

static void tell(const struct step *step, enum word kind, int64_t bytes, uint32_t related_frame) {
    step->listener->event(step->listener->context, (int)kind, bytes, related_frame, NULL);
}

static uint32_t frame_of(const struct step *step) {
    return step->seen->frame <= UINT32_MAX ? (uint32_t)step->seen->frame : 0;
}

static int64_t position_of(const struct tcp_stream *stream, uint32_t sequence) {
    uint32_t highest = stream->zero_sequence + (uint32_t)stream->highest;
    return stream->highest + (int32_t)(sequence - highest);
}

static void start_stream(struct tcp_stream *stream, uint32_t zero_sequence) {
    stream->started = true;
    stream->zero_sequence = zero_sequence;
}

/* The first segment of a direction: what lies below it passed before the capture began. */
static void base_stream(struct tcp_stream *stream, uint32_t sequence) {
    if (!stream->started)
        start_stream(stream, sequence);
    int64_t position = position_of(stream, sequence);
    stream->based = true;
    stream->base = position;
    if (position > stream->highest)
        stream->highest = position;
}

static void push_unacked(const struct step *step, int64_t end) {
    bool one_way = !step->other->based;
    struct segment *segment = segment_ring_push(
        &step->stream->unacked, one_way ? SEGMENTS_ONE_WAY : SEGMENTS_MOST, step->allowance);
    if (!segment)
        return;
    segment->end = end;
    segment->time_ns = step->seen->time_ns;
    segment->frame = frame_of(step);
    segment->resent = !step->seen->time_known;
}

static void open_hole(struct step *step, int64_t start, int64_t end, bool acked) {
    struct hole hole = {start, end, step->seen->time_ns, frame_of(step), acked};
    struct tcp_stream *stream = acked ? step->other : step->stream;
    stream->unknown_bytes += (uint64_t)hole_list_open(&stream->holes, hole, step->allowance);
    if (acked)
        return;
    stream->holes_opened++;
    tell(step, WORD_HOLE, end - start, 0);
}

/* Bytes above the highest seen. */
static void take_new(struct step *step, int64_t start, int64_t end, int64_t fin) {
    struct tcp_stream *stream = step->stream;
    if (start > stream->highest)
        open_hole(step, stream->highest, start, false);
    else
        start = stream->highest < end ? stream->highest : end;
    step->effect->unique_bytes += end - start;
    stream->highest = end + fin;
    push_unacked(step, stream->highest);
}

static bool is_probe(const struct step *step, int64_t start, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    bool keep_alive =
        start == stream->highest - 1 && stream->acked_known && stream->acked >= stream->highest;
    return end - start == 1 && (keep_alive || step->other->window_zero);
}

/* Bytes that passed before the capture's first segment of this direction. Returns those that are
 * sure to have been sent before. */
static int64_t take_below_base(struct step *step, int64_t start, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    if (start >= stream->base)
        return 0;
    int64_t below = (end < stream->base ? end : stream->base) - start;
    if (stream->acked_known && end <= stream->acked)
        return below;
    step->effect->unique_bytes += below;
    return 0;
}

/* Bytes below the highest seen: they fill holes, or were seen before. */
static void take_old(struct step *step, int64_t start, int64_t end) {
    struct tcp_stream *stream = step->stream;
    int64_t given_up = 0, repeated = take_below_base(step, start, end);
    if (start < stream->base)
        start = end < stream->base ? end : stream->base;
    struct hole_fill fill = hole_list_fill(&stream->holes, start, end, step->allowance, &given_up);
    stream->unknown_bytes += (uint64_t)given_up;
    stream->unseen_bytes -= (uint64_t)fill.acked_bytes;
    stream->holes_filled += fill.closed;
    step->effect->unique_bytes += fill.bytes;
    repeated += end - start - fill.bytes;
    if (fill.bytes) {
        /* What waited above the hole is acknowledged late: no sample of the path. */
        segment_ring_mark_resent(&stream->unacked, start, INT64_MAX);
        tell(step, WORD_HOLE_FILLED, fill.bytes, fill.opener_frame);
    }
    if (!repeated)
        return;
    uint32_t first = segment_ring_mark_resent(&stream->unacked, start, end);
    step->effect->retransmitted_bytes += repeated;
    stream->seen_before_packets++;
    tell(step, WORD_SEEN_BEFORE, repeated, first);
}

static void take_fin_again(struct step *step) {
    segment_ring_mark_resent(&step->stream->unacked, step->stream->fin_end - 1,
                             step->stream->fin_end);
}

/* The data of one segment, `length` bytes from `sequence` on, and its FIN. */
static void take_data(struct step *step, uint32_t sequence, uint32_t length, bool fin) {
    struct tcp_stream *stream = step->stream;
    int64_t start = position_of(stream, sequence), end = start + length;
    step->effect->positions_known = true;
    step->effect->sequence = start;
    if (start > stream->highest + POSITION_SPAN || start < stream->highest - POSITION_SPAN) {
        stream->unknown_bytes += length;
        return;
    }
    if (is_probe(step, start, end) && start < stream->highest)
        return;
    int64_t old_end = end < stream->highest ? end : stream->highest;
    if (fin && stream->fin_seen && end + 1 == stream->fin_end)
        take_fin_again(step);
    if (length && start < stream->highest)
        take_old(step, start, old_end);
    if (end + fin > stream->highest)
        take_new(step, start, end, fin);
    if (fin) {
        stream->fin_seen = true;
        stream->fin_end = end + 1;
    }
    stream->unique_bytes += (uint64_t)step->effect->unique_bytes;
    if (step->effect->retransmitted_bytes)
        stream->retransmitted_bytes += (uint64_t)step->effect->retransmitted_bytes;
}

/* RTT of data that an acknowledgment covered, or -1: never from a segment sent twice (Karn), nor
 * through an acknowledgment held back by a hole or by the delayed-ACK timer. */
static int64_t round_trip(const struct step *step, const struct segment_acked *acked,
                          uint32_t repeats) {
    const struct sample_set *rtt = &step->other->rtt;
    if (!acked->count || acked->resent || repeats || !step->seen->time_known)
        return -1;
    int64_t waited = step->seen->time_ns - acked->newest.time_ns;
    bool alone = acked->count == 1 && !acked->left;
    if (waited < 0 || (alone && rtt->count && waited > rtt->least + DELAYED_ACK_NS))
        return -1;
    return waited;
}

static void acknowledge_holes(struct step *step, int64_t position) {
    struct tcp_stream *other = step->other;
    int64_t unseen =
        other->holes.count ? hole_list_acknowledge(&other->holes, position, step->allowance) : 0;
    /* One byte above may be a FIN that the capture missed: nothing is claimed for it. */
    bool maybe_fin = position == other->highest + 1 && !other->fin_seen;
    if (position > other->highest && !maybe_fin && other->based) {
        unseen += position - other->highest;
        open_hole(step, other->highest, position, true);
    }
    if (position > other->highest && !maybe_fin)
        other->highest = position;
    if (!unseen)
        return;
    other->unseen_bytes += (uint64_t)unseen;
    tell(step, WORD_UNSEEN, unseen, 0);
}

static void advance(struct step *step, int64_t position) {
    struct tcp_stream *other = step->other;
    uint32_t repeats = step->stream->repeats;
    step->stream->repeats = 0;
    acknowledge_holes(step, position);
    other->acked = position;
    other->acked_known = true;
    struct segment_acked acked = segment_ring_acknowledge(&other->unacked, position);
    step->effect->rtt_ns = round_trip(step, &acked, repeats);
    if (step->effect->rtt_ns >= 0)
        sample_set_add(&other->rtt, step->effect->rtt_ns, step->allowance);
}

static bool is_duplicate(const struct step *step, const struct tcp_header *tcp) {
    const struct tcp_stream *stream = step->stream, *other = step->other;
    return !step->seen->payload_bytes && !(tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST)) &&
           tcp->acknowledgment == stream->last_acknowledgment &&
           tcp->window == stream->last_window && other->highest > other->acked;
}

/* What the acknowledging end can at most have received beyond what was seen here. */
static int64_t acknowledgment_reach(const struct tcp_stream *stream) {
    int64_t reach = stream->window_known ? 2 * stream->window_max : POSITION_SPAN;
    return reach < 1 << 20 ? 1 << 20 : reach;
}

static void take_acknowledgment(struct step *step, const struct tcp_header *tcp) {
    struct tcp_stream *stream = step->stream, *other = step->other;
    if (!other->started)
        start_stream(other, tcp->acknowledgment);
    int64_t position = position_of(other, tcp->acknowledgment);
    if (position > other->highest + acknowledgment_reach(stream) ||
        position < other->highest - POSITION_SPAN) {
        stream->bad_acknowledgments++;
        tell(step, WORD_BAD_ACKNOWLEDGMENT, 0, 0);
        return;
    }
    step->effect->acknowledges = true;
    step->effect->acknowledged = position;
    if (tcp->sack_count)
        stream->sack_acks++;
    if (!other->acked_known || position > other->acked) {
        advance(step, position);
    } else if (position == other->acked && is_duplicate(step, tcp)) {
        stream->duplicate_acks++;
        stream->repeats++;
    }
    stream->last_acknowledgment = tcp->acknowledgment;
    stream->last_window = tcp->window;
}

/* The shift of the windows that `stream` announces, -1 when not known. Scaling is in force only
 * when both SYNs offered it (RFC 7323 section 2.2). */
static int window_shift(const struct tcp_stream *stream, const struct tcp_stream *other) {
    if (!stream->syn_seen)
        return -1;
    if (!stream->scale_offered)
        return 0;
    if (!other->syn_seen)
        return -1;
    if (!other->scale_offered)
        return 0;
    return stream->window_scale < WINDOW_SHIFT_MAX ? stream->window_scale : WINDOW_SHIFT_MAX;
}

static void take_window(struct step *step, const struct tcp_header *tcp) {
    struct tcp_stream *stream = step->stream;
    bool syn = tcp->flags & TCP_SYN;
    int shift = syn ? 0 : window_shift(stream, step->other);
    bool zero = !tcp->window && !(tcp->flags & (TCP_SYN | TCP_FIN));
    if (zero)
        stream->zero_windows++;
    if (zero && !stream->window_zero)
        tell(step, WORD_ZERO_WINDOW, 0, 0);
    stream->window_zero = zero;
    if (shift < 0)
        return;
    int64_t window = (int64_t)tcp->window << shift;
    step->effect->window_known = true;
    step->effect->window = window;
    if (!stream->window_known || window < stream->window_min)
        stream->window_min = window;
    if (!stream->window_known || window > stream->window_max)
        stream->window_max = window;
    stream->window_known = true;
}

static void take_syn_options(struct tcp_stream *stream, const struct tcp_header *tcp) {
    stream->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    stream->sack_permitted = tcp->options & TCP_OPTION_SACK_PERMITTED;
    stream->scale_offered = tcp->options & TCP_OPTION_WINDOW_SCALE;
    stream->window_scale = tcp->window_scale;
}

static void take_syn(struct step *step, const struct tcp_header *tcp) {
    struct tcp_stream *stream = step->stream;
    struct flow *flow = step->flow;
    bool answer = tcp->flags & TCP_ACK;
    bool again = stream->syn_seen;
    stream->syns++;
    if (!stream->started)
        start_stream(stream, tcp->sequence + 1);
    stream->syn_seen = true;
    stream->based = true;
    if (again) {
        segment_ring_mark_resent(&stream->unacked, -1, 0);
        tell(step, WORD_HANDSHAKE_RETRANSMISSION, 0, 0);
    } else {
        take_syn_options(stream, tcp);
        push_unacked(step, 0);
    }
    if (answer) {
        flow->handshake_doubtful |= flow->syn_ack_seen;
        flow->syn_ack_seen = true;
    } else {
        flow->syn_ns = step->seen->time_ns;
        flow->handshake_doubtful |= !step->seen->time_known;
    }
}

/* The initiator's first acknowledgment of the SYN-ACK completes the handshake. */
static void complete_handshake(struct step *step, const struct tcp_header *tcp) {
    struct flow *flow = step->flow;
    if (flow->handshake_ack_seen || !flow->syn_ack_seen || step->direction ||
        tcp->flags & (TCP_SYN | TCP_RST))
        return;
    flow->handshake_ack_seen = true;
    if (step->stream->syn_seen && !flow->handshake_doubtful && step->seen->time_known)
        flow->handshake_rtt_ns = step->seen->time_ns - flow->syn_ns;
}

static void take_reset(struct step *step) {
    struct flow *flow = step->flow;
    bool answers_syn = step->other->syn_seen && !flow->syn_ack_seen && !step->stream->syn_seen;
    step->stream->resets++;
    flow->refused |= answers_syn;
    flow->reset = true;
    tell(step, WORD_CONNECTION_RESET, 0, 0);
}

static void count_flags(struct tcp_stream *stream, uint16_t flags) {
    stream->fins += (flags & TCP_FIN) != 0;
    if (flags & TCP_SYN) /* there they negotiate (RFC 3168 section 6.1.1) */
        return;
    stream->ecn_echo += (flags & TCP_ECE) != 0;
    stream->ecn_cwr += (flags & TCP_CWR) != 0;
}

static void note_flight(struct step *step) {
    int64_t flight = tcp_flight(step->flow, step->direction);
    if (flight > step->stream->flight_max)
        step->stream->flight_max = flight;
}

static struct step begin_step(struct flow *flow, unsigned direction, const struct sighting *seen,
                              struct allowance *allowance, const struct tcp_listener *listener,
                              struct tcp_effect *effect) {
    *effect = (struct tcp_effect){.rtt_ns = -1};
    return (struct step){.flow = flow,
                         .stream = &flow->directions[direction].tcp,
                         .other = &flow->directions[!direction].tcp,
                         .seen = seen,
                         .allowance = allowance,
                         .listener = listener,
                         .effect = effect,
                         .direction = direction};
}

void tcp_track(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
               const struct sighting *seen, struct allowance *allowance,
               const struct tcp_listener *listener, struct tcp_effect *effect) {
    struct step step = begin_step(flow, direction, seen, allowance, listener, effect);
    bool syn = tcp->flags & TCP_SYN, rst = tcp->flags & TCP_RST;
    /* The rest of a fragmented segment is still to come, and its end with it. */
    bool fin = tcp->flags & TCP_FIN && !seen->more_fragments;
    step.stream->timestamps |= (tcp->options & TCP_OPTION_TIMESTAMPS) != 0;
    if (tcp->flags & (TCP_FIN | TCP_ECE | TCP_CWR))
        count_flags(step.stream, tcp->flags);
    if (syn)
        take_syn(&step, tcp);
    else if (!step.stream->based)
        base_stream(step.stream, tcp->sequence);
    if (rst) {
        take_reset(&step);
        return;
    }
    take_data(&step, tcp->sequence + syn, seen->payload_bytes, fin);
    if (tcp->flags & TCP_ACK) {
        complete_handshake(&step, tcp);
        take_acknowledgment(&step, tcp);
    }
    take_window(&step, tcp);
    note_flight(&step);
}

void tcp_track_data(struct flow *flow, unsigned direction, uint32_t sequence,
                    const struct sighting *seen, struct allowance *allowance,
                    const struct tcp_listener *listener, struct tcp_effect *effect) {
    struct step step = begin_step(flow, direction, seen, allowance, listener, effect);
    take_data(&step, sequence, seen->payload_bytes, false);
    note_flight(&step);
}

bool tcp_begins_anew(const struct flow *flow, unsigned direction, const struct tcp_header *tcp) {
    const struct tcp_stream *stream = &flow->directions[direction].tcp;
    const struct tcp_stream *other = &flow->directions[!direction].tcp;
    if (!(tcp->flags & TCP_SYN) || tcp->flags & TCP_RST)
        return false;
    if (stream->started && stream->zero_sequence == tcp->sequence + 1)
        return false; /* the same SYN again, or one stored after its answer */
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
    if (from->syn_seen && !to->based)
        return WORD_SYN_SENT;
    return from->syn_seen || to->syn_seen ? WORD_ESTABLISHED : WORD_MIDSTREAM;
}

int64_t tcp_flight(const struct flow *flow, unsigned direction) {
    const struct tcp_stream *stream = &flow->directions[direction].tcp;
    if (!stream->acked_known || !stream->based)
        return -1;
    return stream->highest > stream->acked ? stream->highest - stream->acked : 0;
}

int64_t tcp_window(const struct flow *flow, unsigned direction) {
    const struct tcp_stream *stream = &flow->directions[direction].tcp;
    int shift = window_shift(stream, &flow->directions[!direction].tcp);
    return shift < 0 || !stream->window_known ? -1 : (int64_t)stream->last_window << shift;
}

void tcp_stream_free(struct tcp_stream *stream, struct allowance *allowance) {
    hole_list_free(&stream->holes, allowance);
    segment_ring_free(&stream->unacked, allowance);
    sample_set_free(&stream->rtt, allowance);
}
