/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum (RFC 1071) of a whole TCP segment (RFC 9293 section 3.1), UDP datagram
 * (RFC 768), ICMP or ICMPv6 message (RFC 792, RFC 4443 section 2.3).
 *
 * A host that leaves the checksum to its adapter captures packets before it is there: the field has
 * the sum of the pseudo-header alone (Linux CHECKSUM_PARTIAL, also after receive offload merged
 * segments), which some drivers compute without the length, or 0. One right checksum of TCP in
 * 65,536 is 0, too, and counts as left out.
 *
 * The sum does not depend on the byte order, so that words are added as they are in memory: 64 bits
 * with their carry, and of long packets the halves in two sums, of which none can overflow below
 * 2^32 words. */
#include "flow/checksum.h"

#include "decode/step.h"

#define ICMP_FIELD 2u /* offset of the checksum */
#define UDP_FIELD  6u
#define TCP_FIELD  16u
#define UDP_HEADER 8u
#define BLOCK      32u /* bytes that the loop adds at once */

#define LINK_MTU        1500u /* bytes; a longer packet may be several merged ones */
#define SEGMENT_HEADERS 60u   /* bytes of IPv6 and TCP headers; their options are within the MSS */

/* --- one packet ------------------------------------------------------------------------------ */

typedef uint64_t words __attribute__((vector_size(16)));

static inline uint16_t fold(uint64_t sum) {
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}

static inline void add_block(words *low, words *high, const uint8_t *bytes) {
    words first, second;
    memcpy(&first, bytes, sizeof first);
    memcpy(&second, bytes + sizeof first, sizeof second);
    *low += (first & UINT32_MAX) + (second & UINT32_MAX);
    *high += (first >> 32) + (second >> 32);
}

static NOINLINE uint64_t sum_blocks(const uint8_t *bytes, uint32_t length) {
    words low = {0}, high = {0};
    for (uint32_t at = 0; at < length; at += BLOCK)
        add_block(&low, &high, bytes + at);
    return low[0] + low[1] + high[0] + high[1];
}

static inline uint64_t add_word(uint64_t sum, uint64_t word) {
    sum += word;
    return sum + (sum < word);
}

static inline uint64_t sum_of(const uint8_t *bytes, uint32_t length) {
    uint64_t sum = 0;
    if (length >= 4 * BLOCK) {
        sum = sum_blocks(bytes, length - length % BLOCK);
        bytes += length - length % BLOCK;
        length %= BLOCK;
    }
    for (; length >= sizeof sum; bytes += sizeof sum, length -= (uint32_t)sizeof sum)
        sum = add_word(sum, load_le64(bytes));
    uint64_t last = 0;
    for (uint32_t at = 0; at < length; at++)
        last |= (uint64_t)bytes[at] << 8 * at;
    return add_word(sum, last);
}

/* Returns the place of the checksum in the header, 0 if it is not verified. */
static inline uint32_t field_of(uint8_t protocol) {
    switch (protocol) {
    case IP_TCP: return TCP_FIELD;
    case IP_UDP: return UDP_FIELD;
    case IP_ICMP:
    case IP_ICMPV6: return ICMP_FIELD;
    default: return 0;
    }
}

/* Returns the length of the transport packet, 0 if it is not captured whole, its headers are not
 * sound, or IP options or extension headers may hide its last destination, which the
 * pseudo-header has (RFC 8200 section 8.1). */
static uint32_t whole_length(const struct packet *packet, const struct headers *headers) {
    uint32_t ip_header = headers->ip_version == 4 ? IPV4_HEADER : IPV6_HEADER;
    bool sound = headers->reason == REASON_NONE || headers->reason == REASON_TCP_OPTIONS;
    if (!sound || headers->layer != LAYER_TRANSPORT || headers->fragment ||
        headers->length_from_frame || headers->ip_header_length != ip_header ||
        (uint64_t)headers->outer_length + headers->ip_length > packet->captured ||
        headers->ip_length < ip_header + headers->transport_header_length)
        return 0;
    uint32_t length = headers->ip_length - ip_header;
    if (headers->protocol != IP_UDP)
        return length;
    return headers->udp_length <= length ? headers->udp_length : 0;
}

/* Of addresses and protocol; IPv4 addresses are 0 behind their 4 bytes. */
static inline uint64_t pseudo_sum(const struct headers *headers) {
    const uint8_t *ends[] = {headers->source, headers->destination};
    uint64_t sum = (uint64_t)headers->protocol << 8;
    for (unsigned end = 0; end < 2; end++)
        for (unsigned at = 0; at < (headers->ip_version == 4 ? 4u : 16u); at += 4)
            sum += load_le32(ends[end] + at);
    return sum;
}

/* Returns the length as the pseudo-header has it, in the byte order of the sum. */
static inline uint64_t length_sum(uint32_t length) {
    uint32_t swapped = __builtin_bswap32(length);
    return (swapped & 0xffff) + (swapped >> 16);
}

/* Of the transport header behind the innermost IP header. */
static inline enum packet_checksum verify_innermost(const struct packet *packet,
                                                    const struct headers *headers) {
    uint32_t field = field_of(headers->protocol), length = whole_length(packet, headers);
    if (!field || length < field + 2)
        return CHECKSUM_UNVERIFIED;
    const uint8_t *header = packet->data + headers->outer_length + headers->ip_header_length;
    uint16_t stored = load_le16(header + field);
    if (!stored) /* RFC 768: a sender of UDP computed none */
        return headers->protocol == IP_UDP ? CHECKSUM_UNVERIFIED : CHECKSUM_OFFLOADED;
    uint64_t pseudo = headers->protocol == IP_ICMP ? 0 : pseudo_sum(headers);
    uint64_t pseudo_length = headers->protocol == IP_ICMP ? 0 : length_sum(length);
    if (fold(add_word(sum_of(header, length), pseudo + pseudo_length)) == 0xffff)
        return CHECKSUM_RIGHT;
    bool partial = stored == fold(pseudo + pseudo_length) || stored == fold(pseudo);
    return partial ? CHECKSUM_OFFLOADED : CHECKSUM_WRONG;
}

/* Of the datagram around the packet, whose IP header begins at `at` and was decoded. */
static NOINLINE enum packet_checksum verify_tunnel(const struct packet *packet, uint32_t at) {
    struct headers outer = {.protocol = IP_UDP, .ip_version = packet->data[at] >> 4};
    bool is_ipv4 = outer.ip_version == 4;
    uint32_t size = is_ipv4 ? IPV4_HEADER : IPV6_HEADER, ends = is_ipv4 ? 4 : 16;
    const uint8_t *ip = packet->data + at, *udp = ip + size;
    if ((uint64_t)at + size + UDP_HEADER > packet->captured || ip[is_ipv4 ? 9 : 6] != IP_UDP ||
        (is_ipv4 && (ip[0] & 15) * 4u != IPV4_HEADER))
        return CHECKSUM_UNVERIFIED;
    uint32_t length = load_be16(udp + 4);
    uint16_t stored = load_le16(udp + UDP_FIELD);
    if (!stored || length < UDP_HEADER || (uint64_t)at + size + length > packet->captured)
        return CHECKSUM_UNVERIFIED;
    memcpy(outer.source, udp - 2 * ends, ends);
    memcpy(outer.destination, udp - ends, ends);
    uint64_t pseudo = pseudo_sum(&outer), pseudo_length = length_sum(length);
    if (fold(add_word(sum_of(udp, length), pseudo + pseudo_length)) == 0xffff)
        return CHECKSUM_RIGHT;
    bool partial = stored == fold(pseudo + pseudo_length) || stored == fold(pseudo);
    return partial ? CHECKSUM_OFFLOADED : CHECKSUM_WRONG;
}

/* The end of a tunnel discards a damaged datagram, whatever is in it (RFC 768). */
enum packet_checksum checksum_verify(const struct packet *packet, const struct headers *headers) {
    enum packet_checksum innermost = verify_innermost(packet, headers), outer;
    if (LIKELY(!headers->udp_tunnel))
        return innermost;
    outer = verify_tunnel(packet, headers->tunnel_offset);
    bool decides =
        outer == CHECKSUM_WRONG || (outer == CHECKSUM_RIGHT && innermost == CHECKSUM_UNVERIFIED);
    return decides ? outer : innermost;
}

/* --- a direction ----------------------------------------------------------------------------- */

/* A merged packet (LRO) keeps the checksum of its first segment. */
static bool may_be_merged(const struct flow *flow, unsigned number,
                          const struct packet_info *packet) {
    uint32_t mss = flow->key.protocol == IP_TCP ? flow->tcp.streams[number].agreed_mss : 0;
    uint32_t single = mss + SEGMENT_HEADERS;
    return packet->ip_bytes > (single > LINK_MTU ? single : LINK_MTU);
}

/* Wrong checksums show damage if more are right, some of them of data if some of these are. */
static bool is_damage(const struct direction *direction, const struct checksum_counts *counts) {
    return direction->right_checksums > counts->wrong &&
           (direction->right_data || counts->wrong_data == counts->delivered);
}

enum packet_damage take_other_checksum(struct flow *flow, unsigned number,
                                       const struct packet_info *packet, struct pool *pool) {
    if (!flow->checksums)
        flow->checksums = pool_zeroed(pool, 2 * sizeof *flow->checksums);
    if (!flow->checksums)
        return DAMAGE_NONE;
    struct checksum_counts *counts = &flow->checksums[number];
    if (packet->checksum == CHECKSUM_OFFLOADED || may_be_merged(flow, number, packet)) {
        counts->offloaded++;
        return DAMAGE_NONE;
    }
    counts->wrong++;
    counts->wrong_data += packet->payload_bytes > 0;
    counts->wrong_bytes += packet->payload_bytes;
    return !counts->delivered && is_damage(&flow->directions[number], counts) ? DAMAGE_CERTAIN
                                                                              : DAMAGE_POSSIBLE;
}

void take_delivered(struct flow *flow, unsigned number, uint32_t count) {
    if (flow->checksums)
        flow->checksums[number].delivered += count;
}

int64_t damaged_packets(const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    const struct checksum_counts *counts = checksum_counts_of(flow, number);
    int64_t damaged = (int64_t)counts->wrong - counts->delivered, proven = 0;
    if (flow->key.protocol == IP_TCP)
        proven = (int64_t)recovery_of(&flow->tcp.streams[number])->checksum_retransmissions;
    bool delivered = damaged && 2 * (uint64_t)counts->delivered > counts->wrong_data;
    if (!direction->right_checksums || delivered)
        return -1;
    if (!damaged || is_damage(direction, counts))
        return damaged;
    return proven ? proven : -1;
}
