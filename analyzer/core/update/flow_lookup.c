/* SPDX-License-Identifier: Apache-2.0 */
/* The flow of a packet: found, begun, or begun anew after the old one ended; expiry.
 *
 * A flow ends for one of four reasons: silence (flow_due_ns), a SYN that opens a new connection on
 * the same ports, eviction at the limit of live flows, or the end of the capture. Silence is
 * checked at the next packet of the flow as well as by flow_expire(), so that the result does not
 * depend on when the table is swept. A shard numbers its flows in the order of processing; they
 * get their final numbers after the batch (flow_numbers.c). */
#include <stddef.h>
#include <string.h>

#include "base/service_ports.h"
#include "decode/step.h"
#include "update/update.h"

#define NFS_PORT       2049u
#define RESERVED_LEAST 512u /* rresvport(3) */

static uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* An address as two words. */
struct end {
    uint64_t front, back;
};

static inline struct end load_end(const uint8_t *address) {
    return (struct end){load_word(address), load_word(address + sizeof(uint64_t))};
}

/* Returns whether the sender is the second end. Any fixed order of addresses would do. */
static inline bool is_second(struct end source, struct end destination, uint32_t ports) {
    if (LIKELY(source.front != destination.front))
        return source.front > destination.front;
    if (source.back != destination.back)
        return source.back > destination.back;
    return (uint16_t)ports > ports >> 16;
}

/* Computes the key as the words that it is hashed by, so that they need not be loaded from
 * memory, and without a branch on the direction, which cannot be predicted. */
inline struct flow_key flow_key_of(const struct headers *headers, uint32_t path, bool *swapped) {
    struct end source = load_end(headers->source), destination = load_end(headers->destination);
    bool second = *swapped = is_second(source, destination, headers->ports);
    uint64_t mask = -(uint64_t)second;
    uint64_t front = (source.front ^ destination.front) & mask;
    uint64_t back = (source.back ^ destination.back) & mask;
    unsigned turn = second * 16u;
    uint32_t ports = headers->ports << turn | headers->ports >> (-turn & 31);
    uint64_t protocol = headers->protocol | (uint32_t)headers->ip_version << 8;
    uint64_t words[FLOW_KEY_WORDS] = {source.front ^ front, source.back ^ back,
                                      destination.front ^ front, destination.back ^ back,
                                      ports | protocol << 32 | (uint64_t)path << 48};
    struct flow_key key;
    memcpy(&key, words, sizeof key);
    return key;
}

/* Only a SYN proves which end is the initiator (RFC 9293 section 3.5). A SYN-ACK comes from the
 * other end, so it turns the flow; without either, the sender of the first packet is assumed. */
static void set_initiator(struct flow *flow, bool swapped, const struct tcp_header *tcp) {
    bool syn = tcp && tcp->flags & TCP_SYN;
    bool answer = syn && tcp->flags & TCP_ACK;
    flow->swapped = swapped != answer;
    flow->initiator_evidence = answer ? INITIATOR_SYN_ACK
                               : syn  ? INITIATOR_SYN
                                      : INITIATOR_FIRST_PACKET;
}

/* Clients of NFS bind such a port, because exports demand it (exports(5), "secure"). */
static bool is_reserved(uint16_t port) {
    return port >= RESERVED_LEAST && port < SYSTEM_PORTS;
}

/* Sets the direction that requests: that of the initiator. Without a SYN, the only port of a
 * service is the server's, and that of NFS before a reserved one; else the lesser port if it is
 * below the ephemeral ports of Linux (32768), which is a guess. */
static void set_requester(struct flow *flow) {
    uint16_t from = flow->key.port[flow_end(flow, 0)], to = flow->key.port[flow_end(flow, 1)];
    bool handshake = flow->initiator_evidence != INITIATOR_FIRST_PACKET;
    bool from_service = is_service_port(from), to_service = is_service_port(to);
    unsigned requester =
        from == to || (from < to ? from : to) >= 32768 ? REQUESTER_UNKNOWN : from < to;
    bool from_nfs = from == NFS_PORT && is_reserved(to),
         to_nfs = to == NFS_PORT && is_reserved(from);
    bool is_told = from_service != to_service || from_nfs || to_nfs;
    if (is_told)
        requester = from_nfs || (from_service && !to_nfs);
    flow->tcp.requester = (uint8_t)(handshake ? 0 : requester);
    flow->tcp.client_known = handshake || is_told;
}

/* 127.0.0.0/8 (RFC 1122 section 3.2.1.3) and ::1 (RFC 4291 section 2.5.3) stay within a host. */
static bool is_loopback(const struct flow_key *key) {
    static const uint8_t ipv6[16] = {[15] = 1};
    if (key->ip_version == 4)
        return key->address[0][0] == 127 && key->address[1][0] == 127;
    return !memcmp(key->address[0], ipv6, sizeof ipv6) &&
           !memcmp(key->address[1], ipv6, sizeof ipv6);
}

static bool is_listed(const struct updater *updater, uint32_t number) {
    return updater->packets_all || (number < updater->packet_flow_count &&
                                    updater->packet_flows[number / 8] >> number % 8 & 1);
}

/* Returns whether the ports of the key were in the packet: 0 is a port too. */
static bool has_ports(const struct flow_key *key, const struct packet_info *packet) {
    bool is_read = packet->payload_known && !packet->fragment;
    return key->port[0] || key->port[1] || (is_read && protocol_has_ports(key->protocol));
}

/* Notes the packet that begins the next flow of the shard. Returns false without memory. */
static bool note_begin(const struct worker *worker, struct shard *shard,
                       const struct packet_info *packet) {
    if (!worker->updater->begins)
        return true;
    if (!list_grow(&shard->begins, &shard->begin_room, (size_t)shard->flow_count + 1,
                   sizeof *shard->begins))
        return false;
    shard->begins[shard->flow_count] =
        (struct flow_begin){packet->time_ns, packet->frame, worker->sweep};
    return true;
}

/* Returns a new flow with its number in the shard; NULL without memory. Flows that begin between
 * two packets, because their datagrams end, are ordered by these. */
static struct flow *add_flow(struct worker *worker, uint32_t hash, const struct flow_key *key,
                             const struct packet_info *packet) {
    struct shard *shard = worker->shard;
    struct pair_choice *choice = worker->updater->choice;
    unsigned bits = worker->updater->numbers.shard_bits;
    uint32_t number = choice               ? pair_choice_number(choice, shard->flow_count)
                      : shard->spare_count ? shard->spare[shard->spare_count - 1]
                                           : shard->flow_count;
    uint32_t before = number < shard->flow_count ? number : shard->flow_count;
    size_t begun = shard->begun_count + (number - before) + 1;
    if (number >= UINT32_MAX >> bits ||
        !list_grow(&shard->firsts, &shard->first_room, (size_t)number + 1, sizeof *shard->firsts) ||
        !list_grow(&shard->begun, &shard->begun_room, begun, sizeof *shard->begun) ||
        !note_begin(worker, shard, packet))
        return NULL;
    struct flow *flow = flow_table_add(shard->flows, hash, key, packet->time_ns + TCP_ENDED_NS);
    if (!flow)
        return NULL;
    uint64_t of_datagram = worker->sweep ? worker->sink.minor >> ORDER_BITS : 0;
    uint64_t first = worker->sink.at | (of_datagram & (ORDER_PHASE(1) - 1));
    for (uint32_t i = before; i <= number; i++) { /* those before it are of other pairs */
        shard->firsts[i] = first;
        shard->begun[shard->begun_count++] = i;
    }
    if (number == shard->flow_count || choice)
        shard->flow_count = number + 1;
    else
        shard->spare_count--;
    flow->number = number << bits | shard->number;
    return flow;
}

/* Begins a flow with its first packet, or sets out_of_memory and returns NULL. The first check of
 * its expiry is after the shortest timeout, because its state is still unknown; a flow that is not
 * due then is queued again. */
static struct flow *begin_flow(struct worker *worker, uint32_t hash, const struct flow_key *key,
                               bool swapped, const struct tcp_header *tcp,
                               const struct packet_info *packet) {
    struct updater *updater = worker->updater;
    if (updater->serial)
        make_room_for_flow(worker);
    struct flow *flow = add_flow(worker, hash, key, packet);
    if (!flow) {
        worker->sink.out_of_memory = true;
        return NULL;
    }
    flow->ports_known = has_ports(key, packet);
    flow->listed_packets = is_listed(updater, flow->number);
    flow->drawn = !worker->sink.packets_only;
    flow->with_blocks = updater->block_size != 0;
    for (unsigned i = 0; i < 2 && key->protocol == IP_TCP; i++)
        flow->tcp.streams[i].window = -1;
    if (key->protocol == IP_TCP)
        flow->tcp.handshake_rtt_ns = RTT_UNKNOWN;
    if (key->protocol == IP_TCP && updater->time_spans && flow->listed_packets)
        flow->tcp.spans = pool_zeroed(worker->rows.pool, sizeof *flow->tcp.spans);
    flow->first_ns = flow->last_ns = packet->time_ns;
    flow->first_frame = packet->frame;
    flow->first_capture = packet->capture;
    set_initiator(flow, swapped, tcp);
    if (key->protocol == IP_TCP) {
        set_requester(flow);
        flow->tcp.loopback = is_loopback(key);
    }
    if (updater->serial)
        eviction_note(updater, flow);
    return flow;
}

/* Returns false if the flow cannot be over: it needs a SYN or at least this silence. */
static inline bool may_be_over(const struct flow *flow, const struct tcp_header *tcp,
                               const struct packet_info *packet) {
    return (tcp && tcp->flags & TCP_SYN) || packet->time_ns > flow->last_ns + TCP_ENDED_NS;
}

/* Returns why the flow that was found has ended before this packet, or WORD_NONE. A new connection
 * is recognized first: it may come long after the timeout, and reuse is the more useful reason. */
static NOINLINE enum word end_before(const struct flow *flow, bool swapped,
                                     const struct tcp_header *tcp,
                                     const struct packet_info *packet) {
    if (tcp && tcp->flags & TCP_SYN &&
        starts_new_connection(&flow->tcp, swapped ^ flow->swapped, tcp))
        return WORD_PORTS_REUSED;
    return packet->time_ns > flow_due_ns(flow) ? WORD_IDLE : WORD_NONE;
}

/* Begins a flow in place of the one that ended, if there was one. */
static __attribute__((noinline, cold)) struct flow *
replace_flow(struct worker *worker, struct flow *before, enum word end, uint32_t hash,
             const struct flow_key *key, bool swapped, const struct tcp_header *tcp,
             const struct packet_info *packet) {
    if (before)
        flow_end_now(worker, before, end);
    return begin_flow(worker, hash, key, swapped, tcp, packet);
}

/* --- halves ------------------------------------------------------------------------------------
 *
 * A mirror port may tag one direction only, and a tunnel may have another id for each. A TCP
 * segment under a path of which there is no flow belongs to a flow with the same ends under another
 * path, if that has packets of the other direction alone, and sequence number and ACK fit what
 * these have acknowledged and sent. From then on that direction has that path. */

/* Bytes by which numbers may differ, because packets before the capture or lost ones are missing.
 */
#define HALF_SPAN (INT64_C(1) << 22)

static bool is_near(int64_t position, int64_t other) {
    return position >= other - HALF_SPAN && position <= other + HALF_SPAN;
}

/* Returns whether a segment, the first in `direction`, answers those of the other direction. */
static bool answers(const struct tcp_connection *connection, unsigned direction,
                    const struct tcp_header *tcp) {
    const struct tcp_stream *sender = &connection->streams[direction];
    const struct tcp_stream *peer = &connection->streams[!direction];
    if (!(tcp->flags & TCP_ACK) || !peer->base_known)
        return false;
    int64_t acked = stream_position(peer, tcp->acknowledgment);
    if (peer->syn_seen && (tcp->flags & TCP_SYN || !sender->isn_known))
        return acked >= 0 && acked <= peer->snd_nxt;
    return sender->isn_known && sender->snd_una_known && is_near(acked, peer->snd_nxt) &&
           is_near(stream_position(sender, tcp->sequence), sender->snd_una);
}

/* Returns whether a segment belongs to a flow of another path, and notes its path. */
static bool is_half_of(struct flow *flow, uint16_t path, unsigned direction,
                       const struct tcp_header *tcp) {
    if (flow->has_half)
        return flow->half_path == path && flow->half_direction == direction;
    if (flow->directions[direction].packets || !flow->directions[!direction].packets ||
        !answers(&flow->tcp, direction, tcp))
        return false;
    flow->has_half = true;
    flow->half_direction = (uint8_t)direction;
    flow->half_path = path;
    return true;
}

/* Returns the flow of which a segment is the other half; NULL without one. */
static NOINLINE struct flow *find_half(const struct worker *worker, uint32_t hash,
                                       const struct flow_key *key, bool swapped,
                                       const struct tcp_header *tcp) {
    uint32_t step = 0;
    struct flow *flow;
    while ((flow = flow_table_next_path(worker->shard->flows, hash, key, &step)))
        if (is_half_of(flow, key->path, swapped ^ flow->swapped, tcp))
            return flow;
    return NULL;
}

/* Of successive packets of one flow only the first is searched for. */
static inline struct flow *find_flow(struct worker *worker, uint32_t hash,
                                     const struct flow_key *key) {
    if (!worker->found || !flow_key_equals(&worker->found->key, key))
        worker->found = flow_table_find(worker->shard->flows, hash, key);
    return worker->found;
}

inline struct flow *flow_lookup(struct worker *worker, uint32_t hash, const struct flow_key *key,
                                bool swapped, const struct tcp_header *tcp,
                                const struct packet_info *packet, unsigned *direction) {
    struct flow *flow = find_flow(worker, hash, key);
    if (!LIKELY(flow) && tcp)
        flow = worker->found = find_half(worker, hash, key, swapped, tcp);
    enum word end =
        flow && may_be_over(flow, tcp, packet) ? end_before(flow, swapped, tcp, packet) : WORD_NONE;
    if (!flow || end != WORD_NONE)
        flow = worker->found = replace_flow(worker, flow, end, hash, key, swapped, tcp, packet);
    if (flow)
        *direction = swapped ^ flow->swapped;
    return flow;
}
