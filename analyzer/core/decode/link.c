/* SPDX-License-Identifier: Apache-2.0 */
/* Link headers other than 802.11: Ethernet, Linux cooked, raw IP, loopback, PPP and Cisco HDLC.
 * Numbers are those of tcpdump.org/linktypes.html.
 *
 *   Ethernet              Cooked v1 (113)              Cooked v2 (276)
 *   OFFSET SIZE           OFFSET SIZE                  OFFSET SIZE
 *   0      6    to        0      2    direction        0      2    protocol
 *   6      6    from      2      2    ARPHRD type      2      2    reserved
 *   12     2    type      4      2    address length   4      4    interface index
 *                         6      8    address          8      2    ARPHRD type
 *                         14     2    protocol         10     2    direction, address length
 *                                                      12     8    address
 *
 * All fields are in network byte order except the address family of loopback. link_hash covers the
 * addresses, so that copies of one packet from two mirror ports differ. link_types.c has the less
 * common networks. */
#include "decode/step.h"

#define ETHER_IPV4    0x0800
#define ETHER_ARP     0x0806
#define ETHER_CONTROL 0x8808 /* MAC control: IEEE 802.3 clause 31 */
#define ETHER_EAPOL   0x888e /* IEEE 802.1X */
#define LLC_BPDU      0x424203
#define CISCO_BPDU    0x010b

static const struct {
    uint16_t type;
    uint8_t next; /* enum next_header */
} ether_types[] = {
    {ETHER_IPV4, NEXT_IPV4},    {0x86dd, NEXT_IPV6},   {0x8100, NEXT_VLAN},
    {0x88a8, NEXT_VLAN},        {0x9100, NEXT_VLAN},   {0x9200, NEXT_VLAN},
    {0x8847, NEXT_MPLS},        {0x8848, NEXT_MPLS},   {0x8864, NEXT_PPPOE},
    {0x8909, NEXT_METADATA},    {0x8926, NEXT_VN_TAG}, {0x893f, NEXT_E_TAG},
    {0x8903, NEXT_FABRIC_PATH}, {0x88e7, NEXT_PBB},    {0x894f, NEXT_NSH},
    {0xd28b, NEXT_ARISTA},      {0x88e5, NEXT_MACSEC},
};

enum next_header ether_type_next(uint16_t type) {
    for (size_t i = 0; i < sizeof ether_types / sizeof *ether_types; i++)
        if (ether_types[i].type == type)
            return ether_types[i].next;
    return NEXT_END;
}

/* Any type but IPv4's. */
static NOINLINE enum next_header decode_other_type(struct decoding *d, uint16_t type) {
    if (type < ETHER_TYPE_MIN)
        return decode_802_3(d, type);
    if (type == ETHER_ARP)
        d->headers->arp_offset = d->offset;
    if (type == ETHER_CONTROL || type == ETHER_EAPOL) {
        d->headers->control_offset = d->offset;
        d->headers->control_is_login = type == ETHER_EAPOL;
    }
    enum next_header next = ether_type_next(type);
    return next ? next : stop_at(d, REASON_NOT_IP, UNDECODED_ETHER_TYPE, type);
}

enum next_header decode_ether_type(struct decoding *d, uint16_t type) {
    return LIKELY(type == ETHER_IPV4) ? NEXT_IPV4 : decode_other_type(d, type);
}

/* A BPDU of the spanning tree (IEEE 802.1D), or one of Cisco for each VLAN (PVST+). */
static void note_bridge(struct decoding *d) {
    d->headers->control_offset = d->offset;
    d->headers->control_is_bridge = true;
}

/* Organization and type: an EtherType (RFC 1042; 0000f8 is 802.1H), or Ethernet over ATM or frame
 * relay (0080c2, RFC 2684 and 2427), behind `padding` bytes. */
static enum next_header decode_snap(struct decoding *d, uint32_t padding) {
    const uint8_t *snap = d->data + d->offset;
    if (!link_has(d, 5))
        return NEXT_END;
    uint32_t organization = load_be32(snap) >> 8;
    uint16_t type = load_be16(snap + 3);
    d->offset += 5;
    if (organization == 0x0080c2 && (type == 1 || type == 7)) {
        if (!link_has(d, padding))
            return NEXT_END;
        d->offset += padding;
        return NEXT_ETHERNET;
    }
    if (organization == 0x00000c && type == CISCO_BPDU)
        note_bridge(d);
    if ((organization != 0 && organization != 0x0000f8) || type < ETHER_TYPE_MIN)
        return stop(d, REASON_NOT_IP);
    return decode_ether_type(d, type);
}

enum next_header decode_nlpid(struct decoding *d) {
    switch (d->data[d->offset++]) {
    case 0x80: return decode_snap(d, 0);
    case 0x8e: return NEXT_IPV6;
    case 0xcc: return NEXT_IPV4;
    case 0xcf: return NEXT_PPP;
    default: return stop(d, REASON_NOT_IP);
    }
}

/* IEEE 802.2: SNAP, a network protocol identifier (RFC 2684), or IP itself (RFC 948). */
enum next_header decode_llc(struct decoding *d, const uint8_t *llc) {
    uint32_t header = (uint32_t)load_be16(llc) << 8 | llc[2];
    if (header != 0x060603 && header != 0xfefe03 && header != 0xaaaa03 && header != LLC_BPDU)
        return stop(d, REASON_NOT_IP);
    d->offset += 3;
    if (header == LLC_BPDU) {
        note_bridge(d);
        return stop(d, REASON_NOT_IP);
    }
    if (header == 0x060603)
        return NEXT_IPV4;
    if (header == 0xaaaa03)
        return decode_snap(d, 2);
    return link_has(d, 1) ? decode_nlpid(d) : NEXT_END;
}

enum next_header decode_ethernet(struct decoding *d, const uint8_t *ethernet) {
    d->headers->layer = LAYER_LINK;
    d->offset += ETHERNET_HEADER;
    return decode_ether_type(d, load_be16(ethernet + 12));
}

enum next_header decode_ethernet_link(struct decoding *d) {
    if (!link_has(d, ETHERNET_HEADER))
        return NEXT_END;
    d->headers->link_hash = link_hash(d->data);
    return decode_ethernet(d, d->data);
}

enum cooked_protocol { COOKED_ETHERNET = 3, COOKED_LLC = 4 };

/* Cooked headers number protocols without an EtherType below 0x0600: 3 is an Ethernet frame, 4 an
 * 802.2 header. Cisco's framing has EtherTypes alone. */
static enum next_header cooked_next(struct decoding *d, uint32_t header_length, uint16_t protocol) {
    d->headers->layer = LAYER_LINK;
    d->offset += header_length;
    if (protocol == COOKED_ETHERNET)
        return NEXT_ETHERNET;
    if (protocol == COOKED_LLC)
        return NEXT_LLC;
    return protocol < ETHER_TYPE_MIN ? stop(d, REASON_NOT_IP) : decode_ether_type(d, protocol);
}

/* An address field of 8 bytes and the interface: a packet that is forwarded within a host has the
 * same address at each of them. */
static uint32_t cooked_hash(const uint8_t *address, uint32_t interface) {
    uint8_t bytes[12] = {0};
    memcpy(bytes, address, 8);
    memcpy(bytes + 8, &interface, 4);
    return link_hash(bytes);
}

enum next_header decode_cooked(struct decoding *d, const uint8_t *cooked) {
    d->headers->link_hash =
        cooked_hash(cooked + 6, load_be16(cooked)); /* in place: the direction */
    return cooked_next(d, 16, load_be16(cooked + 14));
}

enum next_header decode_cooked_2(struct decoding *d, const uint8_t *cooked) {
    d->headers->link_hash = cooked_hash(cooked + 12, load_be32(cooked + 4));
    return cooked_next(d, 20, load_be16(cooked));
}

/* The address family in the byte order of the capturing machine. AF_INET is 2 everywhere; AF_INET6
 * is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS. */
enum next_header decode_loopback(struct decoding *d, const uint8_t *loopback) {
    uint32_t family = load_le32(loopback);
    if (family > 0xffff)
        family = __builtin_bswap32(family);
    d->headers->layer = LAYER_LINK;
    d->offset += 4;
    switch (family) {
    case 2: return NEXT_IPV4;
    case 10:
    case 23:
    case 24:
    case 28:
    case 30: return NEXT_IPV6;
    default: return stop(d, REASON_NOT_IP);
    }
}

enum next_header decode_cisco_hdlc(struct decoding *d, const uint8_t *hdlc) {
    d->headers->layer = LAYER_LINK;
    d->offset += 4;
    uint16_t type = load_be16(hdlc + 2);
    return type < ETHER_TYPE_MIN ? stop(d, REASON_NOT_IP) : decode_ether_type(d, type);
}

/* RFC 1661, 1662: address and control (ff 03) may be absent, and so may the first byte of the
 * protocol if it is 0: the last byte of a protocol is odd, the first one even. */
enum next_header decode_ppp(struct decoding *d, const uint8_t *ppp) {
    if (ppp[0] == 0xff && ppp[1] == 0x03) {
        d->offset += 2;
        ppp += 2;
    }
    if (!link_has(d, 1))
        return NEXT_END;
    uint32_t size = ppp[0] & 1 ? 1 : 2;
    if (!link_has(d, size))
        return NEXT_END;
    uint16_t protocol = size == 1 ? ppp[0] : load_be16(ppp);
    d->headers->layer = LAYER_LINK;
    d->offset += size;
    switch (protocol) {
    case 0x0021: return NEXT_IPV4;
    case 0x0057: return NEXT_IPV6;
    case 0x0281:
    case 0x0283: return NEXT_MPLS;
    default: return stop_at(d, REASON_PPP_COMPRESSED, UNDECODED_PPP, protocol);
    }
}

/* Serial lines: the address 0f or 8f is Cisco's framing, anything else is PPP. */
enum next_header decode_serial(struct decoding *d, const uint8_t *address) {
    (void)d;
    return *address == 0x0f || *address == 0x8f ? NEXT_CISCO_HDLC : NEXT_PPP;
}
