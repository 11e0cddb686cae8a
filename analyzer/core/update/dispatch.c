/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet's bytes to its flow. */
#include <stdio.h>

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "common/block.h"
#include "decode/decode.h"
#include "update/update.h"

#define LINKTYPE_ETHERNET 1
#define UDP_HEADER_BYTES  8
#define ETHERNET_LEAST    60 /* bytes of a frame without FCS; shorter ones are padded (IEEE 802.3) */
#define ETHERNET_AROUND   24 /* preamble and delimiter 8, FCS 4, gap 12 */
#define NO_PATH           0  /* of a packet without encapsulations; see flow/encapsulation.h */

static uint32_t wire_bytes_of(const struct packet *packet) {
    if (packet->link_type != LINKTYPE_ETHERNET || packet->length > UINT32_MAX - ETHERNET_AROUND)
        return packet->length;
    uint32_t frame = packet->length < ETHERNET_LEAST ? ETHERNET_LEAST : packet->length;
    return frame + ETHERNET_AROUND;
}

static inline void see_frame(struct packet_info *seen, const struct packet *packet,
                             int64_t time_ns) {
    seen->time_ns = time_ns;
    seen->frame = packet->frame;
    seen->capture = packet->interface;
    seen->wire_bytes = wire_bytes_of(packet);
    seen->time_known = packet->time_ns != TIME_UNKNOWN;
}

static inline bool is_tcp(const struct headers *headers) {
    return LIKELY(headers->layer == LAYER_TRANSPORT) && LIKELY(headers->protocol == IP_TCP);
}

/* The length of the transport's payload is what the headers say if they were read up to it. */
static NOINLINE void see_other_length(struct packet_info *seen, const struct headers *headers) {
    bool known = headers->layer == LAYER_TRANSPORT || headers->answer == DECODE_OK;
    bool reset = is_tcp(headers) && headers->tcp.flags & TCP_RST;
    uint32_t payload = known ? headers->payload_length : 0;
    seen->payload_known = known;
    seen->payload_bytes = reset ? 0 : payload;
    seen->reset_bytes = reset ? payload : 0;
}

static inline void see_headers(struct packet_info *seen, const struct headers *headers, bool tcp) {
    seen->payload_bytes = headers->payload_length;
    seen->reset_bytes = 0;
    seen->payload_known = true;
    if (!LIKELY(headers->layer == LAYER_TRANSPORT) || (tcp && headers->tcp.flags & TCP_RST))
        see_other_length(seen, headers);
    seen->ip_bytes = headers->ip_length;
    seen->fragment_offset = headers->fragment_offset;
    seen->fragment = headers->fragment;
    seen->more_fragments = headers->more_fragments;
    seen->ttl = headers->ttl;
    seen->port = (headers->link_hash >> 26 ^ seen->capture * 11u) & 63;
    seen->traffic_class = headers->traffic_class;
    seen->ip_id = headers->ip_version == 4 ? (uint16_t)headers->identification : 0;
}

/* What is told in full only of few packets. */
static bool is_icmp_error(const struct headers *headers) {
    bool icmp = headers->protocol == IP_ICMP || headers->protocol == IP_ICMPV6;
    return icmp && headers->layer == LAYER_TRANSPORT && headers->icmp.quotes;
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

static NOINLINE void see_payload(struct payload_start *start, const struct headers *headers) {
    bool udp = headers->protocol == IP_UDP;
    start->count =
        (uint8_t)(headers->payload_captured < SEQUENCE_BYTES_MOST ? headers->payload_captured
                                                                  : SEQUENCE_BYTES_MOST);
    if (LIKELY(start->count == SEQUENCE_BYTES_MOST)) /* a length that the compiler knows */
        memcpy(start->bytes, headers->payload, SEQUENCE_BYTES_MOST);
    else
        memcpy(start->bytes, headers->payload, start->count);
    start->length = headers->udp_length >= UDP_HEADER_BYTES && udp
                        ? (uint16_t)(headers->udp_length - UDP_HEADER_BYTES)
                        : 0;
    start->corrupt = is_corrupt(headers);
}

/* Returns whether there is anything to see of the payload. */
static inline bool has_payload(const struct headers *headers, bool tcp) {
    if (tcp)
        return begins_with_block(headers);
    return headers->protocol == IP_UDP && headers->layer == LAYER_TRANSPORT;
}

/* What only some packets bring; returns what it was. */
static inline unsigned see_rest(struct packet_extras *rest, const struct headers *headers,
                                bool tcp) {
    unsigned parts = 0;
    if (tcp && (headers->tcp.sack_count || headers->tcp.options & TCP_OPTION_MSS)) {
        memcpy(rest->tcp, (const char *)&headers->tcp + TCP_FIXED_BYTES, sizeof rest->tcp);
        parts |= EXTRA_TCP;
    }
    if (has_payload(headers, tcp)) {
        see_payload(&rest->payload, headers);
        parts |= EXTRA_PAYLOAD;
    }
    if (headers->fragment || (!tcp && is_icmp_error(headers))) {
        rest->headers = headers;
        parts |= EXTRA_HEADERS;
    }
    return parts;
}

static NOINLINE uint32_t path_of(const struct updater *updater, const struct headers *headers) {
    return encapsulation_table_number(updater->encapsulations, headers->path, headers->path_depth);
}

/* All of a packet's usual way is one function, with the decoder; it is not made part of the loop
 * that calls it, as it would lack registers there. */
__attribute__((noinline, flatten)) void
packet_prepare(struct updater *updater, struct decoded_packet *decoded, struct packet_extras *rest,
               struct headers *headers, const struct packet *packet, int64_t time_ns) {
    see_frame(&decoded->seen, packet, time_ns);
    decode_packet(packet, headers);
    bool tcp = is_tcp(headers);
    see_headers(&decoded->seen, headers, tcp);
    decoded->parts = 0;
    decoded->keyed = false;
    decoded->hash = 0;
    decoded->rest = 0;
    if (headers->layer < LAYER_NETWORK)
        return;
    decoded->keyed = true;
    uint32_t path = LIKELY(!headers->path_depth) ? NO_PATH : path_of(updater, headers);
    struct flow_key key = flow_key_of(headers, path, &decoded->swapped);
    decoded->hash = flow_key_hash(updater->flows, &key);
    decoded->key = key;
    decoded->is_tcp = tcp;
    if (tcp) {
        headers->tcp.signature = packet_signature(&headers->tcp, headers->transport_checksum,
                                                  decoded->seen.payload_bytes);
        memcpy(decoded->tcp, &headers->tcp, sizeof decoded->tcp);
    }
    decoded->parts = (uint8_t)see_rest(rest, headers, tcp);
}

static NOINLINE void log_step_back(struct worker *worker, const struct decoded_packet *decoded,
                                   int64_t step_back_ns) {
    char detail[64];
    snprintf(detail, sizeof detail, "%lld ns earlier than the packet before",
             (long long)step_back_ns);
    event_write(&worker->rows, NULL, 0, &decoded->seen,
                &(struct event){.kind = WORD_TIME_BACKWARD,
                                .place = WORD_CAPTURE,
                                .related_frame = decoded->seen.frame - 1,
                                .detail = detail});
}

/* Of an decoded with parts. */
static const struct packet_extras *rest_of(const struct worker *worker,
                                           const struct decoded_packet *decoded) {
    return &worker->extras[decoded->rest];
}

/* What few packets bring. Returns the payload's beginning, NULL without one. */
static NOINLINE const struct payload_start *take_rest(struct worker *worker,
                                                      const struct decoded_packet *decoded) {
    const struct packet_extras *rest = rest_of(worker, decoded);
    if (decoded->parts & EXTRA_STEP_BACK)
        log_step_back(worker, decoded, rest->step_back_ns);
    return decoded->parts & EXTRA_PAYLOAD ? &rest->payload : NULL;
}

/* The header as a whole again. */
static NOINLINE void restore_tcp(struct tcp_header *tcp, const struct worker *worker,
                                 const struct decoded_packet *decoded) {
    const struct packet_extras *rest = rest_of(worker, decoded);
    memcpy(tcp, decoded->tcp, sizeof decoded->tcp);
    if (decoded->parts & EXTRA_TCP)
        memcpy((char *)tcp + TCP_FIXED_BYTES, rest->tcp, sizeof rest->tcp);
}

/* It is made part of those that call it: once for TCP, once for all others. */
static ALWAYS_INLINE void take_of(struct worker *worker, const struct decoded_packet *decoded,
                                  const struct tcp_header *tcp) {
    const struct packet_info *seen = &decoded->seen;
    const struct payload_start *payload = NULL;
    unsigned number;
    if (!LIKELY(!decoded->parts))
        payload = take_rest(worker, decoded);
    if (!LIKELY(decoded->keyed))
        return;
    if (!LIKELY(!seen->fragment)) {
        fragment_update(worker, decoded, rest_of(worker, decoded));
        return;
    }
    struct flow *flow =
        flow_lookup(worker, decoded->hash, &decoded->key, decoded->swapped, tcp, seen, &number);
    if (!flow)
        return;
    flow_direction(flow, number)->data_packets += seen->payload_bytes > 0;
    flow_update(worker, flow, number, tcp, NULL, seen, payload);
    if (!tcp && decoded->parts & EXTRA_HEADERS)
        icmp_error_update(worker, decoded, rest_of(worker, decoded));
}

static NOINLINE void take_other(struct worker *worker, const struct decoded_packet *decoded) {
    take_of(worker, decoded, NULL);
}

_Static_assert(offsetof(struct decoded_packet, tcp) % _Alignof(struct tcp_header) == 0, "aligned");

/* The usual header is read where it lies: without SACK blocks and a segment size nobody reads what
 * it has not. */
NOINLINE void packet_dispatch(struct worker *worker, const struct decoded_packet *decoded) {
    const struct tcp_header *tcp = (const void *)decoded->tcp;
    struct tcp_header whole;
    if (!LIKELY(decoded->is_tcp)) {
        take_other(worker, decoded);
        return;
    }
    if (!LIKELY(!decoded->parts)) {
        restore_tcp(&whole, worker, decoded);
        tcp = &whole;
    }
    take_of(worker, decoded, tcp);
}
