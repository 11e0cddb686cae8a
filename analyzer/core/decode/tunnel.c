/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulations: VLAN (IEEE 802.1Q), MPLS (RFC 3032), PPPoE (RFC 2516), and over IP: IP (RFC 2003,
 * 2473, 4213), GRE (RFC 2784 and 2890, PPTP, ERSPAN, EoIP, WCCP, Aruba), EtherIP (RFC 3378) and PIM
 * Register (RFC 7761).
 *
 *   GRE version 0                 PPTP                       EoIP
 *   OFFSET SIZE                   OFFSET SIZE                OFFSET SIZE
 *   0      2    flags, version    0      2    flags          0      2    2001
 *   2      2    protocol          2      2    880b           2      2    6400
 *   4      4    checksum, if C    4      2    length         4      2    length
 *   ..     4    key, if K         6      2    call           6      2    tunnel, little-endian
 *   ..     4    sequence, if S    8      8    sequence, acknowledgment if present
 *
 * Each layer adds a step to headers->path, so that equal addresses in two tunnels are two flows.
 * The tunnel's own IP header is overwritten by the inner one, unless the tunnel holds no IP
 * packet. */
#include "decode/step.h"

#define ETHER_BRIDGED 0x6558 /* transparent Ethernet bridging */
#define GRE_ERSPAN    0x88be /* types I and II */
#define GRE_ERSPAN_3  0x22eb
#define GRE_WCCP      0x883e
#define GRE_PPTP      0x880b
#define GRE_EOIP      0x6400

/* IEEE 802.1Q: priority and DEI in 4 bits, VLAN id in 12, EtherType. The offset is behind the first
 * EtherType, which the decoder of the link has read. Id 0 is no VLAN, only a priority, which one
 * direction alone may have. */
enum next_header decode_vlan(struct decoding *d, const uint8_t *vlan) {
    uint32_t id = load_be16(vlan) & 0x0fff;
    if (id ? !path_push(d->headers, PATH_VLAN, id) : !shim_pass(d))
        return NEXT_END;
    d->offset += 4;
    return decode_ether_type(d, load_be16(vlan + 2));
}

static bool ether_type_known_at(const struct decoding *d, uint32_t offset) {
    return offset + 2 <= d->captured && ether_type_next(load_be16(d->data + offset));
}

/* Nothing names the payload below the bottom of the stack. RFC 4928: IP shows its version in the
 * first nibble, the control word of a pseudo-wire (RFC 4385) a 0. An Ethernet pseudo-wire may lack
 * the control word: its EtherType is four bytes earlier then. */
enum next_header decode_mpls_payload(struct decoding *d, const uint8_t *payload) {
    uint8_t nibble = *payload >> 4;
    bool ethernet = ether_type_known_at(d, d->offset + 12);
    if (nibble == 4 || nibble == 6)
        return NEXT_IP;
    if (nibble != 0 && !ethernet)
        return stop(d, REASON_NOT_IP);
    d->offset += ethernet ? 0 : 4;
    return NEXT_ETHERNET;
}

/* RFC 3032: label in 20 bits, traffic class in 3, bottom of stack in 1, TTL in 8. A label is valid
 * on one link and in one direction (RFC 3031 section 3.4), and the last hop may have removed it, so
 * that labels add no step to the path. shim_pass() bounds them. */
enum next_header decode_mpls(struct decoding *d, const uint8_t *mpls) {
    if (!shim_pass(d))
        return NEXT_END;
    d->offset += 4;
    return load_be32(mpls) & 0x100 ? NEXT_MPLS_PAYLOAD : NEXT_MPLS; /* bottom of stack */
}

/* RFC 2516: version and type 1, code 0 for session data, session id, length. */
enum next_header decode_pppoe(struct decoding *d, const uint8_t *pppoe) {
    uint32_t length = load_be16(pppoe + 4);
    d->offset += 6;
    if (pppoe[0] != 0x11 || pppoe[1] != 0 || !decoding_fits(d, length))
        return stop(d, REASON_TUNNEL_BAD);
    if (!path_push(d->headers, PATH_PPPOE, load_be16(pppoe + 2)))
        return NEXT_END;
    decoding_narrow(d, d->offset + length);
    return NEXT_PPP;
}

enum next_header decode_bridged_or_routed(struct decoding *d, uint16_t protocol) {
    enum next_header next = protocol == ETHER_BRIDGED ? NEXT_ETHERNET : ether_type_next(protocol);
    return next ? next : stop_at(d, REASON_NOT_IP, UNDECODED_ETHER_TYPE, protocol);
}

enum gre_flag { /* RFC 2784, 2890; PPTP's RFC 2637 */
                GRE_CHECKSUM = 0x8000,
                GRE_ROUTING = 0x4000,
                GRE_KEY = 0x2000,
                GRE_SEQUENCE = 0x1000,
                GRE_ACKNOWLEDGMENT = 0x0080, /* version 1 */
                GRE_VERSION = 0x0007,
};

/* Ethernet behind an ERSPAN header of `length` bytes. */
static enum next_header erspan_ethernet(struct decoding *d, uint32_t length) {
    if (!tunnel_has(d, length))
        return NEXT_END;
    d->offset += length;
    return NEXT_ETHERNET;
}

/* Type III: 12 bytes; 8 more if the last bit is set; the frame type of Ethernet is 0. */
static enum next_header decode_erspan_v3(struct decoding *d) {
    if (!tunnel_has(d, 12))
        return NEXT_END;
    uint16_t word = load_be16(d->data + d->offset + 10);
    return word >> 10 & 0x1f ? stop(d, REASON_NOT_IP) : erspan_ethernet(d, word & 1 ? 20 : 12);
}

/* WCCP 2 puts 4 bytes of its service before the packet, version 1 none. ip_fills() needs 6 bytes.
 */
static enum next_header decode_wccp(struct decoding *d) {
    if (!tunnel_has(d, 6))
        return NEXT_END;
    d->offset += ip_fills(d, d->offset, 0) ? 0 : 4;
    return NEXT_IP;
}

/* Aruba's access points send 802.11 frames; the last digits are their queue. */
static bool gre_is_wlan(uint16_t protocol) {
    return protocol >= 0x8200 && protocol <= 0x8370 && protocol % 16 == 0;
}

static enum next_header decode_gre_v0(struct decoding *d, const uint8_t *gre, uint16_t flags,
                                      uint16_t protocol) {
    uint32_t key = flags & GRE_CHECKSUM ? 8 : 4, length = key;
    length += flags & GRE_KEY ? 4 : 0;
    length += flags & GRE_SEQUENCE ? 4 : 0;
    if (!tunnel_has(d, length) ||
        !path_push(d->headers, PATH_GRE, flags & GRE_KEY ? load_be32(gre + key) : 0))
        return NEXT_END;
    d->offset += length;
    switch (protocol) {
    case GRE_ERSPAN: return erspan_ethernet(d, flags & GRE_SEQUENCE ? 8 : 0); /* type II, I */
    case GRE_ERSPAN_3: return decode_erspan_v3(d);
    case GRE_WCCP: return decode_wccp(d);
    default: return gre_is_wlan(protocol) ? NEXT_WLAN : decode_bridged_or_routed(d, protocol);
    }
}

/* The payload of `length` bytes is behind a header of `header` bytes. */
static bool enter_call(struct decoding *d, uint32_t header, uint32_t length, uint16_t tunnel) {
    if (!tunnel_has(d, header))
        return false;
    if (length > d->end - d->offset - header) {
        d->headers->reason = REASON_TUNNEL_BAD;
        return false;
    }
    if (!path_push(d->headers, PATH_GRE, tunnel))
        return false;
    d->offset += header;
    decoding_narrow(d, d->offset + length);
    return true;
}

/* RFC 2637 (PPTP): the key is the length of the payload and the call, which each end numbers for
 * itself; a packet without a sequence number has no payload. EoIP of MikroTik has such a key with
 * one tunnel for both, and no payload if it keeps the tunnel alive. */
static enum next_header decode_gre_v1(struct decoding *d, const uint8_t *gre, uint16_t flags,
                                      uint16_t protocol) {
    bool eoip = protocol == GRE_EOIP && flags == (GRE_KEY | 1);
    uint32_t least = eoip ? 8 : flags & GRE_ACKNOWLEDGMENT ? 16 : 12;
    if (!eoip && (protocol != GRE_PPTP || !(flags & GRE_KEY) || !(flags & GRE_SEQUENCE)))
        return stop(d, REASON_NOT_IP);
    if (!tunnel_has(d, 8))
        return NEXT_END;
    uint32_t length = load_be16(gre + 4);
    if (eoip && !length)
        return stop(d, REASON_NOT_IP);
    if (!enter_call(d, least, length, eoip ? load_le16(gre + 6) : 0))
        return NEXT_END;
    return eoip ? NEXT_ETHERNET : NEXT_PPP;
}

enum next_header decode_gre(struct decoding *d, const uint8_t *gre) {
    uint16_t flags = load_be16(gre), protocol = load_be16(gre + 2), version = flags & GRE_VERSION;
    if (version > 1 || flags & GRE_ROUTING)
        return stop(d, REASON_NOT_IP);
    return (version ? decode_gre_v1 : decode_gre_v0)(d, gre, flags, protocol);
}

/* RFC 3378: version 3 and 12 bits of 0. */
enum next_header decode_ether_ip(struct decoding *d, const uint8_t *header) {
    if (load_be16(header) != 0x3000)
        return stop(d, REASON_NOT_IP);
    d->offset += 2;
    return path_push(d->headers, PATH_ETHER_IP, 0) ? NEXT_ETHERNET : NEXT_END;
}

/* RFC 7761, 4.9.3: version 2, type 1. A Null-Register (N bit) has no packet, only a dummy of its
 * header. */
enum next_header decode_pim(struct decoding *d, const uint8_t *pim) {
    if (pim[0] != 0x21)
        return stop(d, REASON_NOT_IP);
    if (!tunnel_has(d, 8))
        return NEXT_END;
    if (pim[4] & 0x40)
        return stop(d, REASON_NOT_IP);
    d->offset += 8;
    return path_push(d->headers, PATH_PIM, 0) ? NEXT_IP : NEXT_END;
}

enum next_header decode_ip_tunnel(struct decoding *d, const uint8_t *header) {
    (void)header;
    enum next_header next;
    enum path_kind step = PATH_KINDS; /* that the header itself does not add */
    switch (d->headers->protocol) {
    case IP_IPV4:
    case IP_IPV6:
        next = NEXT_IP;
        step = PATH_IPIP;
        break;
    case IP_GRE: next = NEXT_GRE; break;
    case IP_MPLS:
        next = NEXT_MPLS;
        step = PATH_MPLS;
        break;
    case IP_ETHER_IP: next = NEXT_ETHER_IP; break;
    case IP_L2TP: next = NEXT_L2TP; break;
    case IP_PIM: next = NEXT_PIM; break;
    default: return NEXT_END;
    }
    enter_tunnel(d, OUTER_IP);
    return step == PATH_KINDS || path_push(d->headers, step, 0) ? next : NEXT_END;
}
