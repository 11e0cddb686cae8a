/* SPDX-License-Identifier: Apache-2.0 */
/* Link headers but 802.11's: Ethernet, Linux cooked, raw IP, loopback, PPP, Cisco HDLC. */
#include "decode/link.h"

#define LINKTYPE_ETHERNET 1
#define ETHER_TYPE_MIN    0x0600 /* IEEE 802.3: below it the field is a length */
#define ETHER_IPV4        0x0800
#define ETHER_IPV6        0x86dd

struct ether_protocol {
    uint16_t type;
    layer_decoder *decode;
};

static const struct ether_protocol ether_protocols[] = {
    {ETHER_IPV4, decode_ipv4}, {ETHER_IPV6, decode_ipv6}, {0x8100, decode_vlan},
    {0x88a8, decode_vlan},     {0x9100, decode_vlan},     {0x9200, decode_vlan},
    {0x8847, decode_mpls},     {0x8848, decode_mpls},     {0x8864, decode_pppoe},
};
#define ETHER_PROTOCOLS (sizeof ether_protocols / sizeof *ether_protocols)

static layer_decoder *ether_protocol_find(uint16_t type) {
    for (size_t i = 0; i < ETHER_PROTOCOLS; i++)
        if (ether_protocols[i].type == type)
            return ether_protocols[i].decode;
    return NULL;
}

bool ether_type_is_known(uint16_t type) {
    return ether_protocol_find(type) != NULL;
}

/* IEEE 802.2: SNAP with an EtherType (RFC 1042; 0000f8 is 802.1H), or IP itself (RFC 948). */
void decode_llc(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 3, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    const uint8_t *llc = d->data + offset;
    if (llc[0] == 0x06 && llc[1] == 0x06 && llc[2] == 0x03) {
        decode_ipv4(d, offset + 3);
        return;
    }
    if (llc[0] != 0xaa || llc[1] != 0xaa || llc[2] != 0x03) {
        d->headers->reason = REASON_NOT_IP;
        return;
    }
    if (!decoding_has(d, offset, 8, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    uint32_t organization = load_be32(llc + 2) & 0xffffff;
    uint16_t type = load_be16(llc + 6);
    if ((organization != 0 && organization != 0x0000f8) || type < ETHER_TYPE_MIN)
        d->headers->reason = REASON_NOT_IP;
    else
        decode_ether_type(d, offset + 8, type);
}

/* The two bytes before offset held a length. */
static void decode_ieee_802_3(struct decoding *d, uint32_t offset, uint16_t length) {
    if (length > d->end - offset) {
        d->headers->reason = REASON_LINK_BAD;
        return;
    }
    decoding_narrow(d, offset + length);
    decode_llc(d, offset);
}

/* Any but IPv4. */
static __attribute__((noinline)) void decode_other_type(struct decoding *d, uint32_t offset,
                                                        uint16_t type) {
    if (type < ETHER_TYPE_MIN) {
        decode_ieee_802_3(d, offset, type);
        return;
    }
    layer_decoder *decode = ether_protocol_find(type);
    if (decode)
        decode(d, offset);
    else
        d->headers->reason = REASON_NOT_IP;
}

void decode_ether_type(struct decoding *d, uint32_t offset, uint16_t type) {
    if (LIKELY(type == ETHER_IPV4))
        decode_ipv4(d, offset);
    else
        decode_other_type(d, offset, type);
}

/* The header is at hand. */
static inline void read_ethernet(struct decoding *d, uint32_t offset) {
    d->headers->layer = LAYER_LINK;
    decode_ether_type(d, offset + ETHERNET_HEADER, load_be16(d->data + offset + 12));
}

void decode_ethernet(struct decoding *d, uint32_t offset) {
    if (decoding_has(d, offset, ETHERNET_HEADER, REASON_LINK_CUT, REASON_LINK_SHORT))
        read_ethernet(d, offset);
}

static inline void decode_ethernet_link(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, ETHERNET_HEADER, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    d->headers->link_hash = link_hash(d->data + offset);
    read_ethernet(d, offset);
}

/* Cooked headers name what has no EtherType by numbers below 0x0600; 4 is an 802.2 header. */
static void decode_cooked_protocol(struct decoding *d, uint32_t offset, uint16_t protocol) {
    d->headers->layer = LAYER_LINK;
    if (protocol == 4)
        decode_llc(d, offset);
    else if (protocol < ETHER_TYPE_MIN)
        d->headers->reason = REASON_NOT_IP;
    else
        decode_ether_type(d, offset, protocol);
}

/* An 8-byte address field, and what tells the interface: of a packet that is passed on within a
 * host each has the same address. */
static uint32_t cooked_hash(const uint8_t *address, uint32_t interface) {
    uint8_t bytes[12] = {0};
    memcpy(bytes, address, 8);
    memcpy(bytes + 8, &interface, 4);
    return link_hash(bytes);
}

static void decode_cooked_v1(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 16, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    const uint8_t *header = d->data + offset; /* it tells whether the packet came in or went out */
    d->headers->link_hash = cooked_hash(header + 6, load_be16(header));
    decode_cooked_protocol(d, offset + 16, load_be16(header + 14));
}

static void decode_cooked_v2(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 20, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    const uint8_t *header = d->data + offset;
    d->headers->link_hash = cooked_hash(header + 12, load_be32(header + 4));
    decode_cooked_protocol(d, offset + 20, load_be16(header));
}

static void decode_raw(struct decoding *d, uint32_t offset) {
    d->headers->layer = LAYER_LINK;
    decode_ip(d, offset);
}

static void decode_raw_ipv4(struct decoding *d, uint32_t offset) {
    d->headers->layer = LAYER_LINK;
    decode_ipv4(d, offset);
}

static void decode_raw_ipv6(struct decoding *d, uint32_t offset) {
    d->headers->layer = LAYER_LINK;
    decode_ipv6(d, offset);
}

/* The capturing machine's address family in its own byte order. AF_INET is 2 everywhere; AF_INET6
 * is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS. */
static void decode_loopback(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 4, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    uint32_t family = load_le32(d->data + offset);
    if (family > 0xffff)
        family = __builtin_bswap32(family);
    d->headers->layer = LAYER_LINK;
    switch (family) {
    case 2: decode_ipv4(d, offset + 4); return;
    case 10:
    case 23:
    case 24:
    case 28:
    case 30: decode_ipv6(d, offset + 4); return;
    default: d->headers->reason = REASON_NOT_IP;
    }
}

static void decode_cisco_hdlc(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 4, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    decode_cooked_protocol(d, offset + 4, load_be16(d->data + offset + 2));
}

static void decode_ppp_protocol(struct decoding *d, uint32_t offset, uint16_t protocol) {
    d->headers->layer = LAYER_LINK;
    switch (protocol) {
    case 0x0021: decode_ipv4(d, offset); return;
    case 0x0057: decode_ipv6(d, offset); return;
    case 0x0281:
    case 0x0283: decode_mpls(d, offset); return;
    default: d->headers->reason = REASON_PPP_COMPRESSED;
    }
}

/* RFC 1661, 1662: address and control (ff 03) may be left out, and so may the protocol's first byte
 * when it is 0: the last byte of a protocol is odd, the first one even. */
void decode_ppp(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 2, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    if (d->data[offset] == 0xff && d->data[offset + 1] == 0x03)
        offset += 2;
    if (!decoding_has(d, offset, 1, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    if (d->data[offset] & 1) {
        decode_ppp_protocol(d, offset + 1, d->data[offset]);
        return;
    }
    if (!decoding_has(d, offset, 2, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    decode_ppp_protocol(d, offset + 2, load_be16(d->data + offset));
}

/* Serial lines: the address 0f or 8f is Cisco's framing, anything else is PPP. */
static void decode_serial(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 1, REASON_LINK_CUT, REASON_LINK_SHORT))
        return;
    if (d->data[offset] == 0x0f || d->data[offset] == 0x8f)
        decode_cisco_hdlc(d, offset);
    else
        decode_ppp(d, offset);
}

struct link_protocol {
    uint16_t link_type;
    layer_decoder *decode;
};

static const struct link_protocol link_protocols[] = {
    {113, decode_cooked_v1},
    {276, decode_cooked_v2},
    {101, decode_raw},
    {12, decode_raw},
    {14, decode_raw},
    {228, decode_raw_ipv4},
    {229, decode_raw_ipv6},
    {0, decode_loopback},
    {108, decode_loopback},
    {9, decode_serial},
    {50, decode_serial},
    {104, decode_cisco_hdlc},
    {LINKTYPE_WLAN, decode_wlan},
    {LINKTYPE_RADIOTAP, decode_radiotap},
    {LINKTYPE_PPI, decode_ppi},
    {LINKTYPE_PRISM, decode_prism},
    {LINKTYPE_AVS, decode_prism},
};
#define LINK_PROTOCOLS (sizeof link_protocols / sizeof *link_protocols)

static __attribute__((noinline)) void decode_other_link(struct decoding *d, uint16_t link_type) {
    for (size_t i = 0; i < LINK_PROTOCOLS; i++) {
        if (link_protocols[i].link_type == link_type) {
            link_protocols[i].decode(d, 0);
            return;
        }
    }
    d->headers->reason = REASON_LINK_TYPE;
}

void decode_link(struct decoding *d, uint16_t link_type) {
    if (LIKELY(link_type == LINKTYPE_ETHERNET))
        decode_ethernet_link(d, 0);
    else
        decode_other_link(d, link_type);
}
