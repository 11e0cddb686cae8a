/* SPDX-License-Identifier: Apache-2.0 */
/* The stream as this capture point sees it: what is new, what was seen before, what is missing, and
 * how long data waited for its acknowledgment. */
#include "tracker/tracker.h"

#include "tracker/receive_window.h"
#include "tracker/time_accounting.h"
#include "verdict/duplicate.h"
#include "verdict/retransmission.h"
#include "verdict/retransmit_cause.h"

/* An acknowledgment that waited this much longer than the least round trip, for one segment with
 * nothing behind it, waited for the receiver's delayed-ACK timer (Linux from 40 ms, RFC 9293 up to
 * 500 ms), not for the network. */
#define DELAYED_ACK_NS 25000000
#define REPORTED_MOST  (16 << 20) /* beyond, SACK blocks are somebody's who renumbers streams */
#define ID_STEP_MOST   64 /* between two packets of one direction: other connections take ids too */

static APART void start_stream(struct tcp_stream *stream, uint32_t zero_sequence) {
    stream->started = true;
    stream->zero_sequence = zero_sequence;
}

/* Whether the receiver has reported data above it, as near as what is in flight. */
static bool is_reported_above(const struct tcp_stream *stream, int64_t position) {
    const struct tcp_trouble *trouble = tcp_trouble_of(stream);
    int64_t above = trouble->sacked_highest - position;
    return trouble->sacked_count && stream->acked_known && position >= stream->acked && above > 0 &&
           above <= REPORTED_MOST;
}

/* The first segment of a direction: what lies below it passed before the capture began. */
static APART void base_stream(struct tcp_stream *stream, uint32_t sequence) {
    if (!stream->started)
        start_stream(stream, sequence);
    int64_t position = stream_position(stream, sequence);
    if (is_reported_above(stream, position)) /* it is sent again */
        position = stream->trouble->sacked_highest;
    stream->based = true;
    stream->flight_known = stream->acked_known;
    stream->base = position;
    if (position > stream->highest)
        stream->highest = position;
}

static IN_LINE void push_unacked(const struct step *step, struct tcp_stream *stream,
                                 const struct tcp_header *tcp, int64_t end, int64_t length) {
    const struct sighting *seen = step->seen;
    struct segment *segment = segment_ring_next(&stream->unacked);
    if (!segment)
        segment = segment_ring_push(&stream->unacked,
                                    step->other->based ? SEGMENTS_MOST : SEGMENTS_ONE_WAY,
                                    step->allowance);
    if (!segment)
        return;
    segment->end = end;
    segment->frame = step_frame(step);
    segment->tsval = tcp && tcp->options & TCP_OPTION_TIMESTAMPS ? tcp->timestamp_value : 0;
    segment->length = (uint32_t)length;
    segment->ip_id = seen->ip_id;
    segment->time_ns = seen->time_ns;
    segment->resent = !seen->time_known;
}

static APART void open_gap(struct step *step, int64_t start, int64_t end, bool acked) {
    struct gap gap = {.start = start,
                      .end = end,
                      .opened_ns = step->seen->time_ns,
                      .acked_ns = step->seen->time_ns,
                      .event = EVENT_NONE,
                      .opener_frame = step_frame(step),
                      .ip_id = acked ? 0 : step->seen->ip_id,
                      .timestamps = !acked && step_timestamps(step),
                      .acked = acked};
    struct tcp_stream *stream = acked ? step->other : step->stream;
    gap.tsval = gap.timestamps ? step->tcp->timestamp_value : 0;
    struct tcp_trouble *trouble = step_trouble(step, stream);
    trouble->unknown_bytes += (uint64_t)range_set_open(&stream->gaps, gap, step->allowance);
    if (acked)
        return;
    trouble->gaps_opened++;
    /* Right behind a suspected timeout: what was lost with it; new data shows how far it had been
     * sent (F-RTO, RFC 5682 section 2.1). */
    if (trouble->suspected_point && trouble->suspected_point == start)
        trouble->timeout_point = end;
    step_tell_kind(step, WORD_GAP, end - start, 0);
}

/* Bytes above the highest seen. */
static IN_LINE void take_new(struct step *step, struct tcp_stream *stream,
                             const struct tcp_header *tcp, int64_t start, int64_t end,
                             int64_t fin) {
    if (start > stream->highest) {
        open_gap(step, stream->highest, start, false);
    } else {
        start = stream->highest; /* no more than the end: with the FIN, that is above it */
        judge_pause(step, stream, end - start, fin);
    }
    window_note_data(step, stream, end);
    step->effect.unique_bytes += end - start;
    stream->highest = end + fin;
    push_unacked(step, stream, tcp, stream->highest, end + fin - start);
}

/* Bytes that passed before the capture's first segment of this direction. Returns those that are
 * sure to have been sent before. */
static int64_t take_below_base(struct step *step, int64_t start, int64_t end) {
    struct tcp_stream *stream = step->stream;
    if (start >= stream->base)
        return 0;
    judge_from_before(step, start, end < stream->base ? end : stream->base);
    int64_t below = (end < stream->base ? end : stream->base) - start;
    bool acked = stream->acked_known && end <= stream->acked;
    if (end >= stream->base) /* it has been seen now */
        stream->base = start;
    if (acked)
        return below;
    step->effect.unique_bytes += below;
    return 0;
}

/* Returns whether they had been sent before. */
static bool take_fill(struct step *step, int64_t start, int64_t end, const struct gap_fill *fill) {
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->unseen_bytes -= (uint64_t)fill->acked_bytes;
    trouble->gaps_filled += fill->closed;
    /* What waited above the gap is acknowledged late: no sample of the path. */
    segment_ring_mark_resent(&step->stream->unacked, start, INT64_MAX);
    return judge_fill(step, start, end, fill);
}

/* Bytes below the highest seen: they fill gaps, or were seen before. */
static APART void take_old(struct step *step, int64_t start, int64_t end) {
    struct tcp_stream *stream = step->stream;
    int64_t given_up = 0, base = stream->base, repeated = take_below_base(step, start, end);
    if (start < base)
        start = end < base ? end : base;
    struct gap_fill fill = range_set_fill(&stream->gaps, start, end, step->allowance, &given_up);
    step->effect.unique_bytes += fill.bytes;
    repeated += end - start - fill.bytes;
    bool again = fill.bytes && take_fill(step, start, end, &fill);
    if (given_up)
        step_trouble(step, stream)->unknown_bytes += (uint64_t)given_up;
    if (!repeated)
        return;
    if (!again && !judge_again(step, start, end, NULL)) {
        step_trouble(step, stream)->duplicate_bytes += (uint64_t)repeated;
        return;
    }
    segment_ring_mark_resent(&stream->unacked, start, end);
    step->effect.retransmitted_bytes += repeated;
}

static void take_fin_again(struct step *step) {
    int64_t end = step->stream->fin_end;
    judge_again(step, end - 1, end, "FIN");
    segment_ring_mark_resent(&step->stream->unacked, end - 1, end);
}

/* A FIN that something sent after it has passed: an acknowledgment without data, which stands
 * behind it. With data before it, it shares that data's fate. */
static void take_late_fin(struct step *step, int64_t at, bool alone) {
    struct tcp_stream *stream = step->stream;
    int64_t given_up = 0;
    struct gap_fill fill = range_set_fill(&stream->gaps, at, at + 1, step->allowance, &given_up);
    if (!fill.bytes)
        return;
    step_trouble(step, stream)->unknown_bytes += (uint64_t)given_up;
    if (alone)
        take_fill(step, at, at + 1, &fill);
    else
        step_trouble(step, stream)->unseen_bytes -= (uint64_t)fill.acked_bytes;
}

/* With data before it, the FIN is sent again as part of that. */
static APART void take_old_fin(struct step *step, int64_t at, bool alone) {
    if (!step->stream->fin_seen)
        take_late_fin(step, at, alone);
    else if (alone && at + 1 == step->stream->fin_end)
        take_fin_again(step);
}

static inline void note_data(struct step *step, struct tcp_stream *stream, uint32_t length) {
    stream->last_data_ns = step->seen->time_ns;
    stream->last_tiny = length == 1;
    stream->data_sent_last = true;
    step->other->data_sent_last = false;
}

/* Bytes or a FIN, from `start` on. */
static IN_LINE void take_stretch(struct step *step, struct tcp_stream *stream,
                                 const struct tcp_header *tcp, int64_t start, uint32_t length,
                                 int64_t fin) {
    int64_t end = start + length;
    if (length && start < stream->highest)
        take_old(step, start, end < stream->highest ? end : stream->highest);
    if (end + fin > stream->highest)
        take_new(step, stream, tcp, start, end, fin);
    else if (fin)
        take_old_fin(step, end, !length);
    if (fin) {
        stream->fin_seen = true;
        stream->fin_end = end + 1;
    }
    stream->unique_bytes += (uint64_t)step->effect.unique_bytes;
    if (step->effect.retransmitted_bytes)
        step_trouble(step, stream)->retransmitted_bytes +=
            (uint64_t)step->effect.retransmitted_bytes;
    if (length)
        note_data(step, stream, length);
}

/* The data of one segment, `length` bytes from `sequence` on, and its FIN. */
static IN_LINE void take_data(struct step *step, struct tcp_stream *stream,
                              const struct tcp_header *tcp, uint32_t sequence, uint32_t length,
                              int64_t fin) {
    int64_t start = stream_position(stream, sequence), ahead = start - stream->highest;
    step->effect.positions_known = true;
    step->effect.sequence = start;
    if (ahead > POSITION_SPAN || ahead < -POSITION_SPAN) {
        step_trouble(step, stream)->unknown_bytes += length;
        return;
    }
    if (window_take_probe(step, stream, start, length))
        return;
    window_pass_probe(step, stream, start);
    if (length || fin || start > stream->highest) /* else it only stands somewhere */
        take_stretch(step, stream, tcp, start, length, fin);
}

/* RTT of data that an acknowledgment covered, or -1: never from a segment sent twice (Karn), nor
 * through an acknowledgment held back by a gap or by the delayed-ACK timer. */
static int64_t round_trip(const struct step *step, const struct segment_acked *acked,
                          uint32_t repeats) {
    const struct sample_set *rtt = &step->other->rtt;
    if (!acked->count || acked->resent || repeats || !step->seen->time_known)
        return -1;
    int64_t waited = step->seen->time_ns - acked->newest_ns;
    bool alone = acked->count == 1 && !acked->left;
    if (waited < 0 || waited > ROUND_TRIP_MOST ||
        (alone && rtt->count && waited > rtt->least + DELAYED_ACK_NS))
        return -1;
    return waited;
}

static APART void acknowledge_unseen(struct step *step, struct tcp_stream *other,
                                     int64_t position) {
    int64_t unseen = other->gaps.count ? range_set_acknowledge(&other->gaps, position,
                                                               step->seen->time_ns, step->allowance)
                                       : 0;
    /* One byte above may be a FIN that the capture missed: nothing is claimed for it. */
    bool maybe_fin = position == other->highest + 1 && !other->fin_seen;
    if (position > other->highest && !maybe_fin && other->based) {
        unseen += position - other->highest;
        open_gap(step, other->highest, position, true);
    }
    if (position > other->highest && !maybe_fin)
        other->highest = position;
    if (!unseen)
        return;
    step_trouble(step, other)->unseen_bytes += (uint64_t)unseen;
    uint64_t event = step_tell(step, &(struct tcp_event){.kind = WORD_ACKED_UNSEEN_SEGMENT,
                                                         .place = WORD_CAPTURE,
                                                         .evidence = WORD_ACKS,
                                                         .bytes = unseen});
    range_set_tell(&other->gaps, step->seen->time_ns, event);
}

static inline void acknowledge_gaps(struct step *step, struct tcp_stream *other, int64_t position) {
    if (other->gaps.count || position > other->highest)
        acknowledge_unseen(step, other, position);
}

/* RFC 6298 section 2. */
static void smooth(struct tcp_stream *stream, int64_t rtt_ns) {
    int64_t rtt_us = rtt_ns / 1000 < INT32_MAX ? rtt_ns / 1000 : INT32_MAX;
    if (!stream->rtt.count) {
        stream->srtt_us = (uint32_t)rtt_us;
        stream->rttvar_us = (uint32_t)rtt_us / 2;
        return;
    }
    int64_t error = rtt_us - stream->srtt_us, size = error < 0 ? -error : error;
    stream->rttvar_us = (uint32_t)(stream->rttvar_us + (size - stream->rttvar_us) / 4);
    stream->srtt_us = (uint32_t)(stream->srtt_us + error / 8);
}

static inline void advance(struct step *step, struct tcp_stream *stream, struct tcp_stream *other,
                           int64_t position) {
    uint32_t repeats = stream->repeats;
    stream->repeats = 0;
    window_pass_probe(step, other, position);
    if (other->unsettled)
        judge_acknowledged(step, position);
    if (other->trouble)
        other->trouble->advanced_from = other->acked;
    acknowledge_gaps(step, other, position);
    judge_note_acked(step);
    other->acked = position;
    if (!other->flight_known) { /* else both are */
        other->acked_known = true;
        other->flight_known = other->based;
    }
    other->advanced_ns = step->seen->time_ns;
    other->advanced_frame = step_frame(step);
    struct segment_acked acked = segment_ring_acknowledge(&other->unacked, position);
    int64_t rtt_ns = round_trip(step, &acked, repeats);
    step->effect.rtt_ns = rtt_ns;
    if (rtt_ns >= 0) {
        smooth(other, rtt_ns);
        sample_set_add(&other->rtt, rtt_ns, step->allowance);
    }
}

/* An acknowledgment that says the same once more. */
static bool is_repeated(const struct step *step, const struct tcp_header *tcp) {
    const struct tcp_stream *stream = step->stream;
    return !step->seen->payload_bytes && !step->effect.probe &&
           !(tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST)) &&
           tcp->acknowledgment == stream->last_acknowledgment && tcp->window == stream->last_window;
}

/* An old connection's, which a SYN cannot be answered with (RFC 9293 section 3.5.1). */
static bool is_of_old_connection(const struct step *step, int64_t position) {
    const struct tcp_stream *stream = step->stream, *other = step->other;
    return other->syn_seen && !stream->syn_seen && !other->acked_known && other->highest <= 0 &&
           position != 0;
}

/* What was reported and is no longer: acknowledged, or dropped by the receiver, which may do so
 * (RFC 2018 section 8). A bare acknowledgment reports all that is held above it (section 4). */
static APART void take_sack_end(const struct step *step, const struct tcp_header *tcp,
                                int64_t position) {
    struct tcp_trouble *trouble = step->other->trouble;
    bool bare = !step->seen->payload_bytes && !(tcp->options & TCP_OPTION_CUT);
    if (bare || position >= trouble->sacked_highest)
        trouble->sacked_count = 0;
}

static void take_sack(struct step *step, const struct tcp_header *tcp, int64_t position) {
    if (!tcp->sack_count) {
        if (tcp_trouble_of(step->other)->sacked_count)
            take_sack_end(step, tcp, position);
        return;
    }
    step_trouble(step, step->stream)->sack_acks++;
    judge_sack(step, position);
}

static APART void take_repeated(struct step *step) {
    judge_repeated(step);
    if (step->other->highest <= step->other->acked) /* a duplicate ACK takes data outstanding */
        return;
    step_trouble(step, step->stream)->duplicate_acks++;
    step_trouble(step, step->other)->news_ns = step->seen->time_ns;
    step->stream->repeats++;
    step_tell_kind(step, WORD_DUPLICATE_ACK, 0, 0);
}

/* Whether the position is none that this stream can have come to. */
static inline bool is_bad(const struct step *step, const struct tcp_stream *stream,
                          const struct tcp_stream *other, int64_t position) {
    int64_t ahead = position - other->highest;
    return ahead < -POSITION_SPAN || (ahead > 0 && ahead > step_reach(stream)) ||
           (!other->acked_known && is_of_old_connection(step, position));
}

/* Returns whether what the segment says is not of the past. */
static inline bool take_acknowledgment(struct step *step, struct tcp_stream *stream,
                                       struct tcp_stream *other, const struct tcp_header *tcp) {
    if (!other->started)
        start_stream(other, tcp->acknowledgment);
    int64_t position = stream_position(other, tcp->acknowledgment);
    if (is_bad(step, stream, other, position)) {
        step_trouble(step, stream)->acks_out_of_range++;
        step_tell_kind(step, WORD_ACK_OUT_OF_RANGE, 0, 0);
        return true;
    }
    int64_t acked = other->acked_known ? other->acked : INT64_MIN;
    step->effect.acknowledges = true;
    step->effect.acknowledged = position;
    if (position < acked) { /* overtaken by a later one: its window is old too */
        if (tcp->sack_count)
            take_sack(step, tcp, position);
        return false;
    }
    if (position > acked)
        advance(step, stream, other, position);
    else if (!window_take_answer(step) && is_repeated(step, tcp))
        take_repeated(step);
    take_sack(step, tcp, position);
    cause_note_report(step);
    stream->last_acknowledgment = tcp->acknowledgment;
    stream->last_window = tcp->window;
    return true;
}

static void take_syn_options(struct tcp_stream *stream, const struct tcp_header *tcp) {
    stream->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    stream->sack_permitted = tcp->options & TCP_OPTION_SACK_PERMITTED;
    stream->scale_offered = tcp->options & TCP_OPTION_WINDOW_SCALE;
    stream->window_scale = tcp->window_scale;
    stream->syn_cut = tcp->options & TCP_OPTION_CUT;
}

static void take_syn(struct step *step, const struct tcp_header *tcp) {
    struct tcp_stream *stream = step->stream;
    struct flow *flow = step->flow;
    bool answer = tcp->flags & TCP_ACK;
    /* Both ends may open at once; then each answers with its SYN (RFC 9293 section 3.5). */
    bool again = stream->syn_seen && (!answer || stream->syn_ack_seen);
    bool first = !stream->syn_seen;
    stream->syns++;
    bool of_old = first && stream->based && !stream->unique_bytes && !stream->acked_known &&
                  stream->zero_sequence != tcp->sequence + 1;
    if (!stream->started || of_old) /* what was seen before was of an old connection */
        start_stream(stream, tcp->sequence + 1);
    if (of_old)
        stream->highest = stream->base = 0;
    stream->syn_seen = true;
    stream->based = true;
    stream->flight_known = stream->acked_known;
    if (again) {
        judge_again(step, -1, 0, "SYN");
        segment_ring_mark_resent(&stream->unacked, -1, 0);
    } else if (first) {
        take_syn_options(stream, tcp);
        push_unacked(step, stream, tcp, 0, 1);
    }
    stream->syn_ack_seen |= answer;
    if (answer) {
        flow->handshake_doubtful |= flow->syn_ack_seen;
        flow->syn_ack_seen = true;
    } else {
        flow->syn_ns = step->seen->time_ns;
        flow->handshake_doubtful |= !step->seen->time_known;
    }
    window_agree(stream, step->other);
}

/* The initiator's first acknowledgment of the SYN-ACK completes the handshake. */
static APART void complete_handshake(struct step *step, const struct tcp_header *tcp) {
    struct flow *flow = step->flow;
    if (!flow->syn_ack_seen || step_direction(step) || tcp->flags & (TCP_SYN | TCP_RST))
        return;
    int64_t rtt = step->seen->time_ns - flow->syn_ns;
    flow->handshake_ack_seen = true;
    if (step->stream->syn_seen && !flow->handshake_doubtful && step->seen->time_known &&
        rtt <= ROUND_TRIP_MOST)
        flow->handshake_rtt_ns = rtt;
}

static void take_reset(struct step *step) {
    struct flow *flow = step->flow;
    bool answers_syn = step->other->syn_seen && !flow->syn_ack_seen && !step->stream->syn_seen;
    step->stream->resets++;
    step->stream->timestamps |= (step->tcp->options & TCP_OPTION_TIMESTAMPS) != 0;
    flow->refused |= answers_syn;
    flow->reset = true;
    step_tell_kind(step, WORD_CONNECTION_RESET, step->seen->reset_bytes, 0);
}

static void count_flags(struct step *step, uint16_t flags) {
    step->stream->fins += (flags & TCP_FIN) != 0;
    /* On a SYN they negotiate (RFC 3168 section 6.1.1). */
    if (flags & TCP_SYN || !(flags & (TCP_ECE | TCP_CWR)))
        return;
    struct tcp_trouble *trouble = step_trouble(step, step->stream);
    trouble->ecn_echo += (flags & TCP_ECE) != 0;
    trouble->ecn_cwr += (flags & TCP_CWR) != 0;
}

static inline int64_t note_flight(struct tcp_stream *stream) {
    int64_t flight = stream_flight(stream);
    if (flight > stream->flight_max)
        stream->flight_max = flight;
    return flight;
}

/* Whether its numbers say that the segment brings nothing new: it may be a copy. */
static inline bool is_doubtful(const struct step *step, const struct tcp_stream *stream,
                               const struct tcp_header *tcp) {
    if (tcp->flags & (TCP_SYN | TCP_RST))
        return tcp->flags & TCP_SYN ? stream->syn_seen : stream->resets > 0;
    if (step->seen->payload_bytes || tcp->flags & TCP_FIN)
        return stream->based && stream_position(stream, tcp->sequence) < stream->highest;
    const struct tcp_stream *other = step->other;
    return other->acked_known && stream_position(other, tcp->acknowledgment) <= other->acked;
}

/* Of late counts more. */
static APART void halve_ids(struct tcp_stream *stream) {
    stream->ids_good /= 2;
    stream->ids_bad /= 2;
    stream->ids_skips /= 2;
}

/* Whether the sender's identifications rise by small steps, and so tell the order of sending. */
static inline void count_good_step(struct tcp_stream *stream, unsigned ahead) {
    if (ahead > 1)
        stream->ids_skips++;
    if (++stream->ids_good == UINT8_MAX)
        halve_ids(stream);
}

static APART void count_bad_step(struct tcp_stream *stream) {
    if (++stream->ids_bad == UINT8_MAX)
        halve_ids(stream);
}

static inline void note_ip_id(struct tcp_stream *stream, uint16_t id) {
    unsigned ahead = (uint16_t)(id - stream->last_ip_id), behind = (uint16_t)-ahead;
    if (!id)
        return; /* says nothing */
    if (stream->last_ip_id) {
        if (ahead - 1 < ID_STEP_MOST)
            count_good_step(stream, ahead);
        else if (behind - 1 < ID_STEP_MOST)
            return; /* was overtaken */
        else
            count_bad_step(stream);
    }
    stream->last_ip_id = id;
}

/* What a header seldom says. */
#define FLAGS_SELDOM   (TCP_SYN | TCP_FIN | TCP_RST | TCP_ECE | TCP_CWR)
#define OPTIONS_SELDOM (TCP_OPTION_CUT | TCP_OPTION_MPTCP | TCP_OPTION_SIGNATURE | TCP_OPTION_OTHER)

static APART void take_seldom(struct step *step, const struct tcp_header *tcp) {
    struct tcp_stream *stream = step->stream;
    stream->options_cut |= (tcp->options & TCP_OPTION_CUT) != 0;
    count_flags(step, tcp->flags);
    if (tcp->flags & TCP_SYN)
        take_syn(step, tcp);
    if (!stream->based)
        base_stream(stream, tcp->sequence);
    if (tcp->flags & TCP_RST)
        take_reset(step);
    else if (tcp->options & (OPTIONS_SELDOM - TCP_OPTION_CUT))
        step_trouble(step, stream)->unusual_options++;
}

/* The header's timestamp is kept if it is the stream's first or the newest: after the segment has
 * been judged by what was there before. */
static inline void note_timestamp(struct tcp_stream *stream, const struct tcp_header *tcp) {
    if (!(tcp->options & TCP_OPTION_TIMESTAMPS))
        return;
    if (stream->timestamps && (int32_t)(tcp->timestamp_value - stream->last_tsval) <= 0)
        return;
    stream->timestamps = true;
    stream->last_tsval = tcp->timestamp_value;
}

static inline void take_segment(struct step *step, struct tcp_stream *stream,
                                const struct tcp_header *tcp, uint32_t sequence, int64_t fin) {
    const struct sighting *seen = step->seen;
    take_data(step, stream, tcp, sequence, seen->payload_bytes, fin);
    bool acknowledges = tcp->flags & TCP_ACK;
    if (acknowledges && !step->flow->handshake_ack_seen)
        complete_handshake(step, tcp);
    if (!acknowledges || take_acknowledgment(step, stream, step->other, tcp))
        window_take(step, stream, tcp);
    note_ip_id(stream, seen->ip_id);
    note_timestamp(stream, tcp);
}

/* All of a segment's usual way is one function, with registers of its own. */
APART int64_t tcp_track(struct step *step) {
    struct tcp_stream *stream = step->stream;
    const struct tcp_header *tcp = step->tcp;
    uint32_t sequence = tcp->sequence; /* of its first byte */
    int64_t fin = 0;                   /* or 1, the position that it takes */
    if (tcp_copy_take(step, is_doubtful(step, stream, tcp))) {
        step->effect.copy = true;
        return stream_flight(stream);
    }
    if (tcp->flags & FLAGS_SELDOM || tcp->options & OPTIONS_SELDOM || !stream->based) {
        take_seldom(step, tcp);
        if (tcp->flags & TCP_RST)
            return stream_flight(stream);
        sequence += (tcp->flags & TCP_SYN) != 0;
        /* The rest of a fragmented segment is still to come, and its end with it. */
        fin = tcp->flags & TCP_FIN && !step->seen->more_fragments;
    }
    take_segment(step, stream, tcp, sequence, fin);
    int64_t flight = note_flight(stream);
    limit_take(step, flight);
    return flight;
}

int64_t tcp_track_data(struct step *step, uint32_t sequence) {
    take_data(step, step->stream, NULL, sequence, step->seen->payload_bytes, 0);
    return note_flight(step->stream);
}
