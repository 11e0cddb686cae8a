/* SPDX-License-Identifier: Apache-2.0 */
/* A walk from header to header. Each step checks that its header was captured, and the number of
 * steps is bounded, so that a packet of nested headers costs no more than others. */
#include "index/addresses.h"

#include <stdbool.h>
#include <string.h>

#define STEPS_MOST 24

enum link {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_PPP = 9,
    LINK_RAW_BSD = 12,
    LINK_RAW_OPENBSD = 14,
    LINK_PPP_HDLC = 50,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_SLL2 = 276,
};

enum ether {
    ETHER_IPV4 = 0x0800,
    ETHER_ARP = 0x0806,
    ETHER_BRIDGED = 0x6558,
    ETHER_VLAN = 0x8100,
    ETHER_IPV6 = 0x86DD,
    ETHER_MPLS = 0x8847,
    ETHER_MPLS_MULTICAST = 0x8848,
    ETHER_PPPOE = 0x8864,
    ETHER_PROVIDER = 0x88A8,
    ETHER_ERSPAN2 = 0x88BE,
    ETHER_ERSPAN3 = 0x22EB,
    ETHER_OLD_VLAN = 0x9100,
    PPP_IPV4 = 0x0021,
    PPP_IPV6 = 0x0057,
};

enum protocol {
    PROTOCOL_OPTIONS = 0,
    PROTOCOL_ICMP = 1,
    PROTOCOL_IPV4 = 4,
    PROTOCOL_TCP = 6,
    PROTOCOL_UDP = 17,
    PROTOCOL_DCCP = 33,
    PROTOCOL_IPV6 = 41,
    PROTOCOL_ROUTING = 43,
    PROTOCOL_FRAGMENT = 44,
    PROTOCOL_GRE = 47,
    PROTOCOL_AUTHENTICATION = 51,
    PROTOCOL_ICMPV6 = 58,
    PROTOCOL_DESTINATION = 60,
    PROTOCOL_ETHERNET = 143,
    PROTOCOL_SCTP = 132,
    PROTOCOL_UDPLITE = 136,
};

enum tunnel_port { PORT_GTP = 2152, PORT_VXLAN = 4789, PORT_GENEVE = 6081 };

enum layer { LAYER_END, LAYER_ETHERNET, LAYER_TYPE, LAYER_IP, LAYER_PROTOCOL, LAYER_PPP };

struct walk {
    const uint8_t *at, *end;
    enum layer layer; /* of `at` */
    unsigned type;    /* an Ethernet type, an IP or PPP protocol */
    struct address *list;
    size_t count;
};

static unsigned be16(const uint8_t *at) {
    return (unsigned)at[0] << 8 | at[1];
}

static bool has(const struct walk *walk, size_t size) {
    return (size_t)(walk->end - walk->at) >= size;
}

static void add(struct walk *walk, const uint8_t *bytes, uint8_t size) {
    if (walk->count == ADDRESSES_MAX)
        return;
    struct address *address = &walk->list[walk->count++];
    *address = (struct address){.size = size};
    memcpy(address->bytes, bytes, size);
}

/* Goes on `size` bytes later. */
static void go_on(struct walk *walk, size_t size, enum layer layer, unsigned type) {
    bool is_there = has(walk, size);
    walk->layer = is_there ? layer : LAYER_END;
    walk->type = type;
    if (is_there)
        walk->at += size;
}

static void take_arp(struct walk *walk) {
    const uint8_t *at = walk->at;
    bool is_ipv4 = has(walk, 8) && be16(at + 2) == ETHER_IPV4 && at[5] == ADDRESS_IPV4;
    size_t hardware = is_ipv4 ? at[4] : 0;
    if (is_ipv4 && has(walk, 8 + 2 * (hardware + ADDRESS_IPV4))) {
        add(walk, at + 8 + hardware, ADDRESS_IPV4);
        add(walk, at + 8 + 2 * hardware + ADDRESS_IPV4, ADDRESS_IPV4);
    }
    walk->layer = LAYER_END;
}

/* Below the last label is IP, or Ethernet behind a control word that begins with 0. */
static void take_mpls(struct walk *walk) {
    while (has(walk, 4) && !(walk->at[2] & 1))
        walk->at += 4;
    go_on(walk, 4, LAYER_IP, 0);
    if (walk->layer && has(walk, 4) && !(walk->at[0] >> 4))
        go_on(walk, 4, LAYER_ETHERNET, 0);
}

static void take_type(struct walk *walk) {
    switch (walk->type) {
    case ETHER_VLAN:
    case ETHER_PROVIDER:
    case ETHER_OLD_VLAN: go_on(walk, 4, LAYER_TYPE, has(walk, 4) ? be16(walk->at + 2) : 0); break;
    case ETHER_MPLS:
    case ETHER_MPLS_MULTICAST: take_mpls(walk); break;
    case ETHER_PPPOE: go_on(walk, 6, LAYER_PPP, 0); break;
    case ETHER_ARP: take_arp(walk); break;
    case ETHER_BRIDGED: walk->layer = LAYER_ETHERNET; break;
    case ETHER_ERSPAN2: go_on(walk, 8, LAYER_ETHERNET, 0); break;
    case ETHER_ERSPAN3: go_on(walk, 12, LAYER_ETHERNET, 0); break;
    case ETHER_IPV4:
    case ETHER_IPV6: walk->layer = LAYER_IP; break;
    default: walk->layer = LAYER_END;
    }
}

/* Address and control bytes are left out by some links, and so is the first byte of 0. */
static void take_ppp(struct walk *walk) {
    size_t skipped = has(walk, 2) && be16(walk->at) == 0xFF03 ? 2 : 0;
    bool is_short = has(walk, skipped + 1) && (walk->at[skipped] & 1);
    size_t size = skipped + (is_short ? 1 : 2);
    unsigned type = !has(walk, size) ? 0 : is_short ? walk->at[skipped] : be16(walk->at + skipped);
    go_on(walk, size, type == PPP_IPV4 || type == PPP_IPV6 ? LAYER_IP : LAYER_END, 0);
}

/* A later fragment has no transport header. */
static void take_ipv4(struct walk *walk) {
    const uint8_t *at = walk->at;
    add(walk, at + 12, ADDRESS_IPV4);
    add(walk, at + 16, ADDRESS_IPV4);
    size_t size = (size_t)(at[0] & 15) * 4;
    bool is_first = !(be16(at + 6) & 0x1FFF);
    go_on(walk, size, size >= 20 && is_first ? LAYER_PROTOCOL : LAYER_END, at[9]);
}

static void take_ip(struct walk *walk) {
    unsigned version = has(walk, 20) ? walk->at[0] >> 4 : 0;
    if (version == 6 && has(walk, 40)) {
        add(walk, walk->at + 8, ADDRESS_IPV6);
        add(walk, walk->at + 24, ADDRESS_IPV6);
        go_on(walk, 40, LAYER_PROTOCOL, walk->at[6]);
    } else if (version == 4) {
        take_ipv4(walk);
    } else {
        walk->layer = LAYER_END;
    }
}

static void take_gre(struct walk *walk) {
    unsigned flags = has(walk, 4) ? be16(walk->at) : 0x4000;
    unsigned type = flags & 0x4007 ? 0 : be16(walk->at + 2); /* version 0, without routing */
    size_t size = 4;
    for (unsigned flag = 0x8000; flag >= 0x1000; flag >>= 1)
        size += flags & flag ? 4 : 0; /* checksum, (routing,) key and sequence number */
    if (type == ETHER_ERSPAN2 && !(flags & 0x1000))
        type = ETHER_BRIDGED; /* type I has no header of its own */
    go_on(walk, size, type ? LAYER_TYPE : LAYER_END, type);
}

/* A T-PDU of GTP-U: 8 bytes, 4 more and extension headers if a flag is set. */
static void take_gtp(struct walk *walk) {
    const uint8_t *at = walk->at + 8;
    if (!has(walk, 16) || at[0] >> 5 != 1 || at[1] != 255) {
        walk->layer = LAYER_END;
        return;
    }
    size_t size = at[0] & 7 ? 20 : 16;
    unsigned next = at[0] & 4 && has(walk, 20) ? at[11] : 0;
    while (next && has(walk, size + 4) && has(walk, size + 4u * walk->at[size]) && walk->at[size]) {
        size += 4u * walk->at[size];
        next = walk->at[size - 1];
    }
    go_on(walk, size, next ? LAYER_END : LAYER_IP, 0);
}

static void take_udp(struct walk *walk) {
    const uint8_t *at = walk->at;
    unsigned port = has(walk, 16) ? be16(at + 2) : 0;
    if (port == PORT_VXLAN && at[8] & 8)
        go_on(walk, 16, LAYER_ETHERNET, 0);
    else if (port == PORT_GENEVE && !(at[8] >> 6))
        go_on(walk, 16 + 4u * (at[8] & 0x3F), LAYER_TYPE, be16(at + 10));
    else if (port == PORT_GTP)
        take_gtp(walk);
    else
        walk->layer = LAYER_END;
}

/* Errors quote the packet that they are about. */
static void take_icmp(struct walk *walk, bool is_v6) {
    unsigned type = has(walk, 8) ? walk->at[0] : 255;
    bool quotes = is_v6 ? type >= 1 && type <= 4
                        : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    go_on(walk, 8, quotes ? LAYER_IP : LAYER_END, 0);
}

static void take_ports(struct walk *walk) {
    if (has(walk, 4)) {
        add(walk, walk->at, ADDRESS_PORT);
        add(walk, walk->at + 2, ADDRESS_PORT);
    }
    if (walk->type == PROTOCOL_UDP)
        take_udp(walk);
    else
        walk->layer = LAYER_END;
}

/* An extension header of IPv6; `unit` and `added` make bytes of its length. */
static void take_extension(struct walk *walk, size_t unit, size_t added) {
    size_t size = has(walk, 2) ? (walk->at[1] + added) * unit : 0;
    go_on(walk, size, size ? LAYER_PROTOCOL : LAYER_END, size ? walk->at[0] : 0);
}

/* A later fragment ends the walk. */
static void take_fragment(struct walk *walk) {
    bool is_first = has(walk, 8) && !(be16(walk->at + 2) & 0xFFF8);
    go_on(walk, is_first ? 8 : 0, is_first ? LAYER_PROTOCOL : LAYER_END, is_first ? *walk->at : 0);
}

static void take_protocol(struct walk *walk) {
    static const uint8_t with_ports[] = {PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_DCCP, PROTOCOL_SCTP,
                                         PROTOCOL_UDPLITE};
    if (memchr(with_ports, (int)walk->type, sizeof with_ports)) {
        take_ports(walk);
        return;
    }
    switch (walk->type) {
    case PROTOCOL_ICMP: take_icmp(walk, false); break;
    case PROTOCOL_ICMPV6: take_icmp(walk, true); break;
    case PROTOCOL_IPV4:
    case PROTOCOL_IPV6: walk->layer = LAYER_IP; break;
    case PROTOCOL_GRE: take_gre(walk); break;
    case PROTOCOL_ETHERNET: walk->layer = LAYER_ETHERNET; break;
    case PROTOCOL_OPTIONS:
    case PROTOCOL_ROUTING:
    case PROTOCOL_DESTINATION: take_extension(walk, 8, 1); break;
    case PROTOCOL_AUTHENTICATION: take_extension(walk, 4, 2); break;
    case PROTOCOL_FRAGMENT: take_fragment(walk); break;
    default: walk->layer = LAYER_END;
    }
}

static void begin(struct walk *walk, uint16_t link_type) {
    switch (link_type) {
    case LINK_ETHERNET: walk->layer = LAYER_ETHERNET; break;
    case LINK_RAW_BSD:
    case LINK_RAW_OPENBSD:
    case LINK_RAW:
    case LINK_IPV4:
    case LINK_IPV6: walk->layer = LAYER_IP; break;
    case LINK_NULL:
    case LINK_LOOP: go_on(walk, 4, LAYER_IP, 0); break;
    case LINK_PPP:
    case LINK_PPP_HDLC: walk->layer = LAYER_PPP; break;
    case LINK_SLL: go_on(walk, 16, LAYER_TYPE, has(walk, 16) ? be16(walk->at + 14) : 0); break;
    case LINK_SLL2: go_on(walk, 20, LAYER_TYPE, has(walk, 20) ? be16(walk->at) : 0); break;
    default: walk->layer = LAYER_END;
    }
}

size_t packet_addresses(uint16_t link_type, const uint8_t *data, size_t captured,
                        struct address list[ADDRESSES_MAX]) {
    struct walk walk = {.at = data, .end = data + captured, .list = list};
    begin(&walk, link_type);
    for (unsigned step = 0; walk.layer != LAYER_END && step < STEPS_MOST; step++)
        switch (walk.layer) {
        case LAYER_ETHERNET:
            go_on(&walk, 14, LAYER_TYPE, has(&walk, 14) ? be16(walk.at + 12) : 0);
            break;
        case LAYER_TYPE: take_type(&walk); break;
        case LAYER_IP: take_ip(&walk); break;
        case LAYER_PPP: take_ppp(&walk); break;
        default: take_protocol(&walk);
        }
    return walk.count;
}

/* Two rounds of multiplication and shift mix all bits. */
uint32_t address_hash(const struct address *address) {
    uint64_t low, high;
    memcpy(&low, address->bytes, sizeof low);
    memcpy(&high, address->bytes + sizeof low, sizeof high);
    uint64_t hash = (low ^ address->size) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 32 ^ high) * UINT64_C(0xD6E8FEB86659FD93);
    hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(hash >> 32);
}
