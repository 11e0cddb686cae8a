/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 (RFC 791) and IPv6 (RFC 8200) headers, IPv6 extension headers, and the authentication header
 * of both (RFC 4302).
 *
 *   IPv4 (RFC 791 section 3.1)                     IPv6 (RFC 8200 section 3)
 *   OFFSET SIZE                                    OFFSET SIZE
 *   0      1    version, header length in words    0      4    version, traffic class, flow label
 *   1      1    DSCP and ECN                       4      2    payload length
 *   2      2    total length                       6      1    next header
 *   4      2    identification                     7      1    hop limit
 *   6      2    flags, fragment offset / 8         8      16   source
 *   8      1    TTL                                24     16   destination
 *   9      1    protocol
 *   10     2    header checksum, not verified
 *   12     8    source, destination
 *
 * The length in the header must end the packet, because Ethernet pads short frames. If it is over
 * the record's length on the wire, the record was cut (decoding_fits()); if it is over that of the
 * packet around it, the packet is malformed. A fragment with an offset has no transport header. */
#include "decode/step.h"

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

/* Both versions have their length in the first 6 bytes. */
bool ip_fills(const struct decoding *d, uint32_t offset, uint32_t padding) {
    if ((uint64_t)offset + 6 > d->captured)
        return false;
    const uint8_t *ip = d->data + offset;
    uint32_t room = d->end - offset, length = load_be16(ip + 2);
    if (*ip >> 4 == 6)
        length = IPV6_HEADER + load_be16(ip + 4);
    else if (*ip >> 4 != 4 || (*ip & 15) * 4u < IPV4_HEADER)
        return false;
    return length <= room && room - length <= padding;
}

/* Sets the fields that do not depend on the IP version. Transport decoders add to them. */
static inline void fill_network(struct decoding *d, uint32_t offset, uint32_t header_length) {
    struct headers *headers = d->headers;
    headers->ip_length = d->end - offset;
    headers->ip_header_length = header_length;
    headers->outer_length = offset;
    HEADERS_CLEAR(headers, source_port, link_hash);
    headers->layer = LAYER_NETWORK;
}

/* Clears the fields of fragmentation; a fragment sets them afterwards. */
static inline void fill_unfragmented(struct headers *headers) {
    HEADERS_CLEAR(headers, fragment, identification);
}

/* No fragment may end past the largest datagram: 65,535 bytes with IPv4's header (RFC 791
 * section 3.2), without IPv6's and the fragment header (RFC 8200 section 4.5). All but the last
 * must hold a multiple of 8 bytes. */
static bool fragment_is_valid(const struct headers *headers) {
    uint32_t uncounted = headers->ip_version == 4 ? 0 : IPV6_HEADER + FRAGMENT_HEADER;
    if (headers->more_fragments && headers->fragment_length % 8)
        return false;
    return headers->fragment_offset + headers->ip_length <= DATAGRAM_MAX + uncounted;
}

/* Returns the length in a jumbo payload option (RFC 2675: type c2, 32 bits), 0 without one. */
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

/* Narrows the packet to the length of its jumbo payload option. Returns false if that is missing,
 * under the headers read so far, or over the frame. */
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

/* RFC 8200 section 4.5: offset in the upper 13 bits, M in the last. A fragment header without
 * either is atomic (RFC 6946): the packet is whole. */
static void fill_fragment(struct headers *headers, const uint8_t *extension) {
    uint16_t word = load_be16(extension + 2);
    headers->fragment_offset = word & 0xfff8;
    headers->more_fragments = word & 1;
    headers->fragment = headers->fragment_offset || headers->more_fragments;
    headers->atomic_fragment = !headers->fragment;
    headers->identification = load_be32(extension + 4);
}

/* Reads an extension header of `length` bytes, all at hand. */
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

/* Reads extension headers up to a transport protocol, or to the payload of a fragment with an
 * offset. If one cannot be read, `protocol` and the header's length stop before it. */
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

/* d->offset is that of the payload. */
static NOINLINE enum next_header fragment_payload(struct decoding *d) {
    decoding_payload(d, d->offset);
    if (!fragment_is_valid(d->headers))
        return stop(d, REASON_IP_FRAGMENT);
    return d->headers->fragment_offset == 0 ? NEXT_TRANSPORT : NEXT_END;
}

static inline enum next_header ip_payload(struct decoding *d) {
    return LIKELY(!d->headers->fragment) ? NEXT_TRANSPORT : fragment_payload(d);
}

/* d->offset is that of the IP header. */
static NOINLINE enum next_header decode_extensions(struct decoding *d) {
    struct headers *headers = d->headers;
    headers->reason = walk_extensions(d, d->offset + headers->ip_header_length);
    d->offset += headers->ip_header_length;
    decoding_payload(d, d->offset);
    if (headers->reason == REASON_IP_LENGTH)
        headers->layer = LAYER_LINK;
    return headers->reason == REASON_NONE ? ip_payload(d) : NEXT_END;
}

static NOINLINE void fill_ipv4_fragment(struct headers *headers, uint16_t word, uint32_t length) {
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
    if (!LIKELY(!(load_be16(ip + 6) & 0x3fff)))
        fill_ipv4_fragment(headers, load_be16(ip + 6), length);
}

/* A sender that leaves segmentation to the adapter writes a length of 0 if 16 bits cannot hold
 * it. */
static inline bool length_is_left_out(uint32_t length, uint8_t protocol) {
    return length == 0 && (protocol == IP_TCP || protocol == IP_UDP);
}

bool checksum_is_right(const uint8_t *ip, uint32_t header_length) {
    uint32_t sum = 0;
    for (uint32_t at = 0; at < header_length; at += 2)
        sum += load_be16(ip + at);
    return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/* A mirror port may cut the packet before it wraps it into a tunnel, whose lengths then are those
 * of the rest. That is believed only if the checksum confirms the header. */
static bool is_cut_in_tunnel(struct decoding *d, uint32_t header_length, uint32_t length) {
    if (header_length > d->captured - d->offset ||
        !checksum_is_right(d->data + d->offset, header_length))
        return false;
    d->is_narrowed = false;
    return decoding_fits(d, length);
}

static enum decode_reason check_ipv4(struct decoding *d, const uint8_t *ip, uint32_t length) {
    uint32_t header_length = (ip[0] & 15) * 4u;
    if (ip[0] >> 4 != 4)
        return REASON_IP_VERSION;
    if (header_length < IPV4_HEADER)
        return REASON_IP_HEADER_LENGTH;
    if (length < header_length ||
        (!decoding_fits(d, length) && !is_cut_in_tunnel(d, header_length, length)))
        return header_length > d->end - d->offset ? REASON_IP_HEADER_LENGTH : REASON_IP_LENGTH;
    return REASON_NONE;
}

/* The header is a good one of `header_length` bytes, the first 20 are at hand. */
static ALWAYS_INLINE enum next_header read_ipv4(struct decoding *d, uint32_t header_length,
                                                uint32_t length, bool left_out) {
    struct headers *headers = d->headers;
    const uint8_t *ip = d->data + d->offset;
    decoding_narrow(d, d->offset + length);
    fill_network(d, d->offset, header_length);
    fill_ipv4(headers, ip, length - header_length);
    if (left_out)
        headers->length_from_frame = true;
    if (header_length > IPV4_HEADER &&
        !decoding_has(d, d->offset, header_length, REASON_IP_CUT, REASON_IP_SHORT)) {
        decoding_payload(d, d->offset + header_length);
        return NEXT_END;
    }
    if (headers->protocol == IP_AH)
        return decode_extensions(d);
    d->offset += header_length;
    return ip_payload(d);
}

/* With options, without a length, or malformed. */
static NOINLINE enum next_header decode_other_ipv4(struct decoding *d) {
    const uint8_t *ip = d->data + d->offset;
    uint32_t length = load_be16(ip + 2);
    bool left_out = length_is_left_out(length, ip[9]);
    length = left_out ? d->end - d->offset : length;
    enum decode_reason reason = check_ipv4(d, ip, length);
    return reason ? stop(d, reason) : read_ipv4(d, (ip[0] & 15) * 4u, length, left_out);
}

enum next_header decode_ipv4(struct decoding *d) {
    if (!decoding_has(d, d->offset, IPV4_HEADER, REASON_IP_CUT, REASON_IP_SHORT))
        return NEXT_END;
    const uint8_t *ip = d->data + d->offset;
    uint32_t length = load_be16(ip + 2), payload = length - IPV4_HEADER;
    if (LIKELY(ip[0] == IPV4_PLAIN && payload <= d->end - d->offset - IPV4_HEADER))
        return read_ipv4(d, IPV4_HEADER, length, false);
    return decode_other_ipv4(d);
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

enum next_header decode_ipv6(struct decoding *d, const uint8_t *ip) {
    struct headers *headers = d->headers;
    uint32_t length = load_be16(ip + 4);
    if (ip[0] >> 4 != 6)
        return stop(d, REASON_IP_VERSION);
    fill_unfragmented(headers);
    headers->length_from_frame =
        length_is_left_out(length, ip[6]) || (length == 0 && ip[6] == IP_HOP_BY_HOP);
    length = headers->length_from_frame ? d->end - d->offset : IPV6_HEADER + length;
    if (!decoding_fits(d, length))
        return stop(d, REASON_IP_LENGTH);
    decoding_narrow(d, d->offset + length);
    fill_ipv6(headers, ip);
    fill_network(d, d->offset, IPV6_HEADER);
    if (!LIKELY(!extension_is_known(headers->protocol)))
        return decode_extensions(d);
    d->offset += IPV6_HEADER;
    return ip_payload(d);
}

enum next_header decode_ip(struct decoding *d, const uint8_t *ip) {
    switch (*ip >> 4) {
    case 4: return NEXT_IPV4;
    case 6: return NEXT_IPV6;
    default: return stop(d, REASON_IP_VERSION);
    }
}
