/* SPDX-License-Identifier: Apache-2.0 */
/* IP fragments into the flow that the ports in the first fragment of their datagram select (RFC 791
 * section 3.2, RFC 8200 section 4.5). Fragments that arrive before it wait, up to a bound, and are
 * replayed when it has arrived or the datagram ends.
 *
 * Only the first worker calls this, in file order, because the fragments of a datagram may hash to
 * several shards. Payload is not reassembled: each fragment is counted as a packet, and a TCP
 * segment is tracked piece by piece. flow/reassembly.h has the bounds: 65,536 datagrams, 256
 * waiting fragments each. If one more would have to wait, it goes to the flow without ports. */
#include <string.h>

#include "update/update.h"

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

/* Adds a fragment to its flow. Only the first has a TCP header; the position of later ones follows
 * from its sequence number and their offsets. Overhead is the headers that fragmentation repeats,
 * so those of the first do not count. */
static void account_fragment(struct worker *worker, struct datagram *datagram, struct flow *flow,
                             unsigned number, const struct tcp_header *tcp,
                             const struct packet_info *info,
                             const struct sequence_payload *payload) {
    bool first = !info->fragment_offset;
    uint32_t sequence = datagram->tcp_sequence + info->fragment_offset - datagram->transport_header;
    struct direction *direction = &flow->directions[number];
    direction->fragments++;
    flow->fragments[number].fragmented_datagrams +=
        !datagram->counted; /* with its first fragment */
    direction->data_packets += !datagram->counted;
    datagram->counted = true;
    datagram->flow = flow->number;
    datagram->direction = number;
    if (!first && info->wire_bytes > info->payload_bytes) {
        flow->fragments[number].overhead_bytes += info->wire_bytes - info->payload_bytes;
        datagram->overhead_bytes += info->wire_bytes - info->payload_bytes;
    }
    bool continues = !first && datagram->first_seen && datagram->transport_header &&
                     flow->key.protocol == IP_TCP;
    flow_update(worker, flow, number, tcp, continues ? &sequence : NULL, info, payload);
}

/* Remembers the ports and the sequence number of the first payload byte. A SYN takes one sequence
 * number before the data (RFC 9293 section 3.4). */
static void learn_first(struct datagram *datagram, const struct headers *headers) {
    const struct tcp_header *tcp = headers_tcp(headers);
    datagram->first_seen = true;
    datagram->transport_header = (uint8_t)headers->transport_header_length;
    if (headers->ports_known) {
        datagram->source_port = headers->source_port;
        datagram->destination_port = headers->destination_port;
    }
    if (tcp)
        datagram->tcp_sequence = tcp->sequence + !!(tcp->flags & TCP_SYN);
}

/* Finds the flow of a datagram's fragments, by the ports of its first fragment. */
static struct flow *flow_of_datagram(struct worker *worker, const struct datagram *datagram,
                                     const struct tcp_header *tcp, const struct packet_info *info,
                                     unsigned *number) {
    bool swapped;
    struct flow_key key = key_of_datagram(datagram, &swapped);
    return flow_lookup(worker, flow_key_hash(worker->updater->flows, &key), &key, swapped, tcp,
                       info, number);
}

/* The packets that waited keep their frames and times. If the first fragment never came, they
 * belong to a flow without ports. */
static void replay_waiting(struct worker *worker, struct datagram *datagram) {
    for (uint32_t i = 0; i < datagram->waiting_count; i++) {
        const struct packet_info *info = &datagram->waiting[i];
        unsigned number;
        struct flow *flow = flow_of_datagram(worker, datagram, NULL, info, &number);
        if (flow)
            account_fragment(worker, datagram, flow, number, NULL, info, NULL);
    }
    datagram->waiting_count = 0;
}

void fragment_update(struct worker *worker, const struct decoded_packet *decoded,
                     const struct packet_extras *extras) {
    const struct headers *headers = extras->headers;
    const struct tcp_header *tcp = headers_tcp(headers);
    const struct packet_info *info = &decoded->info;
    enum fragment_verdict verdict;
    unsigned number;
    struct datagram *datagram =
        reassembly_take(worker->updater->datagrams, headers, decoded->key.path, info, &verdict);
    bool first = !headers->fragment_offset;
    if (!datagram) {
        worker->rows.sink->out_of_memory = true;
        return;
    }
    if (first && !datagram->first_seen)
        learn_first(datagram, headers);
    if (!datagram->first_seen && datagram_wait(worker->updater->datagrams, datagram, info))
        return;
    struct flow *flow = flow_of_datagram(worker, datagram, tcp, info, &number);
    if (!flow)
        return;
    if (verdict == FRAGMENT_OVERLAP)
        event_write(&worker->rows, flow, number, info,
                    &(struct event){.kind = WORD_FRAGMENT_OVERLAP,
                                    .bytes = headers->fragment_length,
                                    .related_frame = datagram->first_frame});
    account_fragment(worker, datagram, flow, number, tcp, info,
                     first && decoded->extra_kinds & EXTRA_PAYLOAD ? &extras->payload : NULL);
    if (first)
        replay_waiting(worker, datagram);
}

/* Counts payload that arrived but cannot be used. */
static void count_incomplete(struct updater *updater, const struct datagram *datagram) {
    bool swapped;
    struct flow_key key = key_of_datagram(datagram, &swapped);
    struct flow *flow = flow_table_find(updater->flows, flow_key_hash(updater->flows, &key), &key);
    /* The flow may be over, or another may have its key by now. */
    if (!flow || flow->number != datagram->flow)
        return;
    struct fragment_counts *counts = &flow->fragments[datagram->direction];
    counts->incomplete_datagrams++;
    if (datagram->received > datagram->transport_header)
        counts->incomplete_bytes += datagram->received - datagram->transport_header;
}

void datagram_finish(void *context, struct datagram *datagram) {
    struct worker *worker = context;
    replay_waiting(worker, datagram);
    if (!datagram->complete && datagram->counted)
        count_incomplete(worker->updater, datagram);
    datagram_row_add(worker->rows.sink, datagram);
}
