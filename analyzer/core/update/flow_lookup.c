/* SPDX-License-Identifier: Apache-2.0 */
/* The flow of a packet: found, begun, or begun anew after the old one ended; expiry and
 * eviction.
 *
 * A flow ends for one of four reasons: silence (flow_due_ns), a SYN that opens a new connection on
 * the same ports, eviction at the limit of live flows, or the end of the capture. Silence is
 * checked at the next packet of the flow as well as by flow_expire(), so that the result does not
 * depend on when the table is swept.
 *
 * Shards run at the same time, so a worker must hold the lock of the sink to insert or remove a
 * flow, and to number it; it finds flows of its shard without. Numbers are given in the order of
 * processing and become those of the file's order in row_sink_end_batch(). */
#include <stddef.h>
#include <string.h>

#include "decode/decode.h"
#include "update/update.h"

#define NS_A_SECOND INT64_C(1000000000)
/* How long a flow may be silent before it is over. An open connection must survive the keep-
 * alive interval of two hours (RFC 9293 section 3.8.4), for which NATs keep it 2 h 4 min (RFC 5382
 * REQ-5); for UDP 5 minutes are recommended to them (RFC 4787 REQ-5). */
#define TCP_OPEN_NS  (7500 * NS_A_SECOND)
#define TCP_BEGUN_NS (120 * NS_A_SECOND)
#define TCP_ENDED_NS (60 * NS_A_SECOND) /* the shortest of them */
#define OTHERS_NS    (300 * NS_A_SECOND)

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

/* Reads the state of TCP: a connection that was reset or has a FIN of both ends is over soon; one
 * of which a single direction was captured, without a SYN, cannot be known to be open. */
int64_t flow_due_ns(const struct flow *flow) {
    const struct tcp_stream *from = flow->tcp.streams, *to = &flow->tcp.streams[1];
    if (flow->key.protocol != IP_TCP)
        return flow->last_ns + OTHERS_NS;
    if (flow->tcp.reset || (from->fin_seen && to->fin_seen))
        return flow->last_ns + TCP_ENDED_NS;
    if (!from->base_known || !to->base_known)
        return flow->last_ns + (from->syn_seen || to->syn_seen ? TCP_BEGUN_NS : OTHERS_NS);
    return flow->last_ns + TCP_OPEN_NS;
}

/* Writes the rows of a flow and frees it; the pointer is invalid afterwards. The lock must be held
 * if another worker runs. `found` may point to it and is cleared; process_packets() clears that of
 * the other worker before its next shard. */
static void end_flow(struct worker *worker, struct flow *flow, enum word end) {
    row_sink_note_end(worker->rows.sink, flow);
    flow_finish(worker, flow, end);
    flow_table_remove(worker->updater->flows, flow);
    worker->found = NULL;
}

/* Frees the flow through the pool with the higher net allocation, so that memory does not pile
 * up in one pool. */
static struct worker *least_balanced_worker(struct updater *updater) {
    struct worker *next = updater->workers;
    for (unsigned i = 1; i < WORKERS; i++)
        if ((ptrdiff_t)(updater->workers[i].rows.pool.used - next->rows.pool.used) > 0)
            next = &updater->workers[i];
    return next;
}

/* Runs between batches, or at a mark in file order; no worker may run. Rows are buffered under the
 * number of each flow, because flows become due in the order of the wheel, which is arbitrary
 * within a second. */
void flow_expire(struct updater *updater) {
    struct flow *flow;
    row_sink_begin_batch(&updater->sink, updater->flow_count);
    while ((flow = flow_table_expired(updater->flows, updater->now_ns, flow_due_ns))) {
        struct worker *worker = least_balanced_worker(updater);
        row_writer_begin_flow(&worker->rows, flow, updater->flow_count);
        end_flow(worker, flow, WORD_IDLE);
    }
    row_sink_end_batch(&updater->sink);
    reassembly_expire(updater->datagrams, updater->now_ns);
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

/* Returns the direction that requests: that of the initiator. Without a SYN, the lesser port is the
 * server's if it is below the ephemeral ports of Linux (32768). */
static unsigned requester_of(const struct flow *flow) {
    uint16_t from = flow->key.port[flow_end(flow, 0)], to = flow->key.port[flow_end(flow, 1)];
    if (flow->initiator_evidence != INITIATOR_FIRST_PACKET)
        return 0;
    return from == to || (from < to ? from : to) >= 32768 ? REQUESTER_UNKNOWN : from < to;
}

static bool is_listed(const struct updater *updater, uint32_t number) {
    return updater->packets_all || (number < updater->packet_flow_count &&
                                    updater->packet_flows[number / 8] >> number % 8 & 1);
}

/* Adds a flow, in place of the oldest if there is no room. While several workers run, another
 * may hold the oldest; then the lack of room ends the analysis like the lack of memory. */
static struct flow *add_flow(struct worker *worker, uint32_t hash, const struct flow_key *key,
                             int64_t due_ns) {
    struct updater *updater = worker->updater;
    struct flow *flow = flow_table_add(updater->flows, hash, key, due_ns);
    if (flow || updater->sink.buffered)
        return flow;
    struct flow *oldest = flow_table_oldest(updater->flows, flow_due_ns);
    if (!oldest)
        return NULL;
    end_flow(worker, oldest, WORD_EVICTED);
    updater->evicted_flows++;
    return flow_table_add(updater->flows, hash, key, due_ns);
}

/* Returns whether the ports of the key were in the packet: 0 is a port too. */
static bool has_ports(const struct flow_key *key, const struct packet_info *info) {
    bool is_read = info->payload_known && !info->fragment;
    if (key->port[0] || key->port[1])
        return true;
    switch (key->protocol) {
    case IP_TCP:
    case IP_UDP:
    case IP_UDP_LITE:
    case IP_SCTP:
    case IP_DCCP: return is_read;
    default: return false;
    }
}

/* Begins a flow with its first packet, or sets out_of_memory and returns NULL. The first check of
 * its expiry is after the shortest timeout, because its state is still unknown; a flow that is not
 * due then is queued again. The lock must be held if another worker runs. */
static struct flow *begin_flow(struct worker *worker, uint32_t hash, const struct flow_key *key,
                               bool swapped, const struct tcp_header *tcp,
                               const struct packet_info *info) {
    struct updater *updater = worker->updater;
    struct flow *flow = updater->flow_count < UINT32_MAX
                            ? add_flow(worker, hash, key, info->time_ns + TCP_ENDED_NS)
                            : NULL;
    if (!flow) {
        updater->sink.out_of_memory = true;
        return NULL;
    }
    flow->number = updater->flow_count++;
    flow->ports_known = has_ports(key, info);
    row_sink_note_new_flow(&worker->rows, flow);
    flow->listed_packets = is_listed(updater, flow->number);
    flow->drawn = !updater->sink.packets_only;
    flow->with_blocks = updater->block_size != 0;
    for (unsigned i = 0; i < 2 && key->protocol == IP_TCP; i++)
        flow->tcp.streams[i].window = -1;
    if (key->protocol == IP_TCP)
        flow->tcp.handshake_rtt_ns = RTT_UNKNOWN;
    flow->first_ns = flow->last_ns = info->time_ns;
    flow->first_frame = info->frame;
    flow->first_capture = info->capture;
    set_initiator(flow, swapped, tcp);
    if (key->protocol == IP_TCP)
        flow->tcp.requester = (uint8_t)requester_of(flow);
    return flow;
}

/* Returns false if the flow cannot be over: it needs a SYN or at least this silence. */
static inline bool may_be_over(const struct flow *flow, const struct tcp_header *tcp,
                               const struct packet_info *info) {
    return (tcp && tcp->flags & TCP_SYN) || info->time_ns > flow->last_ns + TCP_ENDED_NS;
}

/* Returns why the flow that was found has ended before this packet, or WORD_NONE. A new connection
 * is recognised first: it may come long after the timeout, and reuse is the more useful reason. */
static NOINLINE enum word end_before(const struct flow *flow, bool swapped,
                                     const struct tcp_header *tcp, const struct packet_info *info) {
    if (tcp && tcp->flags & TCP_SYN &&
        starts_new_connection(&flow->tcp, swapped ^ flow->swapped, tcp))
        return WORD_PORTS_REUSED;
    return info->time_ns > flow_due_ns(flow) ? WORD_IDLE : WORD_NONE;
}

/* Begins a flow in place of the one that ended, if there was one. */
static __attribute__((noinline, cold)) struct flow *
replace_flow(struct worker *worker, struct flow *before, enum word end, uint32_t hash,
             const struct flow_key *key, bool swapped, const struct tcp_header *tcp,
             const struct packet_info *info) {
    row_sink_lock(worker->rows.sink);
    if (before)
        end_flow(worker, before, end);
    struct flow *flow = begin_flow(worker, hash, key, swapped, tcp, info);
    row_sink_unlock(worker->rows.sink);
    return flow;
}

/* Of successive packets of one flow only the first is searched for. */
static inline struct flow *find_flow(struct worker *worker, uint32_t hash,
                                     const struct flow_key *key) {
    if (!worker->found || !flow_key_equals(&worker->found->key, key))
        worker->found = flow_table_find(worker->updater->flows, hash, key);
    return worker->found;
}

inline struct flow *flow_lookup(struct worker *worker, uint32_t hash, const struct flow_key *key,
                                bool swapped, const struct tcp_header *tcp,
                                const struct packet_info *info, unsigned *direction) {
    struct flow *flow = find_flow(worker, hash, key);
    enum word end =
        flow && may_be_over(flow, tcp, info) ? end_before(flow, swapped, tcp, info) : WORD_NONE;
    if (!flow || end != WORD_NONE)
        flow = worker->found = replace_flow(worker, flow, end, hash, key, swapped, tcp, info);
    if (flow)
        *direction = swapped ^ flow->swapped;
    return flow;
}
