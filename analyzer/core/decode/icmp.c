/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP (RFC 792) and ICMPv6 (RFC 4443).
 *
 * An error quotes the packet that caused it: its IP header and at least 8 bytes after it (RFC 792),
 * more if the message stays within 576 bytes (RFC 1812 section 4.3.2.3) or 1,280 (RFC 4443 section
 * 2.4). The quotation is how an error finds its flow. It can be cut by the router or by the snap
 * length, so each field must be read only if it is at hand. Bytes 4 to 7 of the header depend on
 * the type: identifier and sequence number of an echo, MTU, pointer, or unused. */
#include "decode/step.h"

#define ICMP_HEADER 8

enum icmp_role { ICMP_OTHER, ICMP_ECHO, ICMP_ERROR };

static const uint8_t icmpv4_roles[256] = {
    [0] = ICMP_ECHO,  [8] = ICMP_ECHO,   [3] = ICMP_ERROR,  [4] = ICMP_ERROR,
    [5] = ICMP_ERROR, [11] = ICMP_ERROR, [12] = ICMP_ERROR, /* RFC 792 */
};

static const uint8_t icmpv6_roles[256] = {
    [128] = ICMP_ECHO, [129] = ICMP_ECHO, [1] = ICMP_ERROR,
    [2] = ICMP_ERROR,  [3] = ICMP_ERROR,  [4] = ICMP_ERROR, /* RFC 4443 */
};

struct quotation {
    const uint8_t *bytes;
    uint32_t length; /* bytes at hand */
};

/* Routers quote the 8 bytes of an echo request whole. */
static void quote_echo(struct icmp_header *icmp, struct quotation quoted, uint32_t offset) {
    if (offset + ICMP_HEADER > quoted.length)
        return;
    const uint8_t *echo = quoted.bytes + offset;
    icmp->quotes_echo =
        echo[0] == (icmp->quoted_protocol == IP_ICMP ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST);
    icmp->quoted_identifier = load_be16(echo + 4);
    icmp->quoted_echo_sequence = load_be16(echo + 6);
}

/* RFC 792 guarantees 8 bytes of the quoted transport header: ports and TCP's sequence number. */
static void quote_transport(struct icmp_header *icmp, struct quotation quoted, uint32_t offset) {
    if (is_icmp(icmp->quoted_protocol))
        quote_echo(icmp, quoted, offset);
    if (!protocol_has_ports(icmp->quoted_protocol) || offset + 4 > quoted.length)
        return;
    icmp->quoted_source_port = load_be16(quoted.bytes + offset);
    icmp->quoted_destination_port = load_be16(quoted.bytes + offset + 2);
    icmp->quotes_sequence = icmp->quoted_protocol == IP_TCP && offset + 8 <= quoted.length;
    if (icmp->quotes_sequence)
        icmp->quoted_sequence = load_be32(quoted.bytes + offset + 4);
}

/* A total length is not checked, because routers quote a part of the packet, and some change its
 * fields. Only a first fragment has ports. */
static void quote_ipv4(struct icmp_header *icmp, struct quotation quoted) {
    uint32_t header_length = (quoted.bytes[0] & 15) * 4u;
    if (quoted.length < IPV4_HEADER || header_length < IPV4_HEADER)
        return;
    icmp->quotes = true;
    icmp->quoted_protocol = quoted.bytes[9];
    memcpy(icmp->quoted_source, quoted.bytes + 12, 4);
    memcpy(icmp->quoted_destination, quoted.bytes + 16, 4);
    if ((load_be16(quoted.bytes + 6) & 0x1fff) == 0)
        quote_transport(icmp, quoted, header_length);
}

/* Skips extension headers. Returns false if the quotation has no transport header. */
static bool quote_extensions(struct icmp_header *icmp, struct quotation quoted, uint32_t *offset) {
    for (int count = 0; extension_is_known(icmp->quoted_protocol); count++) {
        if (count == EXTENSIONS_MAX || *offset + 8 > quoted.length)
            return false;
        const uint8_t *extension = quoted.bytes + *offset;
        bool fragment = icmp->quoted_protocol == IP_FRAGMENT;
        *offset += extension_length(icmp->quoted_protocol, extension);
        icmp->quoted_protocol = extension[0];
        if (fragment && load_be16(extension + 2) & 0xfff8)
            return false;
    }
    return true;
}

static void quote_ipv6(struct icmp_header *icmp, struct quotation quoted) {
    uint32_t offset = IPV6_HEADER;
    if (quoted.length < IPV6_HEADER)
        return;
    icmp->quotes = true;
    icmp->quoted_protocol = quoted.bytes[6];
    memcpy(icmp->quoted_source, quoted.bytes + 8, 16);
    memcpy(icmp->quoted_destination, quoted.bytes + 24, 16);
    if (quote_extensions(icmp, quoted, &offset))
        quote_transport(icmp, quoted, offset);
}

/* An error must quote a packet of its own IP version; anything else is not a quotation. The first
 * nibble of an IP header is its version. */
static void quote_packet(struct headers *headers, struct quotation quoted) {
    if (quoted.length == 0 || quoted.bytes[0] >> 4 != headers->ip_version)
        return;
    if (headers->ip_version == 4)
        quote_ipv4(&headers->icmp, quoted);
    else
        quote_ipv6(&headers->icmp, quoted);
}

/* RFC 1191: "fragmentation needed" has the MTU in the last two bytes of its header; RFC 4443
 * section 3.2: "packet too big" in the last four. */
static uint32_t icmp_mtu(const struct headers *headers, const uint8_t *icmp) {
    if (headers->protocol == IP_ICMP && icmp[0] == 3 && icmp[1] == 4)
        return load_be16(icmp + 6);
    return headers->protocol == IP_ICMPV6 && icmp[0] == 2 ? load_be32(icmp + 4) : 0;
}

enum next_header decode_icmp(struct decoding *d, const uint8_t *icmp) {
    struct headers *headers = d->headers;
    uint8_t role = (headers->protocol == IP_ICMP ? icmpv4_roles : icmpv6_roles)[icmp[0]];
    headers->layer = LAYER_TRANSPORT;
    headers->transport_header_length = ICMP_HEADER;
    headers->icmp = (struct icmp_header){
        .type = icmp[0],
        .code = icmp[1],
        .identifier = role == ICMP_ECHO ? load_be16(icmp + 4) : 0,
        .sequence = role == ICMP_ECHO ? load_be16(icmp + 6) : 0,
        .mtu = icmp_mtu(headers, icmp),
    };
    decoding_payload(d, d->offset + ICMP_HEADER);
    if (role == ICMP_ERROR)
        quote_packet(headers, (struct quotation){headers->payload, headers->payload_captured});
    return NEXT_END;
}
