/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet's bytes to its flow. packet_decode() decodes the packet and computes the key of its
 * flow, for several packets at once. packet_complete() does what depends on the packets before, for
 * the few that need it: new encapsulations and link addresses, first bytes. packet_dispatch() runs
 * in a worker, after the batch was sorted by flow.
 *
 * A packet's bytes are valid only until it is complete, so all that a worker needs is copied. Most
 * packets need two cache lines; SACK blocks, MSS, the start of a payload and kept headers go into
 * extras, which are stored one after another and only for packets that have them. Decoding
 * allocates only for a new encapsulation. */
#include <stdio.h>

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "common/block.h"
#include "decode/step.h"
#include "flow/checksum.h"
#include "flow/shard.h"
#include "format/packet_origin.h"
#include "input/interfaces.h"
#include "update/update.h"

#define UDP_HEADER_BYTES 8
#define NO_PATH          0 /* of a packet without encapsulations; see flow/encapsulation.c */

_Static_assert(SELECTION_SHIFT == SHARD_BITS, "flow_hash.table selects the same bucket");

static inline bool is_tcp(const struct headers *headers) {
    return LIKELY(headers->layer == LAYER_TRANSPORT) && LIKELY(headers->protocol == IP_TCP);
}

/* The headers give the length of the transport's payload only if they were decoded up to it. Data
 * of an RST are a diagnostic text (RFC 9293 section 3.5.3), no part of the stream, and are
 * therefore kept apart. */
static NOINLINE void fill_other_length(struct packet_info *packet, const struct headers *headers) {
    bool known = headers->layer == LAYER_TRANSPORT || headers->answer == DECODE_OK;
    bool reset = is_tcp(headers) && headers->tcp.flags & TCP_RST;
    uint32_t payload = known ? headers->payload_length : 0;
    packet->payload_known = known;
    packet->payload_bytes = reset ? 0 : payload;
    packet->reset_bytes = reset ? payload : 0;
}

static inline uint16_t port_of(uint32_t link_hash, uint32_t interface) {
    uint32_t low = (1u << PORT_INTERFACE_BITS) - 1;
    return (uint16_t)((link_hash >> (32 - PORT_BITS) & ~low) | (interface & low));
}

static inline void fill_frame(struct packet_info *info, const struct packet *packet,
                              int64_t time_ns) {
    info->time_ns = time_ns;
    info->frame = packet->frame;
    info->capture = packet->interface;
    info->wire_bytes = wire_bytes_of(packet->link_type, packet->length);
    info->time_known = packet_is_timed(packet);
}

/* A shard has no whole packets, but what their checksums showed. */
static inline uint8_t checksum_of(const struct packet *packet, const struct headers *headers) {
    if (!LIKELY(!packet->shard))
        return packet->shard >> SHARD_CHECKSUM_SHIFT & 3;
    bool whole = (uint64_t)headers->outer_length + headers->ip_length <= packet->captured;
    return whole ? (uint8_t)checksum_verify(packet, headers) : CHECKSUM_UNVERIFIED;
}

static inline void fill_headers(struct packet_info *packet, const struct headers *headers,
                                bool tcp) {
    packet->payload_bytes = headers->payload_length;
    packet->reset_bytes = 0;
    packet->payload_known = true;
    if (!LIKELY(headers->layer == LAYER_TRANSPORT) || (tcp && headers->tcp.flags & TCP_RST))
        fill_other_length(packet, headers);
    packet->checksum = CHECKSUM_UNVERIFIED;
    packet->ip_bytes = headers->ip_length;
    packet->fragment_offset = (uint16_t)headers->fragment_offset; /* IPv4 and IPv6: 16 bits */
    packet->fragment = headers->fragment;
    packet->wlan_retry = headers->wlan == WLAN_RETRY;
    packet->ttl = headers->ttl;
    packet->port = port_of(headers->link_hash, packet->capture);
    packet->traffic_class = headers->traffic_class;
    packet->ip_id = headers->ip_version == 4 ? (uint16_t)headers->identification : 0;
}

static bool begins_with_block(const struct headers *headers) {
    return headers->payload_captured >= BLOCK_HEADER_BYTES &&
           load_be32(headers->payload) == BLOCK_MAGIC;
}

/* Checks the pattern of a block now, because all of the payload is at hand only in the reader. */
bool payload_is_corrupt(const struct headers *headers) {
    struct block_header block;
    return begins_with_block(headers) &&
           block_read_header(&block, headers->payload, headers->payload_captured) &&
           block_check_pattern(headers->payload, &block, 0, headers->payload_captured) !=
               BLOCK_ALL_RIGHT;
}

static NOINLINE void fill_payload(struct sequence_payload *start, const struct headers *headers) {
    bool udp = headers->protocol == IP_UDP;
    start->captured =
        (uint8_t)(headers->payload_captured < SEQUENCE_BYTES_MOST ? headers->payload_captured
                                                                  : SEQUENCE_BYTES_MOST);
    if (LIKELY(start->captured == SEQUENCE_BYTES_MOST)) /* a constant length for the compiler */
        memcpy(start->bytes, headers->payload, SEQUENCE_BYTES_MOST);
    else
        memcpy(start->bytes, headers->payload, start->captured);
    start->length = headers->udp_length >= UDP_HEADER_BYTES && udp
                        ? (uint16_t)(headers->udp_length - UDP_HEADER_BYTES)
                        : 0;
    start->corrupt = payload_is_corrupt(headers);
}

/* Returns whether the payload may carry numbers. */
static inline bool has_payload(const struct headers *headers, bool tcp) {
    if (tcp)
        return begins_with_block(headers);
    return headers->protocol == IP_UDP && headers->layer == LAYER_TRANSPORT;
}

/* Pure ACKs, and most segments of a stream behind its first bytes, cost no call. */
static inline bool may_select(const struct updater *updater, const struct decoded_packet *decoded,
                              const struct headers *headers) {
    return headers->tcp.flags & TCP_SYN ||
           (headers->payload_captured &&
            (selection_may_begin(*headers->payload) ||
             selection_is_open(updater->selection, decoded->hash, decoded->swapped)));
}

static inline bool select_datagram(struct packet_extras *extras, const struct headers *headers) {
    if (headers->protocol != IP_UDP || headers->layer != LAYER_TRANSPORT || headers->fragment)
        return false;
    extras->selected = selection_datagram(headers);
    return extras->selected.length;
}

/* Fills the parts that few packets have. Returns a bit for each of them. */
static inline unsigned fill_extras(struct packet_extras *extras, const struct headers *headers,
                                   bool tcp) {
    unsigned parts = 0;
    if (tcp &&
        (headers->tcp.sack_count || headers->tcp.options & (TCP_OPTION_MSS | TCP_OPTION_MPTCP))) {
        memcpy(extras->tcp, (const char *)&headers->tcp + TCP_FIXED_BYTES, sizeof extras->tcp);
        parts |= EXTRA_TCP;
    }
    if (has_payload(headers, tcp)) {
        fill_payload(&extras->payload, headers);
        parts |= EXTRA_PAYLOAD;
    }
    if (headers->fragment || (!tcp && is_icmp_error(headers))) {
        extras->headers = headers;
        parts |= EXTRA_HEADERS;
    }
    return parts;
}

/* Returns the hash of the key. */
static inline uint32_t set_key(const struct updater *updater, struct decoded_packet *decoded,
                               const struct headers *headers, uint32_t path) {
    struct flow_key key = flow_key_of(headers, path, &decoded->swapped);
    struct flow_hash hash = flow_key_hash(&updater->seeds, &key);
    decoded->hash = hash.table;
    decoded->key = key;
    return hash.whole;
}

static NOINLINE void fill_http(struct packet_info *packet, const uint8_t *bytes, size_t captured) {
    packet->http_status = (uint16_t)http_segment_status(bytes, captured, &packet->message_bytes);
    if (!packet->http_status)
        packet->message_bytes = http_request_bytes(bytes, captured, &packet->http_status);
}

/* Returns whether the packet must be completed, as far as it is a TCP segment. */
static inline bool fill_tcp(const struct updater *updater, struct decoded_packet *decoded,
                            struct headers *headers) {
    headers->tcp.signature =
        packet_signature(&headers->tcp, headers->transport_checksum, decoded->info.payload_bytes);
    memcpy(decoded->tcp, &headers->tcp, sizeof decoded->tcp);
    if (!LIKELY(!http_may_begin(headers->payload, headers->payload_captured)) &&
        !headers->fragment && decoded->info.payload_bytes)
        fill_http(&decoded->info, headers->payload, headers->payload_captured);
    return !LIKELY(capture_ports_has(updater->ports, headers, &decoded->info)) ||
           !LIKELY(!may_select(updater, decoded, headers));
}

static void fill_echo(struct decoded_packet *decoded, const struct headers *headers) {
    bool six = headers->protocol == IP_ICMPV6;
    struct echo_message echo = {ECHO_NONE, headers->icmp.identifier, headers->icmp.sequence};
    if (headers->layer != LAYER_TRANSPORT)
        echo = (struct echo_message){0};
    else if (headers->icmp.type == (six ? ICMPV6_ECHO_REQUEST : ICMP_ECHO_REQUEST))
        echo.kind = ECHO_REQUEST;
    else if (headers->icmp.type == (six ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY))
        echo.kind = ECHO_REPLY;
    memcpy(decoded->tcp, &echo, sizeof echo);
}

/* Sets `keyed` only if an IP header was decoded: all other packets are merely counted. A fragment
 * has a key too, but its ports are missing or wrong, so fragment_update() computes another.
 *
 * Hot path: keep decoding in one function; inlining it into the caller would spill registers. */
__attribute__((noinline, flatten)) bool
packet_decode(const struct updater *updater, struct decoded_packet *decoded,
              struct packet_extras *extras, struct headers *headers, const struct packet *packet,
              int64_t time_ns) {
    uint32_t path = NO_PATH;
    fill_frame(&decoded->info, packet, time_ns);
    decode_packet(packet, headers);
    bool tcp = is_tcp(headers), pending = false;
    fill_headers(&decoded->info, headers, tcp);
    decoded->extra_kinds = 0;
    decoded->keyed = decoded->is_tcp = false;
    decoded->hash = 0;
    if (headers->layer < LAYER_NETWORK)
        return true;
    decoded->keyed = true;
    decoded->is_tcp = tcp;
    decoded->info.checksum = checksum_of(packet, headers) & 3;
    if (!LIKELY(!headers->length_over_record))
        decoded->info.wire_bytes =
            wire_bytes_of(packet->link_type, headers->outer_length + headers->ip_length);
    if (!LIKELY(!headers->path_depth))
        pending = !encapsulation_table_find(updater->encapsulations, headers->path,
                                            headers->path_depth, &path);
    set_key(updater, decoded, headers, path);
    if (LIKELY(tcp))
        pending |= fill_tcp(updater, decoded, headers) || packet->shard & SHARD_PAYLOAD_CUT;
    decoded->extra_kinds = (uint8_t)fill_extras(extras, headers, tcp);
    if (!tcp && select_datagram(extras, headers))
        decoded->extra_kinds |= EXTRA_APPLICATION;
    if (!tcp && is_icmp(headers->protocol))
        fill_echo(decoded, headers);
    return pending || decoded->extra_kinds & (EXTRA_HEADERS | EXTRA_APPLICATION);
}

static void complete_tcp(struct updater *updater, struct decoded_packet *decoded,
                         struct packet_extras *extras, const struct headers *headers,
                         const struct packet *packet, uint32_t hash) {
    capture_ports_note(updater->ports, packet, headers, &decoded->info);
    if (headers->fragment)
        return;
    if (packet->shard & SHARD_PAYLOAD_CUT)
        selection_pass(updater->selection, hash, decoded->swapped, headers);
    if (!may_select(updater, decoded, headers))
        return;
    extras->selected = selection_segment(updater->selection, hash, decoded->swapped, headers);
    if (extras->selected.length)
        decoded->extra_kinds |= EXTRA_APPLICATION;
}

void packet_complete(struct updater *updater, struct decoded_packet *decoded,
                     struct packet_extras *extras, const struct headers *headers,
                     const struct packet *packet) {
    bool swapped;
    if (!decoded->keyed)
        return;
    uint32_t path =
        encapsulation_table_number(updater->encapsulations, headers->path, headers->path_depth);
    uint32_t hash = set_key(updater, decoded, headers, path);
    if (decoded->is_tcp)
        complete_tcp(updater, decoded, extras, headers, packet, hash);
    if (decoded->extra_kinds & EXTRA_HEADERS && !headers->fragment) {
        struct flow_key quoted = quoted_flow_key(headers, path, &swapped);
        extras->quoted_hash = flow_key_hash(&updater->seeds, &quoted).table;
    }
}

static NOINLINE void log_step_back(struct worker *worker, const struct decoded_packet *decoded,
                                   int64_t step_back_ns) {
    char detail[64];
    snprintf(detail, sizeof detail, "%lld ns earlier than the packet before",
             (long long)step_back_ns);
    event_write(&worker->rows, NULL, 0, &decoded->info,
                &(struct event){.kind = WORD_TIME_BACKWARD,
                                .place = WORD_CAPTURE,
                                .related_frame = decoded->info.frame - 1,
                                .detail = detail});
}

/* Of a packet with extras. */
static const struct packet_extras *extras_of(const struct worker *worker,
                                             const struct decoded_packet *decoded) {
    return &worker->extras[decoded->extras];
}

/* Processes the extras. Returns the beginning of the payload, NULL if it carries no numbers. */
static NOINLINE const struct sequence_payload *read_extras(struct worker *worker,
                                                           const struct decoded_packet *decoded) {
    const struct packet_extras *extras = extras_of(worker, decoded);
    if (decoded->extra_kinds & EXTRA_STEP_BACK)
        log_step_back(worker, decoded, extras->step_back_ns);
    return decoded->extra_kinds & EXTRA_PAYLOAD ? &extras->payload : NULL;
}

/* A flow that packets of two processes share has none: which of them it was is unknown. */
static NOINLINE void note_process(struct flow *flow, const struct process *process) {
    flow->processes_differ |= flow->process && !process_is_same(flow->process, process);
    if (!flow->process || !*flow->process->name)
        flow->process = process;
}

/* Rebuilds the whole header from both parts. */
static NOINLINE void restore_tcp(struct tcp_header *tcp, const struct worker *worker,
                                 const struct decoded_packet *decoded) {
    const struct packet_extras *extras = extras_of(worker, decoded);
    memcpy(tcp, decoded->tcp, sizeof decoded->tcp);
    if (decoded->extra_kinds & EXTRA_TCP)
        memcpy((char *)tcp + TCP_FIXED_BYTES, extras->tcp, sizeof extras->tcp);
}

/* Processes a packet in the order of dependence: its extras, its fragment, its flow. If memory has
 * run out, flow_lookup() has set out_of_memory, and the packet is dropped. An ICMP error counts for
 * its own flow here, and for the one that it quotes in icmp_error_update().
 *
 * Inlined twice: once for TCP, once for all other protocols. */
static ALWAYS_INLINE void take_of(struct worker *worker, const struct decoded_packet *decoded,
                                  const struct tcp_header *tcp) {
    const struct packet_info *packet = &decoded->info;
    const struct sequence_payload *payload = NULL;
    unsigned number;
    if (!LIKELY(!decoded->extra_kinds))
        payload = read_extras(worker, decoded);
    if (!LIKELY(decoded->keyed))
        return;
    if (!tcp && !LIKELY(!(decoded->extra_kinds & EXTRA_QUOTE_ONLY)))
        return;
    if (!LIKELY(!packet->fragment)) {
        fragment_update(worker, decoded, extras_of(worker, decoded));
        return;
    }
    struct flow *flow =
        flow_lookup(worker, decoded->hash, &decoded->key, decoded->swapped, tcp, packet, &number);
    if (!flow)
        return;
    flow->directions[number].data_packets += packet->payload_bytes > 0;
    flow_update(worker, flow, number, tcp, packet, payload);
    if (!LIKELY(!(decoded->extra_kinds & EXTRA_PROCESS)))
        note_process(flow, extras_of(worker, decoded)->process);
    if (!LIKELY(!(decoded->extra_kinds & EXTRA_APPLICATION)))
        application_update(worker, flow, number, packet, extras_of(worker, decoded));
    else if (!tcp && payload && flow->application && flow->application->quic)
        application_short_header(worker, flow, number, packet, payload);
    else if (!tcp && is_icmp(flow->key.protocol))
        echo_update(worker, flow, number, packet, decoded);
}

static NOINLINE void take_other(struct worker *worker, const struct decoded_packet *decoded) {
    take_of(worker, decoded, NULL);
}

_Static_assert(sizeof(struct echo_message) <= TCP_FIXED_BYTES, "in its place");
_Static_assert(offsetof(struct decoded_packet, tcp) % _Alignof(struct tcp_header) == 0, "aligned");

/* Without SACK blocks and MSS the header is read in place, because the fields behind
 * TCP_FIXED_BYTES are read only if the options have them. */
NOINLINE void packet_dispatch(struct worker *worker, const struct decoded_packet *decoded) {
    const struct tcp_header *tcp = (const void *)decoded->tcp;
    struct tcp_header whole;
    if (!LIKELY(decoded->is_tcp)) {
        take_other(worker, decoded);
        return;
    }
    if (!LIKELY(!decoded->extra_kinds)) {
        restore_tcp(&whole, worker, decoded);
        tcp = &whole;
    }
    take_of(worker, decoded, tcp);
}
