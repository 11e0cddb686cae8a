/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the data of each segment into new bytes, bytes that fill a gap, and bytes that were seen
 * before, and hands them to the rules:
 *
 *   track_segment
 *     duplicate of a packet         verdict/duplicate.c (V4.1, V8)  ends here
 *     damaged segment               flow/damage.c (V14)             only its data counts
 *     take_rare                   SYN, FIN, RST, rare flags and options
 *     take_data
 *       probe, keep-alive           receive_window.c (V4.2, V10)    ends here
 *       take_new                    in sequence (V1.1), idle time before (V1), a gap opens (V2)
 *       take_old                    verdict/retransmission.c: fills a gap (V3), seen before (V4)
 *     process_ack                   acknowledgment.c (V9), verdict/sack.c (V6)
 *     update_window                 receive_window.c (V10)
 *     note_turn                     turns.c, if the direction of payload changes
 *     account_segment               time_accounting.c
 *
 * The usual segment, the next bytes and an ACK, takes one path without calls: rare work is in
 * functions that are never inlined. */
#include "tracker/tracker.h"

#include <nettle/sha1.h>
#include <nettle/sha2.h>

#include "flow/damage.h"
#include "tracker/steps.h"
#include "tracker/turns.h"
#include "verdict/verdict.h"

#define MAX_SACK_AHEAD                                                                             \
    (16 << 20) /* bytes; SACK blocks further ahead are of a renumbered stream                      \
                */
#define MIN_PAUSE_NS   INT64_C(2000000) /* a shorter one of an application does not matter */
#define MAX_IP_ID_STEP 64 /* between two packets: other connections of the host take IDs */

/* --- new data -------------------------------------------------------------------------------- */

/* Returns the gap [start, end) that the segment opens. */
static struct gap gap_below(const struct segment_context *seg, int64_t start, int64_t end) {
    return (struct gap){.start = start,
                        .end = end,
                        .opened_ns = seg->packet->time_ns,
                        .seen_bytes = seen_bytes(seg->sender),
                        .acked_ns = seg->packet->time_ns,
                        .event = NULL,
                        .opener_frame = seg->frame,
                        .tsval = has_timestamps(seg) ? seg->tcp->timestamp_value : 0,
                        .ip_id = seg->packet->ip_id,
                        .timestamps = has_timestamps(seg)};
}

/* Rule V2.3: gaps of `bytes` below `end` were dropped, which opened before `above`. */
static NOINLINE void forget_gaps(struct segment_context *seg, int64_t bytes, int64_t end,
                                 struct gap above) {
    struct tcp_stream *sender = seg->sender;
    struct tcp_recovery_state *recovery = recovery_state(seg, sender);
    recovery->unknown_bytes += (uint64_t)bytes;
    if (sender->snd_una_known && recovery->forgotten.end <= sender->snd_una)
        recovery->forgotten_bytes = 0;
    recovery->forgotten_bytes += bytes;
    above.end = max64(recovery->forgotten.end, end);
    recovery->forgotten = above;
}

/* Rule V2.1. */
static NOINLINE void open_gap(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_stream *sender = seg->sender;
    struct tcp_recovery_state *recovery = recovery_state(seg, sender);
    struct gap gap = gap_below(seg, start, end);
    int64_t dropped = range_set_open(&sender->gaps, gap, seg->pool);
    bool any = sender->gaps.count;
    if (dropped)
        forget_gaps(seg, dropped, any ? sender->gaps.gaps[0].start : end,
                    any ? sender->gaps.gaps[0] : gap);
    recovery->gaps_opened++;
    extend_rto(seg, start, end);
    emit_kind(seg, WORD_GAP, end - start);
}

/* `length` new bytes, or a FIN, follow `idle_ns` in which the sender sent no data. */
static NOINLINE void take_idle(struct segment_context *seg, int64_t idle_ns, int64_t length,
                               bool fin) {
    if (idle_ns >= MIN_RTO_NS)
        classify_idle_gap(seg, idle_ns, length, fin);
    if (length && !note_pause(seg, idle_ns))
        seg->effect.may_repeat |= may_repeat_lost_data(seg);
}

static ALWAYS_INLINE void take_new(struct segment_context *seg, struct tcp_stream *sender,
                                   const struct tcp_header *tcp, int64_t start, int64_t end,
                                   int64_t fin) {
    if (start > sender->snd_nxt) {
        open_gap(seg, sender->snd_nxt, start);
        seg->effect.may_repeat = true; /* the data before it was sent sooner */
    } else {
        int64_t idle_ns = seg->packet->time_ns - sender->last_data_ns;
        start = sender->snd_nxt;
        if (idle_ns >= MIN_PAUSE_NS)
            take_idle(seg, idle_ns, end - start, fin);
    }
    sender->last_pushed = tcp->flags & TCP_PSH;
    sender->pushes |= sender->last_pushed;
    sender->unpushed |= !sender->last_pushed;
    int64_t window = seg->receiver->window;
    if (end == sender->snd_una + window && window > 0 && sender->snd_una_known)
        emit_window_full(seg);
    seg->effect.unique_bytes += end - start;
    sender->snd_nxt = end + fin;
    track_unacked(seg, sender, tcp, sender->snd_nxt, end + fin - start);
}

/* --- data below snd_nxt ---------------------------------------------------------------------- */

/* Returns the bytes below the first segment of the capture that are known to be retransmitted,
 * because they are acknowledged. */
static int64_t take_before_capture(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_stream *sender = seg->sender;
    if (start >= sender->first_seq)
        return 0;
    int64_t below = min64(end, sender->first_seq);
    classify_before_capture(seg, start, below);
    if (end >= sender->first_seq) /* seen from now on */
        sender->first_seq = start;
    if (sender->snd_una_known && end <= sender->snd_una)
        return below - start;
    seg->effect.unique_bytes += below - start;
    return 0;
}

/* Returns true if they are counted as a retransmission. */
static bool take_fill(struct segment_context *seg, int64_t start, int64_t end,
                      const struct gap_fill *fill) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    recovery->unseen_bytes -= (uint64_t)fill->acked_bytes;
    recovery->gaps_filled += fill->closed;
    /* Data above the gap is acknowledged late. */
    unacked_exclude(&seg->sender->unacked, start, INT64_MAX);
    unacked_forget(&seg->sender->unacked, seg->packet->payload_bytes);
    return classify_gap_fill(seg, start, end, fill);
}

/* `repeated` bytes of [start, end) are in no gap; `counted`: others are, and count as
 * retransmitted.
 */
static void take_repeated(struct segment_context *seg, int64_t start, int64_t end, int64_t repeated,
                          bool counted) {
    struct tcp_stream *sender = seg->sender;
    enum repetition kind =
        counted ? REPEATED_RETRANSMITTED : classify_repeated(seg, start, end, NULL);
    struct tcp_recovery_state *recovery = recovery_state(seg, sender);
    if (kind == REPEATED_DUPLICATE) {
        recovery->duplicate_bytes += (uint64_t)repeated;
        if (repeated == end - start && repeated == seg->packet->payload_bytes)
            leave_out_duplicate(seg);
        return;
    }
    unacked_exclude(&sender->unacked, start, end);
    unacked_repeated(&sender->unacked, start, end, seg->packet->payload_bytes);
    if (kind == REPEATED_UNKNOWN) {
        int64_t unseen = min64(repeated, recovery->forgotten_bytes);
        recovery->forgotten_bytes -= unseen;
        seg->effect.unique_bytes += unseen;
        repeated -= unseen;
    }
    seg->effect.retransmitted_bytes += repeated;
}

static NOINLINE void take_old(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_stream *sender = seg->sender;
    int64_t given_up = 0, first = sender->first_seq;
    int64_t repeated = take_before_capture(seg, start, end);
    if (start < first)
        start = min64(end, first);
    struct gap_fill fill = range_set_fill(&sender->gaps, start, end, seg->pool, &given_up);
    seg->effect.unique_bytes += fill.bytes;
    repeated += end - start - fill.bytes;
    bool counted = fill.bytes && take_fill(seg, start, end, &fill);
    seg->effect.may_repeat |= counted; /* an ACK without data showed that it had been sent */
    if (given_up)
        forget_gaps(seg, given_up, sender->snd_nxt, gap_below(seg, start, end));
    if (repeated)
        take_repeated(seg, start, end, repeated, counted);
}

/* Rule V4.8: a FIN without data. Before the first one was seen, a later ACK without data may have
 * revealed it as a gap; data before it shares its fate. */
static NOINLINE void take_old_fin(struct segment_context *seg, int64_t at, bool alone) {
    struct tcp_stream *sender = seg->sender;
    int64_t given_up = 0;
    if (sender->fin_seen) {
        if (alone && at + 1 == sender->fin_end) {
            classify_repeated(seg, at, at + 1, "FIN");
            unacked_exclude(&sender->unacked, at, at + 1);
        }
        return;
    }
    struct gap_fill fill = range_set_fill(&sender->gaps, at, at + 1, seg->pool, &given_up);
    if (!fill.bytes)
        return;
    if (given_up)
        forget_gaps(seg, given_up, sender->snd_nxt, gap_below(seg, at, at));
    if (alone)
        take_fill(seg, at, at + 1, &fill);
    else
        recovery_state(seg, sender)->unseen_bytes -= (uint64_t)fill.acked_bytes;
}

/* --- data ------------------------------------------------------------------------------------ */

/* Takes `length` bytes at `start`, and a FIN (0 or 1) after them. Rule V4.7: bytes below snd_nxt
 * and new bytes have verdicts of their own. */
static ALWAYS_INLINE void take_stretch(struct segment_context *seg, struct tcp_stream *sender,
                                       const struct tcp_header *tcp, int64_t start, uint32_t length,
                                       int64_t fin) {
    int64_t end = start + length;
    if (length && start < sender->snd_nxt)
        take_old(seg, start, end < sender->snd_nxt ? end : sender->snd_nxt);
    if (end + fin > sender->snd_nxt)
        take_new(seg, sender, tcp, start, end, fin);
    else if (fin)
        take_old_fin(seg, end, !length);
    if (fin) {
        if (!sender->fin_seen && !seg->receiver->fin_seen)
            seg->connection->fin_by = (uint8_t)segment_direction(seg);
        sender->fin_seen = true;
        sender->fin_end = end + 1;
    }
    sender->unique_bytes += (uint64_t)seg->effect.unique_bytes;
    if (seg->effect.retransmitted_bytes)
        recovery_state(seg, sender)->retransmitted_bytes +=
            (uint64_t)seg->effect.retransmitted_bytes;
    if (length) {
        sender->last_data_ns = seg->packet->time_ns;
        sender->last_data_frame = seg->frame;
        sender->last_payload = length < UINT16_MAX ? (uint16_t)length : UINT16_MAX;
        sender->sent_data_last = true;
        seg->receiver->sent_data_last = false;
        if (seg->effect.unique_bytes) {
            seg->effect.turned = !sender->sent_new_last;
            sender->sent_new_last = true;
            seg->receiver->sent_new_last = false;
        }
    }
}

static ALWAYS_INLINE void take_data(struct segment_context *seg, struct tcp_stream *sender,
                                    const struct tcp_header *tcp, uint32_t sequence,
                                    uint32_t length, int64_t fin) {
    int64_t start = stream_position(sender, sequence), ahead = start - sender->snd_nxt;
    seg->effect.positions_known = true;
    seg->effect.sequence = start;
    if (ahead > POSITION_SPAN || ahead < -POSITION_SPAN) {
        recovery_state(seg, sender)->unknown_bytes += length;
        return;
    }
    if (length <= 1 && (seg->receiver->zero_window || start == sender->snd_nxt - 1) &&
        take_probe(seg, start, length))
        return;
    check_probe_byte(seg, sender, start);
    if (length || fin || start > sender->snd_nxt) /* else a pure ACK */
        take_stretch(seg, sender, tcp, start, length, fin);
}

/* --- handshake ------------------------------------------------------------------------------- */

static unsigned syn_options_of(const struct tcp_header *tcp) {
    static const struct {
        uint16_t option;
        uint8_t kind;
    } kinds[] = {{TCP_OPTION_FAST_OPEN, SYN_FAST_OPEN},
                 {TCP_OPTION_MPTCP, SYN_MPTCP},
                 {TCP_OPTION_SIGNATURE, SYN_SIGNATURE}};
    unsigned ecn = tcp->flags & TCP_ACK ? TCP_ECE : TCP_ECE | TCP_CWR; /* RFC 3168 section 6.1.1 */
    unsigned options = (tcp->flags & (TCP_ECE | TCP_CWR)) == ecn ? SYN_ECN : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tcp->options & kinds[i].option)
            options |= kinds[i].kind;
    return options;
}

/* What the first SYN of an end offers. */
static void take_syn_options(struct tcp_stream *sender, const struct tcp_header *tcp) {
    sender->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    sender->sack_permitted = tcp->options & TCP_OPTION_SACK_PERMITTED;
    sender->scale_offered = tcp->options & TCP_OPTION_WINDOW_SCALE;
    sender->window_scale = tcp->window_scale;
    sender->syn_nops = tcp->options & TCP_OPTION_MSS ? tcp->nop_run : 0;
    sender->syn_truncated = tcp->options & TCP_OPTION_CUT;
}

/* Both endpoints may open at once; each then answers with a SYN-ACK (RFC 9293 section 3.5). */
static void take_syn(struct segment_context *seg, const struct tcp_header *tcp) {
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
    unsigned options = syn_options_of(tcp);
    sender->last_syn_options = options & 15;
    if (!repeated)
        sender->syn_options = options & 15;
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

/* A RST that acknowledges something else than the SYN is ignored by its sender (RFC 9293 section
 * 3.5.2), which goes on with its SYNs. */
static bool answers_syn(const struct tcp_stream *opener, const struct tcp_header *tcp) {
    uint32_t acknowledged = tcp->acknowledgment - opener->isn;
    return !(tcp->flags & TCP_ACK) || !opener->isn_known ||
           (acknowledged && acknowledged <= 1 + opener->unique_bytes);
}

/* A server whose SYN-ACK was not captured accepted the SYN nevertheless if its client acknowledged
 * it. */
static void take_reset(struct segment_context *seg) {
    struct tcp_connection *connection = seg->connection;
    if (seg->receiver->syn_seen && !connection->syn_ack_seen && !seg->sender->syn_seen) {
        connection->refused |= !seg->sender->snd_una_known;
        struct tcp_recovery_state *recovery =
            answers_syn(seg->receiver, seg->tcp) ? NULL : recovery_state(seg, seg->sender);
        if (recovery)
            recovery->acks_out_of_range++;
    }
    connection->reset = true;
    connection->reset_first |= !seg->sender->fin_seen && !seg->receiver->fin_seen;
    seg->sender->resets++;
    seg->sender->timestamps |= (seg->tcp->options & TCP_OPTION_TIMESTAMPS) != 0;
    emit_kind(seg, WORD_RESET, seg->packet->reset_bytes);
}

/* --- headers --------------------------------------------------------------------------------- */

/* The first segment of a direction: data below it was sent before the capture began. SACKs may show
 * that data above it was received before, too; then the segment is a retransmission. */
static void begin_stream(struct tcp_stream *stream, uint32_t sequence) {
    if (!stream->isn_known)
        set_isn(stream, sequence - 1);
    int64_t position = stream_position(stream, sequence);
    const struct tcp_recovery_state *recovery = recovery_of(stream);
    int64_t above = recovery->sacked_max - position;
    if (recovery->sack_count && stream->snd_una_known && position >= stream->snd_una && above > 0 &&
        above <= MAX_SACK_AHEAD)
        position = recovery->sacked_max;
    stream->base_known = true;
    stream->flight_known = stream->snd_una_known;
    stream->first_seq = position;
    stream->snd_nxt = max64(position, stream->snd_nxt);
}

/* Rule V10.4: the capture begins within the connection, and its first data of this end is one byte
 * that the application did not push. */
static bool begins_with_keep_alive(const struct segment_context *seg) {
    return seg->packet->payload_bytes == 1 && seg->tcp->flags == TCP_ACK &&
           !seg->connection->syn_ack_seen && !seg->receiver->syn_seen;
}

/* All data up to `sequence` is acknowledged. */
static void begin_idle(struct tcp_stream *stream, uint32_t sequence) {
    begin_stream(stream, sequence);
    if (!stream->snd_una_known || stream->snd_una < stream->snd_nxt)
        stream->snd_una = stream->snd_nxt;
    stream->snd_una_known = stream->flight_known = true;
}

/* The segment has no new sequence numbers, so it can be a duplicate packet. */
static inline bool has_old_numbers(const struct segment_context *seg,
                                   const struct tcp_stream *sender, const struct tcp_header *tcp) {
    if (tcp->flags & (TCP_SYN | TCP_RST))
        return tcp->flags & TCP_SYN ? sender->syn_seen : sender->resets > 0;
    if (seg->packet->payload_bytes || tcp->flags & TCP_FIN)
        return sender->base_known && stream_position(sender, tcp->sequence) < sender->snd_nxt;
    const struct tcp_stream *receiver = seg->receiver;
    return receiver->snd_una_known &&
           stream_position(receiver, tcp->acknowledgment) <= receiver->snd_una;
}

/* Halves all counts, so that recent packets weigh more. */
static NOINLINE void halve_ip_id_counts(struct tcp_stream *stream) {
    stream->ip_id_small_steps /= 2;
    stream->ip_id_jumps /= 2;
    stream->ip_id_skips /= 2;
}

/* The missing IDs are those of the sender's own packets, which were lost before this one. */
static NOINLINE bool lost_ids(const struct segment_context *seg) {
    const struct range_set *gaps = &seg->sender->gaps;
    bool gap = gaps->count && gaps->gaps[gaps->count - 1].end == seg->effect.sequence;
    return gap || recovery_of(seg->sender)->suspected_ns == seg->packet->time_ns;
}

/* Counts the steps of the sender's IP ID, for ip_ids_ordered() and its like. ID 0 is unusable (RFC
 * 6864 section 4.1), and a small step back is a reordered packet. */
static inline void note_ip_id(const struct segment_context *seg, struct tcp_stream *stream) {
    uint16_t id = seg->packet->ip_id;
    unsigned ahead = ip_ids_between(stream->last_ip_id, id),
             behind = ip_ids_between(id, stream->last_ip_id);
    if (!id)
        return;
    if (!stream->last_ip_id) {
        stream->ids_since_ns = seg->packet->time_ns;
    } else {
        if (ahead - 1 < MAX_IP_ID_STEP) {
            if (ahead - 1 > seg->packet->ids_before) {
                stream->ip_id_skips++;
                if (!lost_ids(seg))
                    stream->ids_since_ns = seg->packet->time_ns;
            }
            if (++stream->ip_id_small_steps == UINT8_MAX)
                halve_ip_id_counts(stream);
        } else if (behind - 1 < MAX_IP_ID_STEP) {
            return;
        } else if (++stream->ip_id_jumps == UINT8_MAX) {
            halve_ip_id_counts(stream);
        }
    }
    stream->last_ip_id = id;
}

static NOINLINE void note_first_timestamp(struct tcp_stream *stream, const struct tcp_header *tcp,
                                          int64_t time_ns) {
    stream->timestamps = true;
    stream->first_tsval = tcp->timestamp_value;
    stream->first_tsval_ns = time_ns;
}

/* Keeps the newest TSval, after the segment was compared with the ones before. */
static inline void note_timestamp(struct tcp_stream *stream, const struct tcp_header *tcp,
                                  int64_t time_ns, uint32_t frame) {
    if (!(tcp->options & TCP_OPTION_TIMESTAMPS))
        return;
    if (!LIKELY(stream->timestamps))
        note_first_timestamp(stream, tcp, time_ns);
    else if ((int32_t)(tcp->timestamp_value - stream->max_tsval) <= 0)
        return;
    else if (time_ns - stream->tsval_ns >= CLOCK_JUMP_MIN_NS)
        note_clock_jump(stream, tcp->timestamp_value, time_ns, frame);
    stream->max_tsval = tcp->timestamp_value;
    stream->tsval_echo = tcp->timestamp_echo;
    stream->tsval_ns = time_ns;
}

#define RARE_FLAGS   (TCP_SYN | TCP_FIN | TCP_RST | TCP_ECE | TCP_CWR)
#define RARE_OPTIONS (TCP_OPTION_CUT | TCP_OPTION_MPTCP | TCP_OPTION_SIGNATURE | TCP_OPTION_OTHER)

/* The token of a key: the begin of its digest, by SHA-1 in version 0 (RFC 6824 section 3.2), by
 * SHA-256 since (RFC 8684 section 3.2). */
static uint32_t multipath_token(unsigned kind, const uint8_t *key) {
    uint8_t digest[4];
    if (kind == MULTIPATH_KEY_0) {
        struct sha1_ctx hash;
        sha1_init(&hash);
        sha1_update(&hash, MULTIPATH_BYTES, key);
        sha1_digest(&hash, sizeof digest, digest);
    } else {
        struct sha256_ctx hash;
        sha256_init(&hash);
        sha256_update(&hash, MULTIPATH_BYTES, key);
        sha256_digest(&hash, sizeof digest, digest);
    }
    return load_be32(digest);
}

/* Keeps the token of the first key of an end, or that by which its peer joined its connection. */
static void take_multipath(struct segment_context *seg, const struct tcp_header *tcp) {
    bool joins = tcp->multipath == MULTIPATH_TOKEN;
    struct tcp_recovery_state *end = recovery_state(seg, joins ? seg->receiver : seg->sender);
    const uint8_t *bytes = tcp->multipath_bytes;
    if (end->multipath)
        return;
    end->multipath = tcp->multipath;
    end->multipath_token = joins ? load_be32(bytes) : multipath_token(tcp->multipath, bytes);
}

static NOINLINE void take_rare(struct segment_context *seg, const struct tcp_header *tcp) {
    struct tcp_stream *sender = seg->sender;
    if (tcp->options & TCP_OPTION_CUT) {
        sender->options_truncated = true;
        sender->reports_truncated |= tcp->flags & TCP_ACK && !(tcp->flags & (TCP_SYN | TCP_RST));
    }
    sender->fins += (tcp->flags & TCP_FIN) != 0;
    /* A SYN negotiates ECN (RFC 3168 section 6.1.1). */
    if (!(tcp->flags & TCP_SYN) && tcp->flags & (TCP_ECE | TCP_CWR)) {
        struct tcp_recovery_state *recovery = recovery_state(seg, sender);
        recovery->ecn_echo += (tcp->flags & TCP_ECE) != 0;
        recovery->ecn_cwr += (tcp->flags & TCP_CWR) != 0;
    }
    if (tcp->flags & TCP_SYN)
        take_syn(seg, tcp);
    if (!sender->base_known && begins_with_keep_alive(seg))
        begin_idle(sender, tcp->sequence + 1);
    else if (!sender->base_known)
        begin_stream(sender, tcp->sequence);
    if (tcp->flags & TCP_RST)
        take_reset(seg);
    else if (tcp->options & (RARE_OPTIONS - TCP_OPTION_CUT))
        recovery_state(seg, sender)->unusual_options++;
    if (tcp->options & TCP_OPTION_SIGNATURE)
        recovery_state(seg, sender)->signed_segments++;
    if (tcp->options & TCP_OPTION_MPTCP && tcp->multipath)
        take_multipath(seg, tcp);
}

static inline int64_t note_flight(struct tcp_stream *stream) {
    int64_t flight = stream_flight(stream);
    if (flight > stream->flight_max)
        stream->flight_max = flight;
    return flight;
}

/* Rule V14.3: a receiver discards the segment, with its flags and its ACK, and its sequence number
 * may be what was damaged: its data counts as sent, unless it would open a gap. */
static NOINLINE int64_t track_damaged(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    int64_t start = stream_position(sender, seg->tcp->sequence);
    int64_t end = start + seg->packet->payload_bytes;
    bool in_stream = sender->base_known && end > start && start <= sender->snd_nxt &&
                     !(seg->tcp->flags & (TCP_SYN | TCP_RST));
    if (in_stream) {
        seg->data_frame_before = sender->last_data_frame;
        seg->data_ns_before = sender->last_data_ns;
        take_data(seg, sender, seg->tcp, seg->tcp->sequence, seg->packet->payload_bytes, 0);
    } else if (seg->packet->payload_bytes) {
        recovery_state(seg, sender)->unknown_bytes += seg->packet->payload_bytes;
    }
    note_damage(seg, start, sender->base_known ? end : start);
    note_ip_id(seg, sender);
    int64_t flight = note_flight(sender);
    if (in_stream)
        account_segment(seg, flight);
    return flight;
}

/* A SYN is at -1. */
static NOINLINE void note_possible_damage(struct segment_context *seg) {
    int64_t start = seg->effect.sequence;
    bool syn = seg->tcp->flags & TCP_SYN;
    if (seg->effect.positions_known)
        note_damage(seg, start - syn, start + seg->packet->payload_bytes);
}

NOINLINE int64_t track_segment(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    const struct tcp_header *tcp = seg->tcp;
    uint32_t sequence = tcp->sequence; /* of the first byte */
    int64_t fin = 0;
    if (take_duplicate(seg, has_old_numbers(seg, sender, tcp))) {
        seg->effect.duplicate = true;
        return stream_flight(sender);
    }
    if (!LIKELY(seg->damage != DAMAGE_CERTAIN))
        return track_damaged(seg);
    if (tcp->flags & RARE_FLAGS || tcp->options & RARE_OPTIONS || !sender->base_known) {
        take_rare(seg, tcp);
        if (tcp->flags & TCP_RST)
            return stream_flight(sender);
        sequence += (tcp->flags & TCP_SYN) != 0;
        fin = (tcp->flags & TCP_FIN) != 0;
    }
    seg->data_frame_before = sender->last_data_frame;
    seg->data_ns_before = sender->last_data_ns;
    take_data(seg, sender, tcp, sequence, seg->packet->payload_bytes, fin);
    if (!LIKELY(seg->damage == DAMAGE_NONE))
        note_possible_damage(seg);
    bool acknowledges = tcp->flags & TCP_ACK;
    if (acknowledges && !seg->connection->handshake_ack_seen)
        complete_handshake(seg, tcp);
    if (!acknowledges || process_ack(seg, sender, seg->receiver, tcp))
        update_window(seg, sender, tcp);
    if (sender->awaits_echo)
        take_echo(seg);
    note_ip_id(seg, sender);
    note_timestamp(sender, tcp, seg->packet->time_ns, seg->frame);
    int64_t flight = note_flight(sender);
    if (!LIKELY(!seg->effect.turned && !watches_turns(seg)))
        note_turn(seg);
    account_segment(seg, flight);
    return flight;
}
