/* SPDX-License-Identifier: Apache-2.0 */
/* A walk from header to header. Each step checks that its bytes are there; if not, all that was
 * captured are headers. Tunnels go on inside, and so do packets that an ICMP error quotes. Each
 * step moves on by at least 4 bytes, and STEPS_MOST bounds nesting. */
#include "device/headers.h"

#include <pcap/dlt.h>
#include <stddef.h>

#define STEPS_MOST 32
#define LINK_RAW   101 /* of files: DLT_RAW differs between systems */

enum kind { END, ETHERNET, ETHERTYPE, IP, PROTOCOL };

struct walk {
    const uint8_t *data;
    uint32_t size, at;
    unsigned type; /* of ETHERTYPE and PROTOCOL: what follows at `at` */
    bool six;      /* PROTOCOL: in IPv6 */
};

static unsigned u16(const uint8_t *at) {
    return (unsigned)at[0] << 8 | at[1];
}

/* Returns the next `count` bytes and moves behind them; NULL at the end of the packet. */
static const uint8_t *take(struct walk *walk, uint32_t count) {
    if (count > walk->size - walk->at) {
        walk->at = walk->size;
        return NULL;
    }
    walk->at += count;
    return walk->data + walk->at - count;
}

static enum kind of_type(struct walk *walk, unsigned type) {
    walk->type = type;
    return ETHERTYPE;
}

static enum kind ethernet(struct walk *walk) {
    const uint8_t *header = take(walk, 14);
    return header ? of_type(walk, u16(header + 12)) : END;
}

/* Labels end with the bit "bottom of stack"; an IP header, or an Ethernet header behind a control
 * word of zeros, follows. */
static enum kind mpls(struct walk *walk) {
    const uint8_t *label;
    do
        label = take(walk, 4);
    while (label && !(label[2] & 1));
    if (!label || walk->at == walk->size || walk->data[walk->at] >> 4)
        return label ? IP : END;
    return take(walk, 4) ? ETHERNET : END;
}

static enum kind ethertype(struct walk *walk) {
    const uint8_t *header;
    switch (walk->type) {
    case 0x0800:
    case 0x86dd: return IP;
    case 0x0806: take(walk, 28); return END;
    case 0x8100:
    case 0x88a8:
    case 0x9100: return (header = take(walk, 4)) ? of_type(walk, u16(header + 2)) : END;
    case 0x8847:
    case 0x8848: return mpls(walk);
    case 0x8864: /* PPPoE, with IPv4 or IPv6 in PPP */
        header = take(walk, 8);
        return header && (u16(header + 6) == 0x21 || u16(header + 6) == 0x57) ? IP : END;
    default: return END;
    }
}

static enum kind of_protocol(struct walk *walk, unsigned protocol, bool six) {
    walk->type = protocol;
    walk->six = six;
    return PROTOCOL;
}

/* Behind the first fragment's header there is no other header in later ones. */
static enum kind ip(struct walk *walk) {
    const uint8_t *header = walk->at < walk->size ? walk->data + walk->at : NULL;
    if (!header || (*header >> 4 != 4 && *header >> 4 != 6))
        return END;
    if (*header >> 4 == 6)
        return (header = take(walk, 40)) ? of_protocol(walk, header[6], true) : END;
    uint32_t length = (*header & 15u) * 4;
    if (length < 20 || !take(walk, length))
        return END;
    return u16(header + 6) & 0x1fff ? END : of_protocol(walk, header[9], false);
}

/* Flags of checksum, key and sequence number each add 4 bytes. Mirrors send Ethernet in ERSPAN. */
static enum kind gre(struct walk *walk) {
    const uint8_t *header = take(walk, 4);
    if (!header || header[1] & 7) /* version 1 is PPTP */
        return END;
    unsigned type = u16(header + 2);
    bool numbered = header[0] & 0x10;
    if (!take(walk, 4u * (!!(header[0] & 0x80) + !!(header[0] & 0x20) + numbered)))
        return END;
    if (type == 0x88be && numbered && !take(walk, 8))
        return END;
    if (type == 0x6558 || type == 0x88be)
        return ETHERNET;
    return of_type(walk, type);
}

static enum kind udp(struct walk *walk) {
    const uint8_t *header = take(walk, 8), *inner;
    unsigned port = header ? u16(header + 2) : 0;
    if (port == 4789) /* VXLAN */
        return take(walk, 8) ? ETHERNET : END;
    if (port != 6081 || !(inner = take(walk, 8)) || !take(walk, (inner[0] & 63u) * 4))
        return END; /* GENEVE */
    return u16(inner + 2) == 0x6558 ? ETHERNET : of_type(walk, u16(inner + 2));
}

static enum kind tcp(struct walk *walk) {
    const uint8_t *header = take(walk, 20);
    uint32_t length = header ? (header[12] >> 4) * 4u : 0;
    if (length > 20)
        take(walk, length - 20);
    return END;
}

/* Errors quote a packet: types 3, 4, 5, 11 and 12, of IPv6 1 to 4. Of neighbor discovery, types 133
 * to 137, all stays. */
static enum kind icmp(struct walk *walk) {
    const uint8_t *header = take(walk, 8);
    unsigned type = header ? header[0] : 0;
    if (!header)
        return END;
    if (walk->six && type >= 133 && type <= 137)
        walk->at = walk->size;
    bool quotes =
        walk->six ? type >= 1 && type <= 4 : (type >= 3 && type <= 5) || type == 11 || type == 12;
    return quotes ? IP : END;
}

/* Extension headers of IPv6 have their length in units of 8 bytes, AH in units of 4. */
static enum kind extension(struct walk *walk) {
    const uint8_t *header = take(walk, 8);
    if (!header)
        return END;
    bool fragment = walk->type == 44;
    uint32_t more = walk->type == 51 ? (header[1] + 2u) * 4 - 8 : header[1] * 8u;
    if (fragment && u16(header + 2) & 0xfff8)
        return END;
    if (!fragment && !take(walk, more))
        return END;
    return of_protocol(walk, header[0], walk->six);
}

/* Transport headers of one size: IGMP, DCCP, ESP, SCTP. */
static const struct {
    unsigned protocol;
    uint32_t bytes;
} fixed[] = {{2, 8}, {33, 12}, {50, 8}, {132, 12}};

static enum kind fixed_header(struct walk *walk) {
    for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].protocol == walk->type)
            take(walk, fixed[i].bytes);
    return END;
}

static bool is_extension(const struct walk *walk) {
    unsigned type = walk->type;
    return type == 51 ||
           (walk->six && (!type || type == 43 || type == 44 || type == 60 || type == 135));
}

static enum kind protocol(struct walk *walk) {
    if (is_extension(walk))
        return extension(walk);
    switch (walk->type) {
    case 6: return tcp(walk);
    case 17: return udp(walk);
    case 1:
    case 58: return walk->six == (walk->type == 58) ? icmp(walk) : END;
    case 4:
    case 41: return IP;
    case 47: return gre(walk);
    default: return fixed_header(walk);
    }
}

/* Link types of interfaces, by the bytes of their header and the place of the EtherType in it. */
static const struct {
    int link_type;
    uint32_t bytes, type_at;
} links[] = {{DLT_EN10MB, 14, 12}, {DLT_LINUX_SLL, 16, 14}, {DLT_LINUX_SLL2, 20, 0}};

bool headers_known(int link_type) {
    bool known = link_type == LINK_RAW;
    for (unsigned i = 0; i < sizeof links / sizeof *links; i++)
        known |= links[i].link_type == link_type;
    return known;
}

uint32_t headers_end(int link_type, const uint8_t *data, uint32_t size) {
    struct walk walk = {.data = data, .size = size};
    enum kind next = link_type == LINK_RAW ? IP : END;
    for (unsigned i = 0; i < sizeof links / sizeof *links; i++)
        if (links[i].link_type == link_type) {
            const uint8_t *header = take(&walk, links[i].bytes);
            next = header ? of_type(&walk, u16(header + links[i].type_at)) : END;
        }
    for (unsigned steps = 0; next != END && steps < STEPS_MOST; steps++)
        next = next == ETHERNET    ? ethernet(&walk)
               : next == ETHERTYPE ? ethertype(&walk)
               : next == IP        ? ip(&walk)
                                   : protocol(&walk);
    return walk.at;
}
