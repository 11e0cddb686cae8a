/* SPDX-License-Identifier: Apache-2.0 */
/* Distinguishes duplicates of a packet from retransmissions of its data, and the capture's
 * duplicates from the network's (rules V8).
 *
 * A duplicate has the signature and the IP ID of its original. A retransmission has a new ID: RFC
 * 1122 section 3.2.1.5 permits the old one, but common systems do not reuse it. If IDs are
 * unusable, a duplicate must follow sooner than any sender could learn of a loss. Mirroring both
 * directions of one port, or two ports, stores each packet twice within microseconds. Single
 * duplicates within 1 ms may be the network's: recent_verdicts.c settles those when the receiver's
 * DSACK (RFC 2883) or its absence is known. */
#include "verdict/verdict.h"

#include <string.h>

#define NETWORK_GAP_NS INT64_C(100000000) /* network duplicate, if no RTT is known */
#define MIN_TIMER_NS   500000             /* sooner than any retransmission timer */
#define DELAY_SLACK_NS 10000
#define MAX_COPIES     3u
#define NO_POSITION    INT64_C(-2) /* a pure ACK has no position in the stream */

/* --- the capture's or the network's ---------------------------------------------------------- */

/* A DSACK needs SACK. A receiver with gaps may fill its SACK option with those instead. */
static enum duplicate_origin origin_of(const struct segment_context *seg, int64_t start,
                                       int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    bool agreed = sender->sack_permitted && seg->receiver->sack_permitted;
    bool gaps = sender->gaps.count > sender->gaps.acked || recovery_of(sender)->sack_count;
    return agreed && !gaps && start >= 0 && end > start ? DUPLICATE_REPORTABLE : DUPLICATE_UNPROVEN;
}

/* Returns whether a mirror duplicates packets of this connection, as far as it was read. */
static bool mirror_is_likely(const struct tcp_connection *connection) {
    uint64_t duplicates = 0, packets = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct tcp_stream *stream = &connection->streams[i];
        const struct tcp_recovery_state *recovery = recovery_of(stream);
        if (!recovery->mirror_duplicates)
            continue;
        duplicates += recovery->mirror_duplicates;
        packets += stream->packets - recovery->packets_before_duplicates;
    }
    return duplicates > 1 && 4 * duplicates > packets;
}

struct duplicate {
    bool mirror;    /* made by the capture, else by the network */
    bool two_ports; /* stored by another port than the original */
    uint32_t frame; /* of the original */
};

static void record_duplicate(struct segment_context *seg, int64_t start, int64_t end,
                             const struct duplicate *duplicate) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    bool mirror = duplicate->mirror, data = start >= 0 && end > start;
    enum duplicate_origin origin =
        duplicate->two_ports ? DUPLICATE_TWO_PORTS : origin_of(seg, start, end);
    if (!recovery->mirror_duplicates)
        recovery->packets_before_duplicates = seg->sender->packets - 1;
    struct event event = {.kind = mirror ? WORD_MIRROR_DUPLICATE : WORD_NETWORK_DUPLICATE,
                          .place = mirror ? WORD_CAPTURE : WORD_NONE,
                          .evidence = seg->packet->ip_id ? WORD_IP_ID : WORD_SIGNATURE,
                          .bytes = seg->packet->payload_bytes,
                          .related_frame = duplicate->frame};
    uint64_t row = emit_event(seg, &event);
    recovery->mirror_duplicates += mirror;
    seg->effect.mirrored |= mirror;
    recovery->network_duplicates += !mirror;
    recovery->mirror_ip_bytes += mirror ? seg->packet->ip_bytes : 0;
    bool open = mirror && origin != DUPLICATE_TWO_PORTS;
    if (!data && !(open && recovery->mirror_duplicates <= MAX_RECORDS))
        return;
    remember_verdict(seg,
                     (struct retransmission_record){.start = data ? start : NO_POSITION,
                                                    .end = data ? end : NO_POSITION,
                                                    .event = row,
                                                    .kind = (uint16_t)event.kind,
                                                    .duplicate = true,
                                                    .settled = true,
                                                    .origin = (uint8_t)origin,
                                                    .interface = (uint16_t)seg->packet->capture});
}

/* --- duplicates of the last packets ---------------------------------------------------------- */

static bool is_pure_ack(const struct segment_context *seg) {
    return !seg->packet->payload_bytes && !(seg->tcp->flags & (TCP_SYN | TCP_FIN));
}

static bool is_routed(const struct segment_context *seg, const struct packet_fingerprint *entry) {
    return ((seg->packet->ttl + 1u) & 3) == entry->ttl;
}

static unsigned last_port(const struct packet_fingerprint *entry) {
    return entry->port ^ entry->port_moved;
}

static bool has_two_ports(const struct segment_context *seg,
                          const struct packet_fingerprint *entry) {
    return is_routed(seg, entry) || last_port(entry) != seg->packet->port;
}

/* Data after which an ACK or a SACK requested a retransmission, or may have. */
static bool loss_signalled(const struct segment_context *seg) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    return seg->receiver->dup_ack_count || recovery->sack_count ||
           (recovery->recovery_frame && recovery->recovery_point > seg->sender->snd_una);
}

/* Rule V8.2: faster than a retransmission. Equal pure ACKs are common (duplicate ACKs), so they
 * count only if a mirror has duplicated data. Each RST answers a segment (RFC 9293 section
 * 3.10.7.1). */
static bool is_faster_than_sender(const struct segment_context *seg,
                                  const struct packet_fingerprint *entry, int64_t delay_ns) {
    const struct tcp_connection *connection = seg->connection;
    int64_t rtt = path_rtt(connection);
    if (seg->tcp->flags & TCP_RST)
        return false;
    if (is_pure_ack(seg))
        return connection->duplicated &&
               (has_two_ports(seg, entry) || mirror_is_likely(connection)) &&
               delay_ns <= 2 * (int64_t)connection->duplicate_delay_ns + DELAY_SLACK_NS;
    if (seg->tcp->flags & TCP_SYN && rtt < 0)
        return delay_ns <= NETWORK_GAP_NS;
    if (rtt < 0)
        return delay_ns <= MIRROR_GAP_NS && has_timestamps(seg);
    return delay_ns < rtt / 2 || (delay_ns <= MIN_TIMER_NS && !loss_signalled(seg));
}

/* Rules V8.1 and V8.2. */
static bool is_duplicate(const struct segment_context *seg, const struct packet_fingerprint *entry,
                         int64_t delay_ns) {
    uint16_t id = seg->packet->ip_id;
    int64_t rtt = path_rtt(seg->connection);
    if (id != entry->ip_id)
        return false;
    if (!id || ip_ids_unusable(seg->sender))
        return is_faster_than_sender(seg, entry, delay_ns);
    return delay_ns <= MIRROR_GAP_NS || delay_ns < (rtt < 0 ? NETWORK_GAP_NS : rtt);
}

/* Rule V8.4. More than two of a packet are the mirror's if each was stored by a port of its own, as
 * when all interfaces of a host are captured, or with a TTL of its own, as around a router. */
static bool is_mirror_duplicate(const struct segment_context *seg,
                                const struct packet_fingerprint *entry, int64_t delay_ns) {
    unsigned port = seg->packet->port;
    bool new_port = port != entry->port && port != last_port(entry);
    return delay_ns <= MIRROR_GAP_NS && (is_routed(seg, entry) || !entry->copies || new_port);
}

static void take_copy(struct segment_context *seg, struct packet_fingerprint *entry,
                      int64_t delay_ns) {
    bool data = !is_pure_ack(seg), syn = seg->tcp->flags & TCP_SYN, fin = seg->tcp->flags & TCP_FIN;
    int64_t start = syn ? -1 : stream_position(seg->sender, seg->tcp->sequence);
    int64_t end = start + seg->packet->payload_bytes + (syn || fin);
    struct duplicate duplicate = {.mirror = is_mirror_duplicate(seg, entry, delay_ns),
                                  .two_ports = has_two_ports(seg, entry),
                                  .frame = entry->frame};
    entry->ttl = seg->packet->ttl & 3; /* the next router's duplicate may follow */
    entry->port_moved = (entry->port ^ seg->packet->port) & 63;
    if (entry->copies < MAX_COPIES)
        entry->copies++;
    seg->connection->duplicated |= data;
    if (data)
        seg->connection->duplicate_delay_ns = (uint32_t)delay_ns;
    recovery_state(seg, seg->sender)->duplicate_bytes += seg->packet->payload_bytes;
    record_duplicate(seg, start, end, &duplicate);
}

static NOINLINE bool find_original(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    uint32_t now = fingerprint_time(seg->packet->time_ns);
    for (unsigned i = 1; i <= sender->fingerprint_capacity; i++) {
        struct packet_fingerprint *entry =
            &sender->fingerprints[(sender->next_fingerprint - i) &
                                  (sender->fingerprint_capacity - 1)];
        int64_t delay_ns = (int64_t)(uint32_t)(now - entry->time) << FINGERPRINT_TIME_SHIFT;
        if (!entry->frame || entry->signature != seg->tcp->signature ||
            !is_duplicate(seg, entry, delay_ns))
            continue;
        take_copy(seg, entry, delay_ns);
        return true;
    }
    return false;
}

/* Returns false without memory. */
static NOINLINE bool make_room(struct tcp_stream *stream, struct pool *pool) {
    uint32_t old = stream->fingerprint_capacity;
    stream->next_fingerprint = 0;
    if (!pool_grow(pool, (void **)&stream->fingerprints, &stream->fingerprint_capacity,
                   sizeof *stream->fingerprints, 4, MAX_FINGERPRINTS))
        return old;
    memset(stream->fingerprints + old, 0,
           (stream->fingerprint_capacity - old) * sizeof *stream->fingerprints);
    stream->next_fingerprint = (uint8_t)old;
    return true;
}

bool take_duplicate(struct segment_context *seg, bool old) {
    struct tcp_stream *sender = seg->sender;
    if (old && seg->packet->time_known && find_original(seg))
        return true;
    if (sender->next_fingerprint < sender->fingerprint_capacity || make_room(sender, seg->pool))
        sender->fingerprints[sender->next_fingerprint++] =
            (struct packet_fingerprint){.time = fingerprint_time(seg->packet->time_ns),
                                        .frame = seg->frame,
                                        .signature = seg->tcp->signature,
                                        .ip_id = seg->packet->ip_id,
                                        .ttl = seg->packet->ttl & 3,
                                        .port = seg->packet->port & 63};
    return false;
}

/* --- late duplicates ------------------------------------------------------------------------- */

/* The IP ID or the TSval is that of an earlier transmission. A TSval counts only if the sender's
 * clock has advanced since, because then a retransmission has a new one (RFC 7323 section 4.1). */
static bool repeats_transmission(const struct segment_context *seg,
                                 const struct unacked_segment *first, int64_t start, int64_t end) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    uint16_t id = ip_ids_ordered(seg->sender) ? seg->packet->ip_id : 0;
    uint32_t tsval = has_timestamps(seg) ? seg->tcp->timestamp_value : seg->sender->max_tsval;
    bool old_tsval = (int32_t)(tsval - seg->sender->max_tsval) < 0;
    if (first && ((id && first->ip_id == id) || (old_tsval && first->tsval == tsval)))
        return true;
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        const struct retransmission_record *record = &recovery->records[i];
        bool same_id = id && record->ip_id == id;
        bool same_tsval = old_tsval && record->has_tsval && record->tsval == tsval;
        if ((same_id || same_tsval) && record_overlaps(record, start, end))
            return true;
    }
    return false;
}

/* Nothing requested a retransmission, and no timer can have expired. */
static bool is_unrequested(const struct segment_context *seg, const struct unacked_segment *first,
                           int64_t start, int64_t end) {
    return first && seg->packet->time_known && seg->receiver->base_known && first->end == end &&
           first->end - first->length == start && !loss_signalled(seg) &&
           seg->packet->time_ns - first->time_ns <= MIN_TIMER_NS &&
           (!has_timestamps(seg) || seg->tcp->timestamp_value == first->tsval);
}

bool take_late_duplicate(struct segment_context *seg, const struct unacked_segment *first,
                         int64_t start, int64_t end) {
    if (start < 0)
        return false;
    bool unrequested = is_unrequested(seg, first, start, end);
    if (!repeats_transmission(seg, first, start, end) &&
        !(unrequested && first->ip_id == seg->packet->ip_id))
        return false;
    record_duplicate(seg, start, end,
                     &(struct duplicate){.mirror = unrequested, .frame = first ? first->frame : 0});
    return true;
}
