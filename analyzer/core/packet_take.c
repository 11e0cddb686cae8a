/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet's bytes to its flow. */
#include <stdio.h>

#include <string.h>

#include "../../traffic/block.h"
#include "analysis_state.h"
#include "bytes.h"

#define LINKTYPE_ETHERNET 1
#define UDP_HEADER_BYTES  8
#define ETHERNET_LEAST    60 /* bytes of a frame without FCS; shorter ones are padded (IEEE 802.3) */
#define ETHERNET_AROUND   24 /* preamble and delimiter 8, FCS 4, gap 12 */

static uint32_t wire_bytes_of(const struct packet *packet) {
    if (packet->link_type != LINKTYPE_ETHERNET || packet->length > UINT32_MAX - ETHERNET_AROUND)
        return packet->length;
    uint32_t frame = packet->length < ETHERNET_LEAST ? ETHERNET_LEAST : packet->length;
    return frame + ETHERNET_AROUND;
}

/* Whether the length of the transport's payload is what the headers say: they were read up to it.
 */
static bool is_payload_known(const struct headers *headers) {
    return headers->layer == LAYER_TRANSPORT || headers->answer == DECODE_OK;
}

static void see_packet(struct sighting *seen, const struct packet *packet,
                       const struct headers *headers, int64_t time_ns) {
    seen->time_ns = time_ns;
    seen->frame = packet->frame;
    seen->capture = packet->interface;
    seen->wire_bytes = wire_bytes_of(packet);
    seen->ip_bytes = headers->ip_length;
    seen->payload_known = is_payload_known(headers);
    bool reset = headers_tcp(headers) && headers->tcp.flags & TCP_RST;
    uint32_t payload = seen->payload_known ? headers->payload_length : 0;
    seen->payload_bytes = reset ? 0 : payload;
    seen->reset_bytes = reset ? payload : 0;
    seen->fragment_offset = headers->fragment_offset;
    seen->fragment = headers->fragment;
    seen->more_fragments = headers->more_fragments;
    seen->time_known = packet->time_ns != TIME_UNKNOWN;
    seen->ttl = headers->ttl;
    seen->link = headers->link_hash >> 26;
    seen->traffic_class = headers->traffic_class;
    seen->ip_id = headers->ip_version == 4 ? (uint16_t)headers->identification : 0;
}

/* What is told in full only of few packets. */
static bool needs_headers(const struct headers *headers) {
    bool icmp = headers->protocol == IP_ICMP || headers->protocol == IP_ICMPV6;
    return headers->fragment || (icmp && headers->layer == LAYER_TRANSPORT && headers->icmp.quotes);
}

static bool begins_with_block(const struct headers *headers) {
    return headers->payload_captured >= BLOCK_HEADER_BYTES &&
           load_be32(headers->payload) == BLOCK_MAGIC;
}

/* The pattern is looked at here, where all of it is at hand. */
static bool is_corrupt(const struct headers *headers) {
    struct block_header block;
    return begins_with_block(headers) &&
           block_read_header(&block, headers->payload, headers->payload_captured) &&
           block_check_pattern(headers->payload, &block, 0, headers->payload_captured) !=
               BLOCK_ALL_RIGHT;
}

/* Returns whether there was anything to see. */
static bool see_payload(struct payload_start *start, const struct headers *headers) {
    bool udp = headers->protocol == IP_UDP && headers->layer == LAYER_TRANSPORT;
    if (!udp && !(headers_tcp(headers) && begins_with_block(headers)))
        return false;
    start->count =
        (uint8_t)(headers->payload_captured < SEQUENCE_BYTES_MOST ? headers->payload_captured
                                                                  : SEQUENCE_BYTES_MOST);
    memcpy(start->bytes, headers->payload, start->count);
    start->length = headers->udp_length >= UDP_HEADER_BYTES && udp
                        ? (uint16_t)(headers->udp_length - UDP_HEADER_BYTES)
                        : 0;
    start->corrupt = is_corrupt(headers);
    return true;
}

/* Of the SACK blocks those that are there. */
static void see_tcp(struct tcp_header *seen, const struct tcp_header *tcp) {
    memcpy(seen, tcp, offsetof(struct tcp_header, sack));
    if (tcp->sack_count)
        memcpy(seen->sack, tcp->sack, sizeof seen->sack);
}

void packet_prepare(struct analysis *analysis, struct arrival *arrival, struct headers *headers,
                    const struct packet *packet, int64_t time_ns) {
    decode_packet(packet, headers);
    see_packet(&arrival->seen, packet, headers, time_ns);
    arrival->keyed = headers->layer >= LAYER_NETWORK;
    arrival->has_headers = false;
    if (!arrival->keyed)
        return;
    uint32_t path = path_table_number(analysis->paths, headers->path, headers->path_depth);
    bool swapped;
    arrival->key = flow_key_of(headers, path, &swapped);
    arrival->swapped = swapped;
    arrival->hash = flow_key_hash(analysis->flows, &arrival->key);
    arrival->is_tcp = headers_tcp(headers);
    if (arrival->is_tcp)
        see_tcp(&arrival->tcp, &headers->tcp);
    arrival->has_payload = see_payload(&arrival->payload, headers);
    arrival->has_headers = needs_headers(headers);
    if (arrival->has_headers)
        arrival->headers = headers;
}

static void log_step_back(struct analysis *analysis, const struct arrival *arrival) {
    char detail[64];
    snprintf(detail, sizeof detail, "%lld ns earlier than the packet before",
             (long long)arrival->step_back_ns);
    event_log(analysis, NULL, 0, &arrival->seen,
              &(struct tcp_event){.kind = WORD_TIME_BACKWARD,
                                  .place = WORD_CAPTURE,
                                  .related_frame = arrival->seen.frame - 1,
                                  .detail = detail});
}

void packet_take(struct analysis *analysis, struct arrival *arrival) {
    const struct tcp_header *tcp = arrival->is_tcp ? &arrival->tcp : NULL;
    unsigned number;
    if (arrival->steps_back)
        log_step_back(analysis, arrival);
    if (!arrival->keyed)
        return;
    if (arrival->seen.fragment) {
        fragment_take(analysis, arrival);
        return;
    }
    struct flow *flow = flow_lookup(analysis, arrival->hash, &arrival->key, arrival->swapped, tcp,
                                    &arrival->seen, &number);
    if (!flow)
        return;
    flow->directions[number].data_packets += arrival->seen.payload_bytes > 0;
    packet_account(analysis, flow, number, tcp, NULL, &arrival->seen, arrival_payload(arrival));
    if (arrival->has_headers)
        icmp_relate(analysis, arrival);
}
