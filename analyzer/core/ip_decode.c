/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 and IPv6 headers, with IPv6 extension headers and the authentication header of both. */
#include "decoding.h"

#define DATAGRAM_MAX    65535
#define FRAGMENT_HEADER 8

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

/* Everything of the IP packet that does not depend on its version; the transport decoders add to
 * it. */
static void fill_network(struct decoding *d, uint32_t offset, uint32_t header_length) {
    struct headers *headers = d->headers;
    headers->layer = LAYER_NETWORK;
    headers->ports_known = false;
    headers->checksum_valid = false;
    headers->ip_length = d->end - offset;
    headers->ip_header_length = header_length;
    headers->outer_length = offset;
    headers->source_port = 0;
    headers->destination_port = 0;
    headers->transport_header_length = 0;
    headers->transport_checksum = 0;
    headers->udp_length = 0;
    decoding_payload(d, offset + header_length);
}

static void fill_unfragmented(struct headers *headers) {
    headers->fragment = false;
    headers->atomic_fragment = false;
    headers->more_fragments = false;
    headers->fragment_offset = 0;
    headers->fragment_length = 0;
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

static void decode_ip_payload(struct decoding *d) {
    struct headers *headers = d->headers;
    if (headers->fragment && !fragment_is_valid(headers)) {
        headers->reason = REASON_IP_FRAGMENT;
        return;
    }
    if (headers->fragment_offset == 0)
        decode_transport(d, headers->outer_length + headers->ip_header_length);
}

static void decode_extended_payload(struct decoding *d, uint32_t offset) {
    struct headers *headers = d->headers;
    headers->reason = walk_extensions(d, offset + headers->ip_header_length);
    decoding_payload(d, offset + headers->ip_header_length);
    if (headers->reason == REASON_IP_LENGTH)
        headers->layer = LAYER_LINK;
    if (headers->reason == REASON_NONE)
        decode_ip_payload(d);
}

static void fill_ipv4_fragment(struct headers *headers, uint16_t word, uint32_t length) {
    fill_unfragmented(headers);
    headers->dont_fragment = word & 0x4000;
    if (LIKELY(!(word & 0x3fff)))
        return;
    headers->fragment = true;
    headers->more_fragments = word & 0x2000;
    headers->fragment_offset = (word & 0x1fff) * 8u;
    headers->fragment_length = length;
}

static void fill_ipv4_address(uint8_t *address, const uint8_t *wire) {
    memset(address, 0, 16);
    memcpy(address, wire, 4);
}

/* `length` without the header. */
static void fill_ipv4(struct headers *headers, const uint8_t *ip, uint32_t length) {
    headers->ip_version = 4;
    headers->protocol = ip[9];
    headers->ttl = ip[8];
    headers->traffic_class = ip[1];
    headers->identification = load_be16(ip + 4);
    fill_ipv4_fragment(headers, load_be16(ip + 6), length);
    fill_ipv4_address(headers->source, ip + 12);
    fill_ipv4_address(headers->destination, ip + 16);
}

/* Senders that leave segmentation to the card write a length of 0 when 16 bits cannot hold it. */
static bool length_is_left_out(uint32_t length, uint8_t protocol) {
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

void decode_ipv4(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, IPV4_HEADER, REASON_IP_CUT, REASON_IP_SHORT))
        return;
    struct headers *headers = d->headers;
    const uint8_t *ip = d->data + offset;
    uint32_t header_length = (ip[0] & 15) * 4u;
    uint32_t length = load_be16(ip + 2);
    headers->length_from_frame = length_is_left_out(length, ip[9]);
    if (headers->length_from_frame)
        length = d->end - offset;
    headers->reason = check_ipv4(ip, length, d->end - offset);
    if (headers->reason != REASON_NONE)
        return;
    decoding_narrow(d, offset + length);
    fill_ipv4(headers, ip, length - header_length);
    fill_network(d, offset, header_length);
    if (!decoding_has(d, offset, header_length, REASON_IP_CUT, REASON_IP_SHORT))
        return;
    if (headers->protocol == IP_AH)
        decode_extended_payload(d, offset);
    else
        decode_ip_payload(d);
}

static void fill_ipv6(struct headers *headers, const uint8_t *ip) {
    headers->ip_version = 6;
    headers->protocol = ip[6];
    headers->ttl = ip[7];
    headers->traffic_class = (uint8_t)(load_be16(ip) >> 4);
    headers->identification = 0;
    headers->dont_fragment = false;
    fill_unfragmented(headers);
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
