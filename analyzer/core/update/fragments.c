/* SPDX-License-Identifier: Apache-2.0 */
/* IP fragments into the flow that the ports in the first fragment of their datagram select (RFC 791
 * section 3.2, RFC 8200 section 4.5). Fragments that arrive before it wait, up to a bound, and are
 * replayed when it has arrived or the datagram ends.
 *
 * The shard has all fragments of its datagrams, and the flows that their ports select, and
 * processes its packets in file order if there are fragments. Payload is not reassembled: each
 * fragment is counted as a packet. A TCP segment is tracked when the last of its fragments arrives,
 * because its receiver takes it then or never; so is each copy of it. flow/reassembly.h has the
 * bounds: 65,536 datagrams, 256 waiting fragments each. If one more would have to wait, it
 * goes to the flow without ports. */
#include <string.h>

#include "base/int64.h"
#include "update/update.h"

/* Returns the counts of a direction for writing, NULL without memory. */
static struct fragment_counts *count_fragments(struct worker *worker, struct flow *flow,
                                               unsigned number) {
    if (!flow->fragments)
        flow->fragments = pool_zeroed(worker->rows.pool, 2 * sizeof *flow->fragments);
    worker->sink.out_of_memory |= !flow->fragments;
    return flow->fragments ? &flow->fragments[number] : NULL;
}

/* Fragments of one datagram must all find the same flow, although only the first has the
 * ports, which are 0 before it came. */
static struct flow_key key_of_datagram(const struct datagram *datagram, bool *swapped) {
    struct headers ends = {.protocol = datagram->key.protocol,
                           .ip_version = datagram->key.ip_version,
                           .source_port = datagram->source_port,
                           .destination_port = datagram->destination_port};
    memcpy(ends.source, datagram->key.source, sizeof ends.source);
    memcpy(ends.destination, datagram->key.destination, sizeof ends.destination);
    return flow_key_of(&ends, datagram->key.path, swapped);
}

/* Counts what comes again: a whole segment is judged like any other packet (rules V8), a fragment
 * alone is not. */
static void count_copy(const struct datagram *datagram, struct direction *direction,
                       struct fragment_counts *counts, const struct packet_info *packet) {
    if (datagram->covered) {
        direction->data_packets++;
        counts->copied_bytes -= datagram->covered->payload_bytes - packet->payload_bytes;
    } else {
        counts->copied_bytes += packet->payload_bytes;
    }
}

/* Adds a fragment to its flow. Overhead is the headers that fragmentation repeats, so those of the
 * first do not count. */
static void account_fragment(struct worker *worker, struct datagram *datagram, struct flow *flow,
                             unsigned number, const struct packet_info *packet) {
    bool first = !packet->fragment_offset;
    struct direction *direction = &flow->directions[number];
    struct fragment_counts *counts = count_fragments(worker, flow, number);
    if (!counts)
        return;
    counts->fragments++;
    counts->fragmented_datagrams += !datagram->counted; /* with its first fragment */
    direction->data_packets += !datagram->counted;
    datagram->counted = true;
    datagram->flow = flow->number;
    datagram->direction = number;
    if (packet->payload_bytes > counts->payload_max)
        counts->payload_max = packet->payload_bytes;
    if (!first && packet->wire_bytes > packet->payload_bytes) {
        counts->overhead_bytes += packet->wire_bytes - packet->payload_bytes;
        datagram->overhead_bytes += packet->wire_bytes - packet->payload_bytes;
    }
    if (packet->copied && datagram->has_tcp)
        count_copy(datagram, direction, counts, packet);
    flow_update_fragment(worker, flow, number, datagram, packet);
    datagram->covered = NULL;
}

/* Returns the beginning of the payload, NULL if it carries no numbers or the fragment is not the
 * first. */
static const struct sequence_payload *payload_of(const struct decoded_packet *decoded,
                                                 const struct packet_extras *extras) {
    bool first = !extras->headers->fragment_offset;
    return first && decoded->extra_kinds & EXTRA_PAYLOAD ? &extras->payload : NULL;
}

/* Remembers the ports and the TCP header, which later fragments do not have. */
static void learn_first(struct datagram *datagram, const struct headers *headers,
                        const struct sequence_payload *payload, uint64_t at) {
    const struct tcp_header *tcp = headers_tcp(headers);
    if (headers->fragment_offset || datagram->first_seen)
        return;
    datagram->first_seen = true;
    datagram->head_at = at;
    datagram->transport_header = (uint8_t)headers->transport_header_length;
    if (headers->ports_known) {
        datagram->source_port = headers->source_port;
        datagram->destination_port = headers->destination_port;
    }
    datagram->has_tcp = tcp;
    if (tcp)
        datagram->tcp = *tcp;
    datagram->has_payload = payload;
    if (payload)
        datagram->payload = *payload;
}

/* Finds the flow of a datagram's fragments, by the ports of its first fragment. */
static struct flow *flow_of_datagram(struct worker *worker, const struct datagram *datagram,
                                     const struct tcp_header *tcp, const struct packet_info *packet,
                                     unsigned *number) {
    bool swapped;
    struct flow_key key = key_of_datagram(datagram, &swapped);
    return flow_lookup(worker, flow_key_hash(&worker->updater->seeds, &key).table, &key, swapped,
                       tcp, packet, number);
}

/* The packets that waited keep their frames and times. If the first fragment never came, they
 * belong to a flow without ports. */
static void replay_waiting(struct worker *worker, struct datagram *datagram) {
    for (uint32_t i = 0; i < datagram->waiting_count; i++) {
        const struct packet_info *packet = &datagram->waiting[i];
        unsigned number;
        struct flow *flow = flow_of_datagram(worker, datagram, NULL, packet, &number);
        if (flow)
            account_fragment(worker, datagram, flow, number, packet);
    }
    datagram->waiting_count = 0;
}

/* Counts payload that arrived but cannot be used. */
static void count_incomplete(const struct worker *worker, const struct datagram *datagram) {
    bool swapped;
    struct flow_key key = key_of_datagram(datagram, &swapped);
    struct flow *flow = flow_table_find(worker->shard->flows,
                                        flow_key_hash(&worker->updater->seeds, &key).table, &key);
    /* The flow may be over, or another may have its key by now. */
    if (!flow || flow->number != datagram->flow || !flow->fragments)
        return;
    /* The table may not have been swept since the flow was over. */
    if (flow_due_ns(flow) < min64(datagram->first_ns + DATAGRAM_KEPT_NS, worker->now_ns))
        return;
    struct fragment_counts *counts = &flow->fragments[datagram->direction];
    counts->incomplete_datagrams++;
    if (datagram->received > datagram->transport_header)
        counts->incomplete_bytes += datagram->received - datagram->transport_header;
}

/* A datagram_finished function; the context is the worker that has the shard. Between packets,
 * complete datagrams end first; at the end of the capture, those that are not. */
static void datagram_finish(void *context, struct datagram *datagram) {
    struct worker *worker = context;
    if (worker->sweep) {
        bool second = datagram->complete == worker->at_end;
        worker->sink.at = worker->sweep | ORDER_PHASE(second ? 2 : 1);
        worker->sink.minor = datagram->complete ? datagram->completed : datagram->begun;
    }
    replay_waiting(worker, datagram);
    if (!datagram->complete && datagram->counted)
        count_incomplete(worker, datagram);
    datagram_row_add(&worker->sink, datagram);
}

/* Returns the datagrams of the shard, NULL without memory. */
static struct reassembly *datagrams_of(struct worker *worker) {
    struct shard *shard = worker->shard;
    if (shard->datagrams)
        return shard->datagrams;
    shard->datagrams = reassembly_open(datagram_finish, make_room_for_datagram);
    if (shard->datagrams)
        reassembly_use(shard->datagrams, worker, worker->rows.pool);
    return shard->datagrams;
}

void fragment_update(struct worker *worker, const struct decoded_packet *decoded,
                     const struct packet_extras *extras) {
    const struct headers *headers = extras->headers;
    const struct tcp_header *tcp = headers_tcp(headers);
    struct packet_info info = decoded->info;
    enum fragment_verdict verdict;
    unsigned number;
    struct reassembly *datagrams = datagrams_of(worker);
    struct datagram *datagram =
        datagrams ? reassembly_take(datagrams, headers, decoded->key.path, &info, &verdict) : NULL;
    if (!datagram) {
        worker->sink.out_of_memory = true;
        return;
    }
    if (!datagram->begun)
        datagram->begun = worker->sink.at;
    if (datagram->complete && !datagram->completed)
        datagram->completed = worker->sink.at;
    learn_first(datagram, headers, payload_of(decoded, extras), worker->sink.at);
    info.copied = verdict == FRAGMENT_DUPLICATE;
    if (!datagram->first_seen && datagram_wait(datagrams, datagram, &info))
        return;
    /* The copy of a fragment begins no connection. */
    struct flow *flow =
        flow_of_datagram(worker, datagram, info.copied ? NULL : tcp, &info, &number);
    if (!flow)
        return;
    if (verdict == FRAGMENT_OVERLAP)
        event_write(&worker->rows, flow, number, &info,
                    &(struct event){.kind = WORD_FRAGMENT_OVERLAP,
                                    .bytes = headers->fragment_length,
                                    .related_frame = datagram->first_frame});
    account_fragment(worker, datagram, flow, number, &info);
    if (!headers->fragment_offset && !info.copied && is_icmp(headers->protocol))
        echo_update(worker, flow, number, &info, decoded);
    if (!headers->fragment_offset)
        replay_waiting(worker, datagram);
}
