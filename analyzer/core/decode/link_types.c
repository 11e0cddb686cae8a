/* SPDX-License-Identifier: Apache-2.0 */
/* The first header of each link type, and the link headers of less common networks. Numbers and
 * layouts are those of tcpdump.org/linktypes.html.
 *
 *   FDDI (10)                 Frame relay (107, RFC 2427)  ARCNET (7, 129; RFC 1201)
 *   OFFSET SIZE               OFFSET SIZE                  OFFSET SIZE
 *   0      1    frame control 0      2-4  address          0      1    source
 *   1      12   to, from      ..     1    control (03)     1      1    destination
 *   13     ..   802.2         ..     0-1  padding          2      0-2  offset (129 alone)
 *                             ..     1    NLPID            ..     1    type
 *   NFLOG (239)               IPNET (226)                  ..     1    split flag
 *   0      1    family        0      1    version          ..     2    sequence
 *   1      1    version       1      1    family
 *   2      2    resource      2      22   interfaces, zones
 *   4      ..   attributes
 *
 * A frame that holds the first part of a packet (ARCNET, multilink frame relay) counts for all of
 * it, by the IP length; the frames of the rest end with REASON_LINK_FRAGMENT. */
#include "decode/step.h"

#define IP_MOST 65535u /* bytes of a packet whose parts are in several frames */

/* The link header has `length` bytes. */
static void pass_link(struct decoding *d, uint32_t length) {
    d->headers->layer = LAYER_LINK;
    d->offset += length;
}

/* The packet continues in further frames: its own length ends it. */
static void continue_frame(struct decoding *d) {
    if (d->end < UINT32_MAX - IP_MOST)
        d->end = d->offset + IP_MOST;
}

static enum next_header decode_fddi(struct decoding *d, const uint8_t *fddi) {
    bool has_llc = (fddi[0] & 0xf0) == 0x50 || (fddi[0] & 0xf8) == 0xd0; /* asynchronous or not */
    d->headers->link_hash = link_hash(fddi + 1);
    pass_link(d, 13);
    return has_llc ? NEXT_LLC : stop(d, REASON_NOT_IP);
}

/* Q.922: the last byte of an address has its lowest bit set. Cisco's framing has an EtherType
 * behind it instead of the control byte of RFC 2427. */
static enum next_header decode_frame_relay(struct decoding *d, const uint8_t *frame) {
    uint32_t length = 1;
    while (!(frame[length - 1] & 1)) {
        if (++length > 4)
            return stop(d, REASON_LINK_BAD);
        if (!link_has(d, length))
            return NEXT_END;
    }
    if (length < 2)
        return stop(d, REASON_LINK_BAD);
    d->headers->link_hash = load_be16(frame) * 0x9e3779b1u;
    pass_link(d, length);
    if (!link_has(d, 2))
        return NEXT_END;
    if (frame[length] != 3) {
        d->offset += 2;
        return decode_ether_type(d, load_be16(frame + length));
    }
    d->offset += frame[length + 1] ? 1 : 2;
    return link_has(d, 1) ? decode_nlpid(d) : NEXT_END;
}

enum multilink_flag { MULTILINK_FIRST = 0x80, MULTILINK_LAST = 0x40, MULTILINK_CONTROL = 0x20 };

/* FRF.16: flags and sequence number in two bytes before the frame or its part. */
static enum next_header decode_multilink_frame_relay(struct decoding *d, const uint8_t *frame) {
    pass_link(d, 2);
    if (frame[0] & MULTILINK_CONTROL)
        return stop(d, REASON_NOT_IP);
    if (!(frame[0] & MULTILINK_FIRST))
        return stop(d, REASON_LINK_FRAGMENT);
    if (!link_has(d, 2))
        return NEXT_END;
    if (!(frame[0] & MULTILINK_LAST))
        continue_frame(d);
    return decode_frame_relay(d, frame + 2);
}

enum arcnet_type { ARCNET_IPV6 = 196, ARCNET_IP = 212, ARCNET_IP_1051 = 240, ARCNET_ARP_1051 };
#define ARCNET_EXCEPTION 255 /* type, split flag and sequence number follow once more */

/* Returns NEXT_END for a type that does not carry IP. */
static enum next_header arcnet_packet(uint8_t type) {
    switch (type) {
    case ARCNET_IP:
    case ARCNET_IP_1051: return NEXT_IPV4;
    case ARCNET_IPV6: return NEXT_IPV6;
    default: return NEXT_END;
    }
}

/* RFC 1201: the split flag is 0 for a whole packet, odd for the first part, else even. Frames of
 * RFC 1051 have none. `exceptions`: frames of 253 to 256 bytes have an exception header. */
static enum next_header arcnet_next(struct decoding *d, uint32_t type_at, bool exceptions) {
    const uint8_t *type = d->data + d->offset + type_at;
    enum next_header next = arcnet_packet(*type);
    if (*type == ARCNET_IP_1051 || *type == ARCNET_ARP_1051) {
        pass_link(d, type_at + 1);
        return next ? next : stop(d, REASON_NOT_IP);
    }
    if (!link_has(d, type_at + 4))
        return NEXT_END;
    bool excepted = exceptions && type[1] == ARCNET_EXCEPTION;
    if (excepted && !link_has(d, type_at + 8))
        return NEXT_END;
    uint8_t split = excepted ? type[5] : type[1];
    pass_link(d, type_at + (excepted ? 8 : 4));
    if (!next)
        return stop(d, REASON_NOT_IP);
    if (split && !(split & 1))
        return stop(d, REASON_LINK_FRAGMENT);
    if (split)
        continue_frame(d);
    return next;
}

static enum next_header decode_arcnet(struct decoding *d, const uint8_t *arcnet) {
    (void)arcnet;
    return arcnet_next(d, 2, true);
}

static enum next_header decode_arcnet_linux(struct decoding *d, const uint8_t *arcnet) {
    (void)arcnet;
    return arcnet_next(d, 4, false);
}

enum address_family { FAMILY_INET = 2, FAMILY_INET6_LINUX = 10, FAMILY_INET6_SOLARIS = 26 };

/* version 1, family, hardware type, length, interfaces, zones */
static enum next_header decode_ipnet(struct decoding *d, const uint8_t *ipnet) {
    pass_link(d, 24);
    switch (ipnet[1]) {
    case FAMILY_INET: return NEXT_IPV4;
    case FAMILY_INET6_SOLARIS: return NEXT_IPV6;
    default: return stop(d, REASON_NOT_IP);
    }
}

enum nflog_attribute { NFLOG_PACKET_HEADER = 1, NFLOG_PAYLOAD = 9, NFLOG_TYPE_MASK = 0x3fff };

/* The payload attribute may hold less than the packet, if the rule cut it (--nflog-size). */
static enum next_header nflog_payload(struct decoding *d, uint32_t length, uint8_t family,
                                      uint16_t ether_type) {
    d->offset += 4;
    decoding_narrow(d, d->offset + length - 4);
    d->is_narrowed = false;
    if (family == FAMILY_INET)
        return NEXT_IPV4;
    if (family == FAMILY_INET6_LINUX)
        return NEXT_IPV6;
    return ether_type ? decode_ether_type(d, ether_type) : stop(d, REASON_NOT_IP);
}

/* Attributes: length with this header, type, value, padding to 4 bytes; in the byte order of the
 * capturing host, which the type shows, because types are below 256. */
static enum next_header decode_nflog(struct decoding *d, const uint8_t *nflog) {
    uint16_t ether_type = 0;
    pass_link(d, 4);
    while (d->offset != d->end) {
        if (!link_has(d, 4))
            return NEXT_END;
        const uint8_t *attribute = d->data + d->offset;
        bool big_endian = !attribute[2] && attribute[3];
        uint32_t length = load_u16(attribute, big_endian), left = d->end - d->offset;
        unsigned type = load_u16(attribute + 2, big_endian) & NFLOG_TYPE_MASK;
        if (length < 4 || length > left)
            return stop(d, REASON_LINK_BAD);
        if (type == NFLOG_PAYLOAD)
            return nflog_payload(d, length, nflog[0], ether_type);
        if (type == NFLOG_PACKET_HEADER && length >= 6 && link_has(d, 6))
            ether_type = load_be16(attribute + 4);
        uint32_t padded = (length + 3) & ~3u;
        d->offset += padded < left ? padded : left;
    }
    return stop(d, REASON_NOT_IP);
}

/* A global routing header of 40 bytes, EtherType, reserved. */
static enum next_header decode_ipoib(struct decoding *d, const uint8_t *ipoib) {
    d->headers->link_hash = link_hash(ipoib + 28); /* the end of the destination */
    pass_link(d, 44);
    return decode_ether_type(d, load_be16(ipoib + 40));
}

/* RFC 2684: 802.2, or IP itself if the circuit carries nothing else. */
static enum next_header decode_atm(struct decoding *d, const uint8_t *atm) {
    uint8_t nibble = *atm >> 4;
    d->headers->layer = LAYER_LINK;
    return nibble == 4 || nibble == 6 ? NEXT_IP : NEXT_LLC;
}

enum sunatm_type { SUNATM_MASK = 0x0f, SUNATM_LANE = 1, SUNATM_LLC = 2 };
#define LANE_CONTROL 0xff00

/* Flags and type, VPI, VCI. LAN emulation has the client's number before an Ethernet frame. */
static enum next_header decode_sunatm(struct decoding *d, const uint8_t *atm) {
    unsigned type = atm[0] & SUNATM_MASK;
    d->headers->link_hash = load_be32(atm) * 0x9e3779b1u;
    pass_link(d, 4);
    if (type == SUNATM_LLC)
        return link_has(d, 1) ? decode_atm(d, atm + 4) : NEXT_END;
    if (type != SUNATM_LANE)
        return stop(d, REASON_NOT_IP);
    if (!link_has(d, 2))
        return NEXT_END;
    if (load_be16(atm + 4) == LANE_CONTROL)
        return stop(d, REASON_NOT_IP);
    d->offset += 2;
    return NEXT_ETHERNET;
}

/* Switch tags between the addresses and the EtherType of a frame. */
static enum next_header behind_tag(struct decoding *d, const uint8_t *frame, uint32_t tag_length) {
    d->headers->link_hash = link_hash(frame);
    pass_link(d, 12 + tag_length + 2);
    return decode_ether_type(d, load_be16(frame + 12 + tag_length));
}

static enum next_header decode_broadcom(struct decoding *d, const uint8_t *frame) {
    return behind_tag(d, frame, 4);
}

static enum next_header decode_tagged_ethernet(struct decoding *d, const uint8_t *frame) {
    d->headers->link_hash = link_hash(frame);
    return NEXT_ETHERNET;
}

/* Marvell's tag replaces that of a VLAN: bit 5 shows that there was one, whose id it keeps. */
static enum next_header behind_marvell(struct decoding *d, const uint8_t *frame, uint32_t length) {
    const uint8_t *tag = frame + 12 + length - 4;
    if (tag[0] & 0x20 && !path_push(d->headers, PATH_VLAN, load_be16(tag + 2) & 0x0fff))
        return NEXT_END;
    return behind_tag(d, frame, length);
}

static enum next_header decode_dsa(struct decoding *d, const uint8_t *frame) {
    return behind_marvell(d, frame, 4);
}

/* EtherType dada, two reserved bytes, tag. */
static enum next_header decode_edsa(struct decoding *d, const uint8_t *frame) {
    return behind_marvell(d, frame, 8);
}

/* IEEE 802.15.4: frame control, in little-endian order. */
enum wpan_control {
    WPAN_TYPE = 0x0007,
    WPAN_DATA = 0x0001,
    WPAN_SECURED = 0x0008,
    WPAN_SAME_NETWORK = 0x0040,
    WPAN_NO_SEQUENCE = 0x0100, /* since 2015, as the next */
    WPAN_ELEMENTS = 0x0200,
};

/* Bytes of an address by its mode; mode 1 is reserved. */
static const uint8_t wpan_address_bytes[] = {0, 0, 2, 8};

/* Returns the bytes of the header: frame control, sequence number, and for each end the network and
 * the address (IEEE 802.15.4-2015 table 7-2). */
static uint32_t wpan_header_bytes(uint16_t control) {
    uint32_t to = wpan_address_bytes[control >> 10 & 3], from = wpan_address_bytes[control >> 14];
    bool same = control & WPAN_SAME_NETWORK, is_2015 = (control >> 12 & 3) == 2;
    uint32_t networks = (to != 0) + (from && !same);
    if (is_2015 && to && from)
        networks = to == 8 && from == 8 ? !same : 2u - same;
    else if (is_2015)
        networks = (to || from) != same;
    return 2 + !(is_2015 && control & WPAN_NO_SEQUENCE) + to + from + 2 * networks;
}

/* RFC 4944: the first byte of a data frame. 41 is an IPv6 packet as it is; 00 to 3f is not
 * 6LoWPAN. Compressed headers and fragments are not decoded. */
static enum next_header decode_wpan(struct decoding *d, const uint8_t *frame) {
    uint16_t control = load_le16(frame);
    if ((control & WPAN_TYPE) != WPAN_DATA || control & WPAN_ELEMENTS) {
        pass_link(d, 2);
        return stop(d, REASON_NOT_IP);
    }
    uint32_t length = wpan_header_bytes(control);
    if (!link_has(d, length + 1))
        return NEXT_END;
    pass_link(d, length + 1);
    if (control & WPAN_SECURED)
        return stop(d, REASON_ENCRYPTED);
    if (frame[length] == 0x41)
        return NEXT_IPV6;
    return frame[length] < 0x40 ? stop(d, REASON_NOT_IP)
                                : stop_at(d, REASON_6LOWPAN, UNDECODED_6LOWPAN, 0);
}

/* Version, reserved, length of the header in little-endian order, fields. */
static enum next_header decode_wpan_tap(struct decoding *d, const uint8_t *tap) {
    uint32_t length = load_le16(tap + 2);
    if (length < 4)
        return stop(d, REASON_LINK_BAD);
    if (!link_has(d, length))
        return NEXT_END;
    d->offset += length;
    return link_has(d, 2) ? decode_wpan(d, tap + length) : NEXT_END;
}

/* Ethernet is not among them, because decode_packet() begins with it. Behind `before` bytes,
 * `decode` reads a link header of `least` bytes, or a header of the kind `first` begins. */
static const struct link_type {
    uint16_t number;
    uint8_t first;  /* enum next_header */
    uint8_t before; /* bytes */
    uint8_t least;  /* bytes */
    decoder *decode;
} link_types[] = {
    {.number = 113, .first = NEXT_COOKED},
    {.number = 276, .first = NEXT_COOKED_2},
    {.number = 101, .first = NEXT_IP},
    {.number = 12, .first = NEXT_IP},
    {.number = 14, .first = NEXT_IP},
    {.number = 228, .first = NEXT_IPV4},
    {.number = 229, .first = NEXT_IPV6},
    {.number = 0, .first = NEXT_LOOPBACK},
    {.number = 108, .first = NEXT_LOOPBACK},
    {.number = 9, .first = NEXT_SERIAL},
    {.number = 50, .first = NEXT_SERIAL},
    {.number = 104, .first = NEXT_CISCO_HDLC},
    {.number = 105, .first = NEXT_WLAN},
    {.number = 127, .first = NEXT_RADIOTAP},
    {.number = 192, .first = NEXT_PPI},
    {.number = 119, .first = NEXT_PRISM},
    {.number = 163, .first = NEXT_PRISM}, /* AVS */
    {.number = 7, .decode = decode_arcnet, .least = 3},
    {.number = 129, .decode = decode_arcnet_linux, .least = 5},
    /* Direction, packet type and compressed header; the packet itself is never compressed. */
    {.number = 8, .first = NEXT_IP, .before = 16},
    {.number = 102, .first = NEXT_IP, .before = 24}, /* of BSD/OS */
    {.number = 10, .decode = decode_fddi, .least = 13},
    {.number = 11, .decode = decode_atm, .least = 1}, /* ATM in files of the BSDs */
    {.number = 100, .decode = decode_atm, .least = 1},
    {.number = 123, .decode = decode_sunatm, .least = 4},
    {.number = 107, .decode = decode_frame_relay, .least = 2},
    {.number = 206, .before = 1, .decode = decode_frame_relay, .least = 2}, /* the direction */
    {.number = 182, .decode = decode_multilink_frame_relay, .least = 2},
    {.number = 226, .decode = decode_ipnet, .least = 24},
    {.number = 239, .decode = decode_nflog, .least = 4},
    {.number = 242, .decode = decode_ipoib, .least = 44},
    {.number = 281, .decode = decode_broadcom, .least = 18},
    {.number = 282, .before = 4, .decode = decode_tagged_ethernet, .least = ETHERNET_HEADER},
    {.number = 284, .decode = decode_dsa, .least = 18},
    {.number = 285, .decode = decode_edsa, .least = 22},
    {.number = 195, .decode = decode_wpan, .least = 2}, /* with a checksum */
    {.number = 191, .decode = decode_wpan, .least = 2}, /* Linux */
    {.number = 230, .decode = decode_wpan, .least = 2},
    {.number = 215, .before = 6, .decode = decode_wpan, .least = 2}, /* preamble, start, length */
    {.number = 283, .decode = decode_wpan_tap, .least = 4},
};

/* Raw IP has no link header: the link layer is reached before its first byte. */
enum next_header begin_link(struct decoding *d, uint16_t number) {
    for (size_t i = 0; i < sizeof link_types / sizeof *link_types; i++) {
        const struct link_type *type = &link_types[i];
        if (type->number != number)
            continue;
        if (!link_has(d, type->before + type->least))
            return NEXT_END;
        d->offset = type->before;
        if (type->decode)
            return type->decode(d, d->data + type->before);
        if (type->first <= NEXT_IP)
            d->headers->layer = LAYER_LINK;
        return type->first;
    }
    return stop_at(d, REASON_LINK_TYPE, UNDECODED_LINK_TYPE, number);
}
