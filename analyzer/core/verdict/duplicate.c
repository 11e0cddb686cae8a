/* SPDX-License-Identifier: Apache-2.0 */
/* Distinguishes duplicates of a packet from retransmissions of its data, and the capture's
 * duplicates from the network's (rules V8).
 *
 * A duplicate has the signature and the IP ID of its original. A retransmission has a new ID: RFC
 * 1122 section 3.2.1.5 permits the old one, but common systems do not reuse it. If IDs are
 * unusable, a duplicate must have an old TSval or follow sooner than any sender could learn of a
 * loss.
 *
 * Mirroring both directions of one port, or two ports, stores each packet twice within
 * microseconds. A capture on both sides of a router stores it again with another TTL and other
 * link addresses, after any time that the router's queue takes. If the network duplicated the
 * packet before, each of its duplicates passes each port. Single duplicates within 1 ms may be the
 * network's: recent_verdicts.c settles those when the receiver's DSACK (RFC 2883) or its absence is
 * known. */
#include "verdict/verdict.h"

#include <string.h>

#define NETWORK_GAP_NS INT64_C(100000000)    /* network duplicate, if no RTT is known */
#define LIFETIME_NS    INT64_C(120000000000) /* of a packet in the network, RFC 6864 section 4 */
#define MIN_TIMER_NS   500000                /* sooner than any retransmission timer */
#define DELAY_SLACK_NS 10000
#define MAX_COPIES     3u
#define NEAR_IDS       8192u       /* of the newest: a host's packets in LIFETIME_NS */
#define PASSED_IDS     64          /* no reordering puts a packet behind so many later ones */
#define ROOM_STEP      3u          /* fingerprints that 64 bytes hold */
#define NO_POSITION    INT64_C(-2) /* a pure ACK has no position in the stream */

/* --- the capture's or the network's ---------------------------------------------------------- */

struct duplicate {
    bool mirror;    /* made by the capture, else by the network */
    bool two_ports; /* stored by another port than the original */
    bool same_link; /* of these ports, and no router in between */
    bool third;     /* within 1 ms, but not the first one of its port */
    bool at_once;   /* no time passed since the original */
    uint32_t frame; /* of the original */
};

/* A DSACK needs SACK, and options that were captured. A receiver with gaps may fill its SACK option
 * with those instead. */
static enum duplicate_origin origin_of(const struct segment_context *seg,
                                       const struct duplicate *duplicate, int64_t start,
                                       int64_t end) {
    const struct tcp_stream *sender = seg->sender;
    if (duplicate->two_ports)
        return duplicate->same_link ? DUPLICATE_TWO_INTERFACES : DUPLICATE_TWO_PORTS;
    bool agreed = !seg->connection->loopback && sender->sack_permitted &&
                  seg->receiver->sack_permitted && !seg->receiver->reports_truncated;
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

/* No later packet can show that the network made it. A mirror that stores each packet twice would
 * otherwise push the retransmissions out of the last verdicts. */
static bool is_certain(const struct segment_context *seg, const struct duplicate *duplicate,
                       enum duplicate_origin origin) {
    return duplicate->mirror && !duplicate->third &&
           recovery_of(seg->sender)->mirror_duplicates > MAX_RECORDS / 2 &&
           (origin == DUPLICATE_TWO_PORTS || is_mirrored_throughout(seg->sender));
}

static void record_duplicate(struct segment_context *seg, int64_t start, int64_t end,
                             const struct duplicate *duplicate) {
    struct tcp_recovery_state *recovery = recovery_state(seg, seg->sender);
    bool mirror = duplicate->mirror, data = start >= 0 && end > start;
    enum duplicate_origin origin = origin_of(seg, duplicate, start, end);
    if (!recovery->mirror_duplicates)
        recovery->packets_before_duplicates = seg->sender->packets - 1;
    struct event event = {.kind = mirror ? WORD_MIRROR_DUPLICATE : WORD_NETWORK_DUPLICATE,
                          .place = mirror ? WORD_CAPTURE : WORD_NONE,
                          .evidence = seg->packet->ip_id ? WORD_IP_ID : WORD_SIGNATURE,
                          .bytes = seg->packet->payload_bytes,
                          .related_frame = duplicate->frame};
    struct flow_event *kept_event = emit_event(seg, &event);
    recovery->mirror_duplicates += mirror;
    recovery->third_duplicates += duplicate->third;
    seg->effect.mirrored |= mirror;
    recovery->network_duplicates += !mirror;
    recovery->mirror_ip_bytes += mirror ? seg->packet->ip_bytes : 0;
    bool open = (mirror && !duplicate->two_ports) || duplicate->third;
    bool kept = data || (open && recovery->mirror_duplicates <= MAX_RECORDS);
    if (!kept || is_certain(seg, duplicate, origin))
        return;
    remember_verdict(seg,
                     (struct retransmission_record){.start = data ? start : NO_POSITION,
                                                    .end = data ? end : NO_POSITION,
                                                    .event = kept_event,
                                                    .ip_bytes = seg->packet->ip_bytes,
                                                    .kind = (uint16_t)event.kind,
                                                    .duplicate = true,
                                                    .settled = true,
                                                    .third = duplicate->third,
                                                    .at_once = duplicate->at_once,
                                                    .origin = (uint8_t)origin,
                                                    .interface = (uint16_t)seg->packet->capture});
}

/* --- ports of the capture -------------------------------------------------------------------- */

static bool is_pure_ack(const struct segment_context *seg) {
    return !seg->packet->payload_bytes && !(seg->tcp->flags & (TCP_SYN | TCP_FIN));
}

/* An instance of the packet was stored by this port before, though not the first one. */
static bool is_last_port(const struct segment_context *seg,
                         const struct packet_fingerprint *entry) {
    return entry->last_count && entry->last_port == seg->packet->port &&
           entry->last_ttl == seg->packet->ttl;
}

/* Each instance of the packet that passed the original's port has passed this one, too. */
static bool was_stored_here(const struct segment_context *seg,
                            const struct packet_fingerprint *entry) {
    return is_last_port(seg, entry) && entry->last_count > entry->again;
}

/* Rule V8.4: on the other side of a router (other link addresses, another TTL), and not stored
 * there before. */
static bool is_behind_router(const struct segment_context *seg,
                             const struct packet_fingerprint *entry) {
    return !same_link(seg->packet->port, entry->port) && seg->packet->ttl != entry->ttl &&
           !was_stored_here(seg, entry);
}

/* One hop on, even if the link has no addresses. */
static bool is_routed(const struct segment_context *seg, const struct packet_fingerprint *entry) {
    return seg->packet->ttl + 1 == (entry->last_count ? entry->last_ttl : entry->ttl);
}

static bool has_two_ports(const struct segment_context *seg,
                          const struct packet_fingerprint *entry) {
    return is_routed(seg, entry) || seg->packet->port != entry->port;
}

/* --- evidence -------------------------------------------------------------------------------- */

/* Data after which an ACK or a SACK requested a retransmission, or may have. */
static bool loss_signaled(const struct segment_context *seg) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    return seg->receiver->dup_ack_count || recovery->sack_count ||
           (recovery->recovery_frame && recovery->recovery_point > seg->sender->snd_una);
}

/* Returns how many IDs the sender's newest packet is ahead, if its IDs rise; -1 if it has not
 * passed this one or that is unknown. */
static int ids_passed(const struct segment_context *seg) {
    uint16_t behind = (uint16_t)(seg->sender->last_ip_id - seg->packet->ip_id);
    bool known = seg->packet->ip_id && ip_ids_ordered(seg->sender);
    return known && behind < NEAR_IDS ? behind : -1;
}

/* The sender's clock has advanced since, so a retransmission has a newer TSval (RFC 7323 section
 * 4.1). */
static bool has_old_tsval(const struct segment_context *seg) {
    return has_timestamps(seg) && seg->sender->timestamps &&
           (int32_t)(seg->tcp->timestamp_value - seg->sender->max_tsval) < 0;
}

/* Rule V8.2: since the packet passed before, duplicate ACKs asked for it again and can have been
 * answered, or the data right below it was retransmitted. A sender that goes back resends each
 * segment then, however soon after the last time (RFC 5681 section 3.2). */
static bool may_go_back(const struct segment_context *seg, int64_t delay_ns) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    int64_t start = stream_position(seg->sender, seg->tcp->sequence);
    int64_t since_ns = seg->packet->time_ns - delay_ns + (1 << FINGERPRINT_TIME_SHIFT);
    int64_t answer_ns = max64(sender_rtt(seg->connection, seg->sender), 0);
    const struct retransmission_record *below =
        last_retransmission_of(recovery, start - 1, start, false);
    bool asked = seg->receiver->dup_ack_count >= DUP_ACK_THRESH && start == seg->sender->snd_una &&
                 recovery->last_loss_signal_ns > since_ns && delay_ns >= answer_ns - answer_ns / 8;
    return seg->packet->payload_bytes &&
           (asked || (below && below->end == start && below->time_ns > since_ns));
}

/* A host repeats its FIN to itself, as some do on loopback. */
static bool is_own_fin(const struct segment_context *seg) {
    return seg->connection->loopback && seg->tcp->flags & TCP_FIN && !seg->packet->payload_bytes &&
           !seg->packet->ip_id && !mirror_is_likely(seg->connection);
}

/* Equal pure ACKs are common (duplicate ACKs), so they count only if a mirror has duplicated data.
 */
static bool is_mirrored_ack(const struct segment_context *seg,
                            const struct packet_fingerprint *entry, int64_t delay_ns) {
    const struct tcp_connection *connection = seg->connection;
    bool two_ports = has_two_ports(seg, entry) && !was_stored_here(seg, entry);
    bool one_port = !recovery_of(seg->sender)->second_side.count && mirror_is_likely(connection);
    return connection->duplicated && (two_ports || one_port) &&
           delay_ns <= 2 * (int64_t)connection->duplicate_delay_ns + DELAY_SLACK_NS;
}

/* Rule V8.2: faster than a retransmission. Each RST answers a segment (RFC 9293 section 3.10.7.1).
 */
static bool is_faster_than_sender(const struct segment_context *seg,
                                  const struct packet_fingerprint *entry, int64_t delay_ns) {
    int64_t rtt = path_rtt(seg->connection);
    if (seg->tcp->flags & TCP_RST || is_own_fin(seg))
        return false;
    if (is_pure_ack(seg))
        return is_mirrored_ack(seg, entry, delay_ns);
    if (seg->tcp->flags & TCP_SYN && rtt < 0)
        return delay_ns <= NETWORK_GAP_NS;
    if (rtt < 0)
        return delay_ns <= MIRROR_GAP_NS && has_timestamps(seg);
    if (may_go_back(seg, delay_ns))
        return false;
    return delay_ns < rtt / 2 || (delay_ns <= MIN_TIMER_NS && !loss_signaled(seg));
}

/* The same on the other side of a router: no timer can have expired, or that side is known. */
static bool is_from_other_side(const struct segment_context *seg,
                               const struct packet_fingerprint *entry, int64_t delay_ns) {
    return is_behind_router(seg, entry) && (seg->packet->ip_id || is_at_second_side(seg) ||
                                            (delay_ns < MIN_RTO_NS && !loss_signaled(seg)));
}

/* Rules V8.1 to V8.3 for a packet with equal signature and ID. */
static bool is_duplicate(const struct segment_context *seg, const struct packet_fingerprint *entry,
                         int64_t delay_ns) {
    int64_t rtt = path_rtt(seg->connection);
    if (delay_ns > (seg->connection->loopback ? MIRROR_GAP_NS : LIFETIME_NS))
        return false;
    if (ids_passed(seg) >= 0 || is_from_other_side(seg, entry, delay_ns) ||
        (has_old_tsval(seg) && !is_pure_ack(seg)))
        return true;
    if (!seg->packet->ip_id || ip_ids_unusable(seg->sender))
        return is_faster_than_sender(seg, entry, delay_ns);
    return delay_ns <= MIRROR_GAP_NS || delay_ns < (rtt < 0 ? NETWORK_GAP_NS : rtt);
}

/* --- duplicates of the last packets ---------------------------------------------------------- */

/* Rule V8.4. More than two of a packet are the mirror's if each was stored by a port of its own, as
 * when all interfaces of a host are captured, or at the same time, or if the mirror stores all
 * packets so often. */
static struct duplicate find_origin(const struct segment_context *seg,
                                    const struct packet_fingerprint *entry, int64_t delay_ns) {
    bool new_port = seg->packet->port != entry->port && !was_stored_here(seg, entry);
    bool soon = delay_ns <= MIRROR_GAP_NS;
    struct duplicate duplicate = {.two_ports = has_two_ports(seg, entry),
                                  .same_link = same_link(seg->packet->port, entry->port) &&
                                               seg->packet->ttl == entry->ttl,
                                  .at_once = !delay_ns && !seg->packet->clock_step_us,
                                  .frame = entry->frame};
    bool first = soon && (is_routed(seg, entry) || !entry->copies || new_port);
    duplicate.mirror = first || is_behind_router(seg, entry);
    duplicate.third = soon && !duplicate.mirror;
    duplicate.mirror |= duplicate.third && (duplicate.at_once || seg->connection->loopback ||
                                            has_thirds_throughout(seg->sender));
    return duplicate;
}

/* A mirror that stores each packet twice stores the network's duplicate twice, too: its next
 * instance is the mirror's. */
static void note_instance(const struct segment_context *seg, struct packet_fingerprint *entry,
                          bool mirror) {
    bool here = seg->packet->port == entry->port && seg->packet->ttl == entry->ttl;
    if (here && !mirror && entry->mirrored && mirror_is_likely(seg->connection)) {
        entry->time = fingerprint_time(seg->packet->time_ns);
        entry->frame = seg->frame;
        entry->copies = entry->again = entry->last_count = 0;
        return;
    }
    if (entry->copies < MAX_COPIES)
        entry->copies++;
    if (here) {
        entry->mirrored |= mirror;
        if (!mirror && entry->again < MAX_COPIES)
            entry->again++;
        return;
    }
    if (!is_last_port(seg, entry))
        entry->last_count = 0;
    if (entry->last_count < MAX_COPIES)
        entry->last_count++;
    entry->last_port = seg->packet->port; /* the next router's duplicate may follow */
    entry->last_ttl = seg->packet->ttl;
}

static void count_duplicate(struct segment_context *seg, const struct duplicate *duplicate) {
    bool syn = seg->tcp->flags & TCP_SYN, fin = seg->tcp->flags & TCP_FIN;
    int64_t start = syn ? -1 : stream_position(seg->sender, seg->tcp->sequence);
    int64_t end = start + seg->packet->payload_bytes + (syn || fin);
    seg->connection->duplicated |= !is_pure_ack(seg);
    recovery_state(seg, seg->sender)->duplicate_bytes += seg->packet->payload_bytes;
    leave_out_duplicate(seg);
    record_duplicate(seg, start, end, duplicate);
}

/* Rule V8.4: a station repeats a frame that was not acknowledged, with the retry bit. Neither a
 * mirror nor the network made it: the radio carried it again. An access point passes frames on with
 * other addresses; its retries repeat its own. */
static bool is_wlan_retry(const struct segment_context *seg,
                          const struct packet_fingerprint *entry) {
    return seg->packet->wlan_retry &&
           (seg->packet->port == entry->port || is_last_port(seg, entry));
}

static void take_wlan_retry(struct segment_context *seg, const struct packet_fingerprint *entry) {
    recovery_state(seg, seg->sender)->duplicate_bytes += seg->packet->payload_bytes;
    leave_out_duplicate(seg);
    emit_event(seg, &(struct event){.kind = WORD_WLAN_RETRY,
                                    .evidence = seg->packet->ip_id ? WORD_IP_ID : WORD_SIGNATURE,
                                    .bytes = seg->packet->payload_bytes,
                                    .related_frame = entry->frame});
}

static void take_copy(struct segment_context *seg, struct packet_fingerprint *entry,
                      int64_t delay_ns) {
    if (is_wlan_retry(seg, entry)) {
        take_wlan_retry(seg, entry);
        return;
    }
    struct duplicate duplicate = find_origin(seg, entry, delay_ns);
    bool behind_router = is_behind_router(seg, entry);
    if (duplicate.mirror && duplicate.two_ports)
        note_second_port(seg, entry->port, entry->ttl, delay_ns);
    note_instance(seg, entry, duplicate.mirror);
    if (behind_router)
        note_second_side(seg);
    if (!is_pure_ack(seg) && duplicate.mirror && delay_ns <= UINT32_MAX)
        seg->connection->duplicate_delay_ns = (uint32_t)delay_ns;
    count_duplicate(seg, &duplicate);
}

/* Returns the time between two fingerprints. A capture of two ports may store the later one first.
 */
static int64_t time_between(uint32_t one, uint32_t other) {
    int64_t units = (int32_t)(other - one);
    return (units < 0 ? -units : units) * (1 << FINGERPRINT_TIME_SHIFT);
}

static NOINLINE bool find_original(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    uint32_t now = fingerprint_time(seg->packet->time_ns);
    for (unsigned i = 1; i <= sender->fingerprint_capacity; i++) {
        struct packet_fingerprint *entry = fingerprint_at(sender, i);
        int64_t delay_ns = time_between(entry->time, now);
        if (!entry->frame || entry->signature != seg->tcp->signature ||
            entry->ip_id != seg->packet->ip_id || !is_duplicate(seg, entry, delay_ns))
            continue;
        take_copy(seg, entry, delay_ns);
        return true;
    }
    return false;
}

/* Nothing indicates that the sender sent this packet after its last. */
static bool may_have_passed(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    if (seg->packet->ip_id && ip_ids_ordered(sender))
        return ids_passed(seg) >= 0;
    if (has_timestamps(seg))
        return has_old_tsval(seg) || seg->tcp->timestamp_value == sender->max_tsval;
    return sender->fingerprint_capacity && fingerprint_at(sender, 1)->port != seg->packet->port;
}

/* An initiator whose ACK completed the handshake retransmits no SYN (RFC 9293 section 3.10.7.3). A
 * responder may, but not if its peer's packets are stored a second time. */
static bool is_late_syn(const struct segment_context *seg) {
    bool over = !segment_direction(seg) && seg->connection->handshake_ack_seen;
    return seg->tcp->flags & TCP_SYN && seg->tcp->sequence == seg->sender->isn &&
           (over || recovery_of(seg->receiver)->second_side.count) && is_apart_from_last(seg);
}

/* Rule V8.3: the capture stores the sender's packets a second time behind a router. Many packets
 * may have passed since the original. */
static bool take_second_side(struct segment_context *seg) {
    bool late_syn = is_late_syn(seg);
    if (!(late_syn || is_at_second_side(seg)) || !may_have_passed(seg))
        return false;
    if (late_syn)
        note_second_side(seg);
    note_second_port(seg, NO_PORT, 0, 0);
    count_duplicate(seg, &(struct duplicate){.mirror = true, .two_ports = true});
    return true;
}

/* Returns false without memory. */
static NOINLINE bool make_room(struct tcp_stream *stream, struct pool *pool) {
    uint32_t old = stream->fingerprint_capacity, capacity = old;
    stream->next_fingerprint = 0;
    uint32_t wanted = old < 4 * ROOM_STEP ? old + ROOM_STEP : 2 * old;
    if (!pool_grow_to(pool, (void **)&stream->fingerprints, &capacity, sizeof *stream->fingerprints,
                      wanted < MAX_FINGERPRINTS ? wanted : MAX_FINGERPRINTS))
        return old;
    stream->fingerprint_capacity = (uint8_t)capacity;
    memset(stream->fingerprints + old, 0, (capacity - old) * sizeof *stream->fingerprints);
    stream->next_fingerprint = (uint8_t)old;
    return true;
}

bool take_duplicate(struct segment_context *seg, bool old) {
    struct tcp_stream *sender = seg->sender;
    if (old && seg->packet->time_known && (find_original(seg) || take_second_side(seg)))
        return true;
    if (sender->next_fingerprint < sender->fingerprint_capacity || make_room(sender, seg->pool))
        sender->fingerprints[sender->next_fingerprint++] =
            (struct packet_fingerprint){.time = fingerprint_time(seg->packet->time_ns),
                                        .frame = seg->frame,
                                        .signature = seg->tcp->signature,
                                        .ip_id = seg->packet->ip_id,
                                        .port = seg->packet->port,
                                        .ttl = seg->packet->ttl};
    return false;
}

/* --- late duplicates ------------------------------------------------------------------------- */

/* A retransmission of these bytes had the ID or the old TSval. */
static bool repeats_record(const struct segment_context *seg, uint16_t id, bool old_tsval,
                           int64_t start, int64_t end) {
    const struct tcp_recovery_state *recovery = recovery_of(seg->sender);
    for (uint32_t i = 0; i < recovery->record_count; i++) {
        const struct retransmission_record *record = &recovery->records[i];
        bool same_id = id && record->ip_id == id;
        bool same_tsval =
            old_tsval && record->has_tsval && record->tsval == seg->tcp->timestamp_value;
        if ((same_id || same_tsval) && record_overlaps(record, start, end))
            return true;
    }
    return false;
}

/* The IP ID or the TSval is that of an earlier transmission, or many later IDs have passed. */
static bool repeats_transmission(const struct segment_context *seg,
                                 const struct unacked_segment *first, int64_t start, int64_t end) {
    uint16_t id = ip_ids_ordered(seg->sender) ? seg->packet->ip_id : 0;
    bool old_tsval = has_old_tsval(seg);
    if (first &&
        ((id && first->ip_id == id) || (old_tsval && first->tsval == seg->tcp->timestamp_value)))
        return true;
    bool passed = !first && ip_ids_consecutive(seg->sender) && ids_passed(seg) > PASSED_IDS;
    return passed || repeats_record(seg, id, old_tsval, start, end);
}

/* Nothing requested a retransmission, and no timer can have expired. */
static bool is_unrequested(const struct segment_context *seg, const struct unacked_segment *first,
                           int64_t start, int64_t end) {
    return first && seg->packet->time_known && seg->receiver->base_known && first->end == end &&
           first->end - first->length == start && !loss_signaled(seg) &&
           seg->packet->time_ns - first->time_ns <= MIN_TIMER_NS &&
           (!has_timestamps(seg) || seg->tcp->timestamp_value == first->tsval);
}

/* Rule V8.4: on the other side of a router than the original, or than one of the last packets if
 * the original is forgotten. */
static bool is_late_behind_router(const struct segment_context *seg,
                                  const struct unacked_segment *first) {
    const struct tcp_stream *sender = seg->sender;
    if (first)
        return seg->packet->ttl != first->ttl && unacked_link(seg->packet->port) != first->link;
    for (uint32_t i = 0; i < sender->fingerprint_capacity; i++) {
        const struct packet_fingerprint *entry = &sender->fingerprints[i];
        if (entry->frame && !same_link(entry->port, seg->packet->port) &&
            entry->ttl != seg->packet->ttl)
            return true;
    }
    return false;
}

/* The original is forgotten, but the sender has sent later packets than this one, and nothing new
 * is stored at this side. */
static bool has_passed_router(const struct segment_context *seg,
                              const struct unacked_segment *first) {
    bool ids_known = seg->packet->ip_id && ip_ids_ordered(seg->sender);
    bool passed = ids_known ? ids_passed(seg) > 0 : has_old_tsval(seg);
    return !first && passed && (was_stored_at_side(seg) || is_apart_from_last(seg));
}

/* The signature of a late duplicate is that of no later packet, but its port would look like one at
 * which new data is stored. */
static void drop_fingerprint(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    if (!sender->next_fingerprint)
        return;
    struct packet_fingerprint *last = &sender->fingerprints[sender->next_fingerprint - 1];
    if (last->frame == seg->frame && last->time == fingerprint_time(seg->packet->time_ns))
        last->frame = 0;
}

bool take_late_duplicate(struct segment_context *seg, const struct unacked_segment *first,
                         int64_t start, int64_t end) {
    if (start < 0)
        return false;
    bool routed = has_passed_router(seg, first);
    bool unrequested = is_unrequested(seg, first, start, end) && !is_own_fin(seg);
    bool same_id = first && first->ip_id == seg->packet->ip_id;
    bool behind_router = routed || is_late_behind_router(seg, first);
    if (!routed && !repeats_transmission(seg, first, start, end) && !(unrequested && same_id) &&
        !(behind_router && same_id && seg->packet->ip_id))
        return false;
    if (behind_router) {
        drop_fingerprint(seg);
        note_second_side(seg);
        note_second_port(seg, NO_PORT, 0, 0);
    }
    record_duplicate(seg, start, end,
                     &(struct duplicate){.mirror = unrequested || behind_router,
                                         .two_ports = behind_router,
                                         .frame = first ? first->frame : 0});
    return true;
}
