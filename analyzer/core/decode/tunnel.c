/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulations: VLAN (IEEE 802.1Q), MPLS (RFC 3032), PPPoE (RFC 2516), and over IP: IP (RFC 2003,
 * 2473, 4213), GRE (RFC 2784 and 2890, PPTP, ERSPAN), VXLAN (RFC 7348) and Geneve (RFC 8926).
 *
 *   GRE version 0                 VXLAN                      Geneve
 *   OFFSET SIZE                   OFFSET SIZE                OFFSET SIZE
 *   0      2    flags, version    0      1    flags          0      1    version, option words
 *   2      2    protocol          1      3    reserved       1      1    flags
 *   4      4    checksum, if C    4      3    VNI            2      2    protocol
 *   ..     4    key, if K         7      1    reserved       4      3    VNI
 *   ..     4    sequence, if S                               7      1    reserved
 *
 * Each layer adds a step to headers->path, so that equal addresses in two tunnels are two flows.
 * The tunnel's own IP and UDP headers are overwritten by the inner ones, unless the tunnel holds no
 * IP packet. */
#include "decode/decode.h"

#define ETHER_BRIDGED    0x6558 /* transparent Ethernet bridging */
#define PORT_VXLAN       4789
#define PORT_VXLAN_LINUX 8472 /* Linux's port before RFC 7348 */
#define PORT_GENEVE      6081

/* IEEE 802.1Q: priority and DEI in 4 bits, VLAN id in 12, EtherType. The offset is behind the first
 * EtherType, which the decoder of the link has read. */
enum next_header decode_vlan(struct decoding *d, const uint8_t *vlan) {
    if (!path_push(d->headers, PATH_VLAN, load_be16(vlan) & 0x0fff))
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

/* RFC 3032: label in 20 bits, traffic class in 3, bottom of stack in 1, TTL in 8. path_push()
 * bounds the labels. */
enum next_header decode_mpls(struct decoding *d, const uint8_t *mpls) {
    uint32_t entry = load_be32(mpls);
    if (!path_push(d->headers, PATH_MPLS, entry >> 12))
        return NEXT_END;
    d->offset += 4;
    return entry & 0x100 ? NEXT_MPLS_PAYLOAD : NEXT_MPLS; /* bottom of stack */
}

/* RFC 2516: version and type 1, code 0 for session data, session id, length. */
enum next_header decode_pppoe(struct decoding *d, const uint8_t *pppoe) {
    uint32_t length = load_be16(pppoe + 4);
    d->offset += 6;
    if (pppoe[0] != 0x11 || pppoe[1] != 0 || length > d->end - d->offset)
        return stop(d, REASON_TUNNEL_BAD);
    if (!path_push(d->headers, PATH_PPPOE, load_be16(pppoe + 2)))
        return NEXT_END;
    decoding_narrow(d, d->offset + length);
    return NEXT_PPP;
}

/* The packet so far is kept: decode_packet() returns to it if the tunnel holds no IP packet. */
static void enter_tunnel(struct decoding *d, int kind) {
    d->outer.kind = kind;
    memcpy(d->outer.headers, d->headers, sizeof d->outer.headers);
    d->headers->layer = LAYER_LINK;
}

static enum next_header decode_bridged_or_routed(struct decoding *d, uint16_t protocol) {
    enum next_header next = protocol == ETHER_BRIDGED ? NEXT_ETHERNET : ether_type_next(protocol);
    return next ? next : stop(d, REASON_NOT_IP);
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
    case 0x88be: return erspan_ethernet(d, flags & GRE_SEQUENCE ? 8 : 0); /* type II, type I */
    case 0x22eb: return decode_erspan_v3(d);
    default: return decode_bridged_or_routed(d, protocol);
    }
}

/* RFC 2637 (PPTP): the key is the length of the payload and the call; a packet without a sequence
 * number has no payload. */
static enum next_header decode_gre_v1(struct decoding *d, const uint8_t *gre, uint16_t flags,
                                      uint16_t protocol) {
    uint32_t length = flags & GRE_ACKNOWLEDGMENT ? 16 : 12;
    if (protocol != 0x880b || !(flags & GRE_KEY) || !(flags & GRE_SEQUENCE))
        return stop(d, REASON_NOT_IP);
    if (!tunnel_has(d, length))
        return NEXT_END;
    uint32_t payload_length = load_be16(gre + 4);
    if (payload_length > d->end - d->offset - length)
        return stop(d, REASON_TUNNEL_BAD);
    if (!path_push(d->headers, PATH_GRE, load_be16(gre + 6)))
        return NEXT_END;
    d->offset += length;
    decoding_narrow(d, d->offset + payload_length);
    return NEXT_PPP;
}

enum next_header decode_gre(struct decoding *d, const uint8_t *gre) {
    uint16_t flags = load_be16(gre), protocol = load_be16(gre + 2), version = flags & GRE_VERSION;
    if (version > 1 || flags & GRE_ROUTING)
        return stop(d, REASON_NOT_IP);
    return (version ? decode_gre_v1 : decode_gre_v0)(d, gre, flags, protocol);
}

enum next_header decode_ip_tunnel(struct decoding *d, const uint8_t *header) {
    (void)header;
    uint8_t protocol = d->headers->protocol;
    if (protocol != IP_IPV4 && protocol != IP_IPV6 && protocol != IP_GRE && protocol != IP_MPLS)
        return NEXT_END;
    enter_tunnel(d, OUTER_IP);
    if (protocol == IP_GRE)
        return NEXT_GRE;
    if (protocol == IP_MPLS)
        return NEXT_MPLS;
    return path_push(d->headers, PATH_IPIP, 0) ? NEXT_IP : NEXT_END;
}

/* RFC 7348: only the I flag, all reserved bits 0; or the group policy extension (G flag, and its id
 * in the second word). A port number alone is weak evidence, so that the bits a receiver ignores
 * must be 0 too. */
static bool vxlan_is_valid(const uint8_t *vxlan) {
    bool plain = load_be32(vxlan) == 0x08000000;
    bool policy = (load_be32(vxlan) & 0xffb70000) == 0x88000000;
    bool generic = load_be32(vxlan) == 0x0c000003; /* GPE: the next protocol is Ethernet */
    return (plain || policy || generic) && vxlan[7] == 0;
}

enum next_header decode_vxlan(struct decoding *d, const uint8_t *vxlan) {
    if (!vxlan_is_valid(vxlan))
        return stop(d, REASON_TUNNEL_BAD);
    d->offset += 8;
    return path_push(d->headers, PATH_VXLAN, load_be32(vxlan + 4) >> 8) ? NEXT_ETHERNET : NEXT_END;
}

/* RFC 8926: version 0, options in words of 4 bytes, protocol, VNI, a reserved byte. */
enum next_header decode_geneve(struct decoding *d, const uint8_t *geneve) {
    uint32_t length = 8 + (geneve[0] & 0x3f) * 4u;
    if (geneve[0] >> 6 != 0 || geneve[7] != 0)
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, length) || !path_push(d->headers, PATH_GENEVE, load_be32(geneve + 4) >> 8))
        return NEXT_END;
    d->offset += length;
    return decode_bridged_or_routed(d, load_be16(geneve + 2));
}

/* The destination port alone is compared: source ports of tunnels are hashes of the inner flow (RFC
 * 7348 section 5, RFC 8926 section 3.3). */
enum next_header decode_udp_tunnel(struct decoding *d, const uint8_t *header) {
    (void)header;
    uint16_t port = d->headers->destination_port;
    bool vxlan = port == PORT_VXLAN || port == PORT_VXLAN_LINUX;
    if (!vxlan && port != PORT_GENEVE)
        return NEXT_END;
    enter_tunnel(d, OUTER_UDP);
    return vxlan ? NEXT_VXLAN : NEXT_GENEVE;
}
