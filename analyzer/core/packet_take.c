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

static void see_tcp(struct arrival *arrival, struct arrival_rest *rest,
                    const struct tcp_header *tcp) {
    memcpy(arrival->tcp, tcp, sizeof arrival->tcp);
    arrival->has_sack = tcp->sack_count;
    if (arrival->has_sack)
        memcpy(rest->sack, tcp->sack, sizeof rest->sack);
}

void packet_prepare(struct analysis *analysis, struct arrival *arrival, struct arrival_rest *rest,
                    struct headers *headers, const struct packet *packet, int64_t time_ns) {
    decode_packet(packet, headers);
    see_packet(&arrival->seen, packet, headers, time_ns);
    arrival->keyed = headers->layer >= LAYER_NETWORK;
    arrival->has_sack = arrival->has_payload = arrival->has_headers = false;
    if (!arrival->keyed)
        return;
    bool swapped;
    uint32_t path = path_table_number(analysis->paths, headers->path, headers->path_depth);
    arrival->key = flow_key_of(headers, path, &swapped);
    arrival->swapped = swapped;
    arrival->hash = flow_key_hash(analysis->flows, &arrival->key);
    arrival->is_tcp = headers_tcp(headers);
    if (arrival->is_tcp)
        see_tcp(arrival, rest, &headers->tcp);
    arrival->has_payload = see_payload(&rest->payload, headers);
    arrival->has_headers = needs_headers(headers);
    if (arrival->has_headers)
        rest->headers = headers;
}

static void log_step_back(struct analysis *analysis, const struct arrival *arrival,
                          int64_t step_back_ns) {
    char detail[64];
    snprintf(detail, sizeof detail, "%lld ns earlier than the packet before",
             (long long)step_back_ns);
    event_log(analysis, NULL, 0, &arrival->seen,
              &(struct tcp_event){.kind = WORD_TIME_BACKWARD,
                                  .place = WORD_CAPTURE,
                                  .related_frame = arrival->seen.frame - 1,
                                  .detail = detail});
}

/* The header as a whole again. */
static void restore_tcp(struct tcp_header *tcp, const struct arrival *arrival,
                        const struct arrival_rest *rest) {
    memcpy(tcp, arrival->tcp, sizeof arrival->tcp);
    if (arrival->has_sack)
        memcpy(tcp->sack, rest->sack, sizeof tcp->sack);
}

void packet_take(struct analysis *analysis, const struct arrival *arrival,
                 const struct arrival_rest *rest) {
    struct tcp_header header;
    const struct tcp_header *tcp = arrival->is_tcp ? &header : NULL;
    const struct sighting *seen = &arrival->seen;
    unsigned number;
    if (arrival->steps_back)
        log_step_back(analysis, arrival, rest->step_back_ns);
    if (!arrival->keyed)
        return;
    if (seen->fragment) {
        fragment_take(analysis, arrival, rest);
        return;
    }
    if (tcp)
        restore_tcp(&header, arrival, rest);
    struct flow *flow =
        flow_lookup(analysis, arrival->hash, &arrival->key, arrival->swapped, tcp, seen, &number);
    if (!flow)
        return;
    flow->directions[number].data_packets += seen->payload_bytes > 0;
    packet_account(analysis, flow, number, tcp, NULL, seen,
                   arrival->has_payload ? &rest->payload : NULL);
    if (arrival->has_headers)
        icmp_relate(analysis, arrival, rest);
}
