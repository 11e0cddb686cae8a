/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulations: VLAN, MPLS, PPPoE, and IP, GRE, VXLAN and Geneve over IP. */
#include "decode/decode.h"

#define ETHER_BRIDGED    0x6558 /* transparent Ethernet bridging */
#define PORT_VXLAN       4789
#define PORT_VXLAN_LINUX 8472 /* what Linux took before RFC 7348 */
#define PORT_GENEVE      6081

void decode_vlan(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 4, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    if (!path_push(d->headers, PATH_VLAN, load_be16(d->data + offset) & 0x0fff))
        return;
    decode_ether_type(d, offset + 4, load_be16(d->data + offset + 2));
}

static bool ether_type_known_at(const struct decoding *d, uint32_t offset) {
    return offset + 2 <= d->captured && ether_type_is_known(load_be16(d->data + offset));
}

/* After the bottom of the stack nothing names the payload. RFC 4928: IP shows its version in the
 * first nibble, a pseudo-wire's control word (RFC 4385) a 0. An Ethernet pseudo-wire may lack the
 * control word: its EtherType then stands four bytes earlier. */
static void decode_mpls_payload(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 1, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    uint8_t nibble = d->data[offset] >> 4;
    if (nibble == 4 || nibble == 6)
        decode_ip(d, offset);
    else if (nibble == 0 && !ether_type_known_at(d, offset + 12))
        decode_ethernet(d, offset + 4);
    else if (ether_type_known_at(d, offset + 12))
        decode_ethernet(d, offset);
    else
        d->headers->reason = REASON_NOT_IP;
}

void decode_mpls(struct decoding *d, uint32_t offset) {
    uint32_t entry;
    do {
        if (!decoding_has(d, offset, 4, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
            return;
        entry = load_be32(d->data + offset);
        if (!path_push(d->headers, PATH_MPLS, entry >> 12))
            return;
        offset += 4;
    } while (!(entry & 0x100)); /* bottom of stack */
    decode_mpls_payload(d, offset);
}

/* RFC 2516: version and type 1, code 0 for session data, session id, length. */
void decode_pppoe(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 6, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    const uint8_t *pppoe = d->data + offset;
    uint32_t length = load_be16(pppoe + 4);
    offset += 6;
    if (pppoe[0] != 0x11 || pppoe[1] != 0 || length > d->end - offset) {
        d->headers->reason = REASON_TUNNEL_BAD;
        return;
    }
    if (!path_push(d->headers, PATH_PPPOE, load_be16(pppoe + 2)))
        return;
    decoding_narrow(d, offset + length);
    decode_ppp(d, offset);
}

/* Decodes what a tunnel over IP holds. When that comes to no IP packet, the outer headers and
 * bounds are put back, and the inner reason returned; REASON_NONE: the inner packet is the packet.
 */
static enum decode_reason descend(struct decoding *d, uint32_t offset,
                                  layer_decoder *decode_inner) {
    struct headers *headers = d->headers;
    uint8_t outer[offsetof(struct headers, link_hash)];
    struct decoding bounds = *d;
    memcpy(outer, headers, sizeof outer);
    headers->layer = LAYER_LINK;
    decode_inner(d, offset);
    if (headers->layer >= LAYER_NETWORK)
        return REASON_NONE;
    enum decode_reason reason = headers->reason;
    memcpy(headers, outer, sizeof outer);
    *d = bounds;
    return reason;
}

static void decode_ip_in_ip(struct decoding *d, uint32_t offset) {
    if (path_push(d->headers, PATH_IPIP, 0))
        decode_ip(d, offset);
}

struct gre {
    uint16_t flags;
    uint16_t protocol;
    uint32_t key;
    uint32_t payload; /* offset */
};

enum gre_flag { /* RFC 2784, 2890; PPTP's RFC 2637 */
                GRE_CHECKSUM = 0x8000,
                GRE_ROUTING = 0x4000,
                GRE_KEY = 0x2000,
                GRE_SEQUENCE = 0x1000,
                GRE_ACKNOWLEDGMENT = 0x0080, /* version 1 */
                GRE_VERSION = 0x0007,
};

static void decode_gre_ethernet(struct decoding *d, const struct gre *gre, uint32_t erspan) {
    if (decoding_has(d, gre->payload, erspan, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        decode_ethernet(d, gre->payload + erspan);
}

/* Type I has no header and no sequence number, type II 8 bytes. */
static void decode_erspan(struct decoding *d, const struct gre *gre) {
    decode_gre_ethernet(d, gre, gre->flags & GRE_SEQUENCE ? 8 : 0);
}

/* Type III: 12 bytes; 8 more if the last bit is set; the frame type of Ethernet is 0. */
static void decode_erspan_v3(struct decoding *d, const struct gre *gre) {
    if (!decoding_has(d, gre->payload, 12, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    uint16_t word = load_be16(d->data + gre->payload + 10);
    if (word >> 10 & 0x1f)
        d->headers->reason = REASON_NOT_IP;
    else
        decode_gre_ethernet(d, gre, word & 1 ? 20 : 12);
}

static void decode_gre_payload(struct decoding *d, const struct gre *gre) {
    switch (gre->protocol) {
    case ETHER_BRIDGED: decode_ethernet(d, gre->payload); return;
    case 0x88be: decode_erspan(d, gre); return;
    case 0x22eb: decode_erspan_v3(d, gre); return;
    }
    if (ether_type_is_known(gre->protocol))
        decode_ether_type(d, gre->payload, gre->protocol);
    else
        d->headers->reason = REASON_NOT_IP;
}

static void decode_gre_v0(struct decoding *d, uint32_t offset, struct gre *gre) {
    uint32_t length = 4;
    length += gre->flags & GRE_CHECKSUM ? 4 : 0;
    uint32_t key = offset + length;
    length += gre->flags & GRE_KEY ? 4 : 0;
    length += gre->flags & GRE_SEQUENCE ? 4 : 0;
    if (!decoding_has(d, offset, length, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    gre->key = gre->flags & GRE_KEY ? load_be32(d->data + key) : 0;
    gre->payload = offset + length;
    if (path_push(d->headers, PATH_GRE, gre->key))
        decode_gre_payload(d, gre);
}

/* RFC 2637: the key is the payload's length and the call; without a sequence number there is none.
 */
static void decode_gre_v1(struct decoding *d, uint32_t offset, const struct gre *gre) {
    uint32_t length = gre->flags & GRE_ACKNOWLEDGMENT ? 16 : 12;
    if (gre->protocol != 0x880b || !(gre->flags & GRE_KEY) || !(gre->flags & GRE_SEQUENCE)) {
        d->headers->reason = REASON_NOT_IP;
        return;
    }
    if (!decoding_has(d, offset, length, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    uint32_t payload_length = load_be16(d->data + offset + 4);
    if (payload_length > d->end - offset - length) {
        d->headers->reason = REASON_TUNNEL_BAD;
        return;
    }
    if (!path_push(d->headers, PATH_GRE, load_be16(d->data + offset + 6)))
        return;
    decoding_narrow(d, offset + length + payload_length);
    decode_ppp(d, offset + length);
}

static void decode_gre(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 4, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    struct gre gre = {.flags = load_be16(d->data + offset),
                      .protocol = load_be16(d->data + offset + 2)};
    uint16_t version = gre.flags & GRE_VERSION;
    if (version > 1 || gre.flags & GRE_ROUTING)
        d->headers->reason = REASON_NOT_IP;
    else if (version == 1)
        decode_gre_v1(d, offset, &gre);
    else
        decode_gre_v0(d, offset, &gre);
}

static layer_decoder *ip_tunnel_find(uint8_t protocol) {
    switch (protocol) {
    case IP_IPV4:
    case IP_IPV6: return decode_ip_in_ip;
    case IP_GRE: return decode_gre;
    case IP_MPLS: return decode_mpls;
    default: return NULL;
    }
}

/* A tunnel that carries something other than IP is a whole packet of its own; one whose inner
 * packet is cut or malformed keeps that reason beside the outer addresses. */
void decode_ip_tunnel(struct decoding *d, uint32_t offset) {
    layer_decoder *decode_inner = ip_tunnel_find(d->headers->protocol);
    if (!decode_inner)
        return;
    enum decode_reason reason = descend(d, offset, decode_inner);
    if (reason == REASON_NONE)
        return;
    if (decode_reason_answer(reason) != DECODE_NOT_UNDERSTOOD || reason == REASON_DEPTH)
        d->headers->reason = reason;
}

/* RFC 7348: only the I flag, all reserved bits 0; or the group policy extension (G flag, and its id
 * in the second word). A port number alone is weak evidence, so that the bits a receiver ignores
 * count. */
static bool vxlan_is_valid(const uint8_t *vxlan) {
    bool plain = load_be32(vxlan) == 0x08000000;
    bool policy = (load_be32(vxlan) & 0xffb70000) == 0x88000000;
    bool generic = load_be32(vxlan) == 0x0c000003; /* GPE: the next protocol is told, Ethernet */
    return (plain || policy || generic) && vxlan[7] == 0;
}

static void decode_vxlan(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 8, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    const uint8_t *vxlan = d->data + offset;
    if (!vxlan_is_valid(vxlan)) {
        d->headers->reason = REASON_TUNNEL_BAD;
        return;
    }
    if (path_push(d->headers, PATH_VXLAN, load_be32(vxlan + 4) >> 8))
        decode_ethernet(d, offset + 8);
}

/* RFC 8926: version 0, options in words of 4 bytes, protocol, VNI, a reserved byte. */
static void decode_geneve(struct decoding *d, uint32_t offset) {
    if (!decoding_has(d, offset, 8, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT))
        return;
    const uint8_t *geneve = d->data + offset;
    uint32_t length = 8 + (geneve[0] & 0x3f) * 4u;
    uint16_t protocol = load_be16(geneve + 2);
    if (geneve[0] >> 6 != 0 || geneve[7] != 0) {
        d->headers->reason = REASON_TUNNEL_BAD;
        return;
    }
    if (!decoding_has(d, offset, length, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT) ||
        !path_push(d->headers, PATH_GENEVE, load_be32(geneve + 4) >> 8))
        return;
    if (protocol == ETHER_BRIDGED)
        decode_ethernet(d, offset + length);
    else if (ether_type_is_known(protocol))
        decode_ether_type(d, offset + length, protocol);
    else
        d->headers->reason = REASON_NOT_IP;
}

static layer_decoder *udp_tunnel_find(uint16_t port) {
    switch (port) {
    case PORT_VXLAN:
    case PORT_VXLAN_LINUX: return decode_vxlan;
    case PORT_GENEVE: return decode_geneve;
    default: return NULL;
    }
}

/* A port is only a hint: without an IP packet inside, the datagram is an ordinary one. */
void decode_udp_tunnel(struct decoding *d, uint32_t offset) {
    layer_decoder *decode_inner = udp_tunnel_find(d->headers->destination_port);
    if (!decode_inner)
        return;
    if (descend(d, offset, decode_inner) == REASON_DEPTH)
        d->headers->reason = REASON_DEPTH;
}
