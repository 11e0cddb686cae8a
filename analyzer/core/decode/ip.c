/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 and IPv6 headers, with IPv6 extension headers and the authentication header of both. */
#include "decode/decode.h"

#define DATAGRAM_MAX    65535
#define FRAGMENT_HEADER 8
#define IPV4_PLAIN      0x45 /* version 4, a header of 5 words: without options */

/* Bytes in one unit of an extension header's length field, and those it does not count. */
static const struct {
    uint8_t unit, uncounted;
} extension_sizes[256] = {
    [IP_HOP_BY_HOP] = {8, 8}, [IP_ROUTING] = {8, 8}, [IP_DESTINATION] = {8, 8},
    [IP_FRAGMENT] = {0, 8}, /* RFC 8200, 4.5: that byte is reserved */
    [IP_AH] = {4, 8},       /* RFC 4302, 2.2: in words of 4 bytes, minus 2 */
    [IP_MOBILITY] = {8, 8},   [IP_HIP] = {8, 8},     [IP_SHIM6] = {8, 8},
};

bool extension_is_known(uint8_t protocol) {
    return extension_sizes[protocol].uncounted;
}

uint32_t extension_length(uint8_t protocol, const uint8_t *extension) {
    return extension_sizes[protocol].uncounted + extension[1] * extension_sizes[protocol].unit;
}

/* What does not depend on the version of IP, but for the payload; the transport decoders add to it.
 */
static inline void fill_network(struct decoding *d, uint32_t offset, uint32_t header_length) {
    struct headers *headers = d->headers;
    headers->ip_length = d->end - offset;
    headers->ip_header_length = header_length;
    headers->outer_length = offset;
    HEADERS_CLEAR(headers, source_port, link_hash);
    headers->layer = LAYER_NETWORK;
}

/* Neither a fragment nor forbidden to become some, and with a length of its own: until it shows. */
static inline void fill_unfragmented(struct headers *headers) {
    HEADERS_CLEAR(headers, fragment, identification);
}

/* No fragment may end past the largest datagram: 65,535 bytes with IPv4's header (RFC 791, 3.2),
 * without IPv6's and the fragment header (RFC 8200, 4.5). All but the last hold a multiple of 8
 * bytes. */
static bool fragment_is_valid(const struct headers *headers) {
    uint32_t uncounted = headers->ip_version == 4 ? 0 : IPV6_HEADER + FRAGMENT_HEADER;
    if (headers->more_fragments && headers->fragment_length % 8)
        return false;
    return headers->fragment_offset + headers->ip_length <= DATAGRAM_MAX + uncounted;
}

/* RFC 2675: a hop-by-hop option of type c2 with a length of 32 bits; 0 without one. */
static uint32_t find_jumbo_length(const uint8_t *extension, uint32_t length) {
    uint32_t at = 2;
    while (at + 2 <= length) {
        if (extension[at] == 0) { /* Pad1 */
            at++;
            continue;
        }
        if (extension[at] == 0xc2 && extension[at + 1] == 4 && at + 6 <= length)
            return load_be32(extension + at + 2);
        at += 2u + extension[at + 1];
    }
    return 0;
}

static bool apply_jumbo(struct decoding *d, const uint8_t *extension, uint32_t length) {
    uint32_t offset = d->headers->outer_length;
    uint64_t total = IPV6_HEADER + (uint64_t)find_jumbo_length(extension, length);
    uint64_t least = (uint64_t)(extension - d->data) - offset + length;
    if (total < least || total > d->end - offset)
        return false;
    decoding_narrow(d, offset + (uint32_t)total);
    d->headers->ip_length = (uint32_t)total;
    return true;
}

static void fill_fragment(struct headers *headers, const uint8_t *extension) {
    uint16_t word = load_be16(extension + 2);
    headers->fragment_offset = word & 0xfff8;
    headers->more_fragments = word & 1;
    headers->fragment = headers->fragment_offset || headers->more_fragments;
    headers->atomic_fragment = !headers->fragment;
    headers->identification = load_be32(extension + 4);
}

/* One extension header of `length` bytes, all at hand. */
static enum decode_reason read_extension(struct decoding *d, uint32_t offset, uint32_t length) {
    struct headers *headers = d->headers;
    const uint8_t *extension = d->data + offset;
    if (headers->protocol == IP_HOP_BY_HOP && headers->length_from_frame &&
        !apply_jumbo(d, extension, length))
        return REASON_IP_LENGTH;
    if (headers->protocol == IP_FRAGMENT) {
        if (headers->fragment || headers->atomic_fragment)
            return REASON_IP_EXTENSION;
        fill_fragment(headers, extension);
        headers->fragment_length = headers->fragment ? d->end - offset - length : 0;
    }
    headers->protocol = extension[0];
    headers->ip_header_length += length;
    return REASON_NONE;
}

/* Until a transport protocol, or what a fragment with an offset carries. `protocol` and the
 * header's length end before an extension header that cannot be read. */
static enum decode_reason walk_extensions(struct decoding *d, uint32_t offset) {
    struct headers *headers = d->headers;
    for (int count = 0; extension_is_known(headers->protocol); count++) {
        if (headers->fragment_offset)
            break;
        if (count == EXTENSIONS_MAX)
            return REASON_IP_EXTENSION;
        if (!decoding_has(d, offset, 8, REASON_IP_CUT, REASON_IP_EXTENSION))
            return headers->reason;
        uint32_t length = extension_length(headers->protocol, d->data + offset);
        if (!decoding_has(d, offset, length, REASON_IP_CUT, REASON_IP_EXTENSION))
            return headers->reason;
        enum decode_reason reason = read_extension(d, offset, length);
        if (reason != REASON_NONE)
            return reason;
        offset += length;
    }
    return REASON_NONE;
}

static __attribute__((noinline)) void decode_fragment(struct decoding *d, uint32_t offset) {
    struct headers *headers = d->headers;
    decoding_payload(d, offset);
    if (!fragment_is_valid(headers))
        headers->reason = REASON_IP_FRAGMENT;
    else if (headers->fragment_offset == 0)
        decode_transport(d, offset);
}

static inline void decode_ip_payload(struct decoding *d, uint32_t offset) {
    if (LIKELY(!d->headers->fragment))
        decode_transport(d, offset);
    else
        decode_fragment(d, offset);
}

static __attribute__((noinline)) void decode_extended_payload(struct decoding *d, uint32_t offset) {
    struct headers *headers = d->headers;
    headers->reason = walk_extensions(d, offset + headers->ip_header_length);
    uint32_t payload = offset + headers->ip_header_length;
    decoding_payload(d, payload);
    if (headers->reason == REASON_IP_LENGTH)
        headers->layer = LAYER_LINK;
    if (headers->reason == REASON_NONE)
        decode_ip_payload(d, payload);
}

static __attribute__((noinline)) void fill_ipv4_fragment(struct headers *headers, uint16_t word,
                                                         uint32_t length) {
    headers->fragment = true;
    headers->more_fragments = word & 0x2000;
    headers->fragment_offset = (word & 0x1fff) * 8u;
    headers->fragment_length = length;
}

static inline void fill_ipv4_address(uint8_t *address, const uint8_t *wire) {
    uint64_t words[] = {load_le32(wire), 0};
    memcpy(address, words, sizeof words);
}

/* `length` without the header. */
static inline void fill_ipv4(struct headers *headers, const uint8_t *ip, uint32_t length) {
    headers->identification = load_be16(ip + 4);
    fill_ipv4_address(headers->source, ip + 12);
    fill_ipv4_address(headers->destination, ip + 16);
    fill_unfragmented(headers);
    headers->ip_version = 4;
    headers->traffic_class = ip[1];
    headers->ttl = ip[8];
    headers->protocol = ip[9];
    headers->dont_fragment = ip[6] >> 6 & 1;
    if (!LIKELY(!(load_be16(ip + 6) & 0x3fff)))
        fill_ipv4_fragment(headers, load_be16(ip + 6), length);
}

/* Senders that leave segmentation to the card write a length of 0 when 16 bits cannot hold it. */
static inline bool length_is_left_out(uint32_t length, uint8_t protocol) {
    return length == 0 && (protocol == IP_TCP || protocol == IP_UDP);
}

static enum decode_reason check_ipv4(const uint8_t *ip, uint32_t length, uint32_t room) {
    uint32_t header_length = (ip[0] & 15) * 4u;
    if (ip[0] >> 4 != 4)
        return REASON_IP_VERSION;
    if (header_length < IPV4_HEADER || header_length > room)
        return REASON_IP_HEADER_LENGTH;
    if (length < header_length || length > room)
        return REASON_IP_LENGTH;
    return REASON_NONE;
}

/* The header is a good one of `header_length` bytes, the first 20 are at hand. */
static inline __attribute__((always_inline)) void read_ipv4(struct decoding *d, uint32_t offset,
                                                            uint32_t header_length, uint32_t length,
                                                            bool left_out) {
    struct headers *headers = d->headers;
    const uint8_t *ip = d->data + offset;
    decoding_narrow(d, offset + length);
    fill_network(d, offset, header_length);
    fill_ipv4(headers, ip, length - header_length);
    if (left_out)
        headers->length_from_frame = true;
    if (header_length > IPV4_HEADER &&
        !decoding_has(d, offset, header_length, REASON_IP_CUT, REASON_IP_SHORT))
        decoding_payload(d, offset + header_length);
    else if (headers->protocol == IP_AH)
        decode_extended_payload(d, offset);
    else
        decode_ip_payload(d, offset + header_length);
}

/* With options, without a length, or malformed. */
static __attribute__((noinline)) void decode_other_ipv4(struct decoding *d, uint32_t offset) {
    struct headers *headers = d->headers;
    const uint8_t *ip = d->data + offset;
    uint32_t told = load_be16(ip + 2), room = d->end - offset;
    bool left_out = length_is_left_out(told, ip[9]);
    uint32_t length = left_out ? room : told;
    enum decode_reason reason = check_ipv4(ip, length, room);
    if (reason != REASON_NONE)
        headers->reason = reason;
    else
        read_ipv4(d, offset, (ip[0] & 15) * 4u, length, left_out);
}

void decode_ipv4(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, IPV4_HEADER, REASON_IP_CUT, REASON_IP_SHORT))
        return;
    const uint8_t *ip = d->data + offset;
    uint32_t length = load_be16(ip + 2), payload = length - IPV4_HEADER;
    if (LIKELY(ip[0] == IPV4_PLAIN && payload <= d->end - offset - IPV4_HEADER))
        read_ipv4(d, offset, IPV4_HEADER, length, false);
    else
        decode_other_ipv4(d, offset);
}

static void fill_ipv6(struct headers *headers, const uint8_t *ip) {
    headers->ip_version = 6;
    headers->protocol = ip[6];
    headers->ttl = ip[7];
    headers->traffic_class = (uint8_t)(load_be16(ip) >> 4);
    headers->identification = 0;
    memcpy(headers->source, ip + 8, 16);
    memcpy(headers->destination, ip + 24, 16);
}

void decode_ipv6(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, IPV6_HEADER, REASON_IP_CUT, REASON_IP_SHORT))
        return;
    struct headers *headers = d->headers;
    const uint8_t *ip = d->data + offset;
    uint32_t length = load_be16(ip + 4);
    if (ip[0] >> 4 != 6) {
        headers->reason = REASON_IP_VERSION;
        return;
    }
    fill_unfragmented(headers);
    headers->length_from_frame =
        length_is_left_out(length, ip[6]) || (length == 0 && ip[6] == IP_HOP_BY_HOP);
    length = headers->length_from_frame ? d->end - offset : IPV6_HEADER + length;
    if (length > d->end - offset) {
        headers->reason = REASON_IP_LENGTH;
        return;
    }
    decoding_narrow(d, offset + length);
    fill_ipv6(headers, ip);
    fill_network(d, offset, IPV6_HEADER);
    if (LIKELY(!extension_is_known(headers->protocol)))
        decode_ip_payload(d, offset + IPV6_HEADER);
    else
        decode_extended_payload(d, offset);
}

void decode_ip(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 1, REASON_IP_CUT, REASON_IP_SHORT))
        return;
    switch (d->data[offset] >> 4) {
    case 4: decode_ipv4(d, offset); return;
    case 6: decode_ipv6(d, offset); return;
    default: d->headers->reason = REASON_IP_VERSION;
    }
}
