/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels over UDP: VXLAN (RFC 7348) with GPE (draft-ietf-nvo3-vxlan-gpe), Geneve (RFC 8926), GTP-U
 * (3GPP TS 29.281), Teredo (RFC 4380), AYIYA (draft-massar-v6ops-ayiya), CAPWAP data (RFC 5415),
 * MPLS (RFC 7510), LISP (RFC 9300) and AMT (RFC 7450). L2TP is in l2tp.c.
 *
 *   VXLAN                    Geneve                            GTP-U
 *   OFFSET SIZE              OFFSET SIZE                       OFFSET SIZE
 *   0      1    flags        0      1    version, options      0      1    version, flags
 *   1      2    reserved     1      1    flags                 1      1    type, 255 for a packet
 *   3      1    GPE: next    2      2    protocol              2      2    length without 8 bytes
 *   4      3    VNI          4      3    VNI                   4      4    TEID
 *   7      1    reserved     7      1    reserved              8      4    options, extensions
 *
 *   AYIYA                              CAPWAP
 *   OFFSET SIZE                        OFFSET SIZE
 *   0      2    sizes of identity      0      1    version, type
 *               and signature          1      3    length, radio, binding, flags
 *   2      1    method, operation      4      4    fragment
 *   3      1    next header            8      ..   radio, up to the length
 *   4      4    time
 *
 *   LISP                               AMT
 *   OFFSET SIZE                        OFFSET SIZE
 *   0      1    flags                  0      1    version, type
 *   1      3    nonce                  1      ..   of a query or update: reserved, MAC, nonce
 *   4      3    instance               2 or 12     IP packet
 *   7      1    locator bits
 *
 * A port number is weak evidence: an ordinary datagram must never become a tunnel. So the header
 * must be valid, and an IP packet without Ethernet in front must have the length of the rest. If
 * the tunnel holds no IP packet, the datagram is an ordinary one. */
#include "decode/step.h"

#define ETHER_PADDING 46 /* a payload under 46 bytes is padded */
#define TEREDO_PREFIX 0x20010000

bool frame_fills(const struct decoding *d, uint32_t offset) {
    uint32_t type_at = offset + 12;
    if ((uint64_t)type_at + 6 <= d->captured && load_be16(d->data + type_at) == 0x8100)
        type_at += 4;
    if ((uint64_t)type_at + 2 > d->captured)
        return false;
    uint16_t type = load_be16(d->data + type_at);
    return (type == 0x0800 || type == 0x86dd) && ip_fills(d, type_at + 2, ETHER_PADDING);
}

/* Only the I flag is required: RFC 7348 section 5, reserved bits "MUST be ignored on receipt", and
 * some clouds set them. If they are set, the frame must be evident. The group policy extension
 * has a G flag and its id in the reserved bits. */
static bool vxlan_is_valid(const struct decoding *d, const uint8_t *vxlan) {
    bool plain = load_be32(vxlan) == 0x08000000;
    bool policy = (load_be32(vxlan) & 0xffb70000) == 0x88000000;
    if ((plain || policy) && vxlan[7] == 0)
        return true;
    return vxlan[0] & 0x08 && frame_fills(d, d->offset + 8);
}

/* The P flag with version 0 and no O flag, and a protocol, which is 0 in VXLAN itself. */
static bool vxlan_is_gpe(const uint8_t *vxlan) {
    return (vxlan[0] & 0xf5) == 0x04 && load_be16(vxlan + 1) == 0 && service_next(vxlan[3]);
}

enum next_header decode_vxlan_gpe(struct decoding *d, const uint8_t *vxlan) {
    enum next_header next = service_next(vxlan[3]);
    d->offset += 8;
    if (!vxlan_is_gpe(vxlan) || (next <= NEXT_IP && !ip_fills(d, d->offset, 0)))
        return stop(d, REASON_TUNNEL_BAD);
    return path_push(d->headers, PATH_VXLAN, load_be32(vxlan + 4) >> 8) ? next : NEXT_END;
}

enum next_header decode_vxlan(struct decoding *d, const uint8_t *vxlan) {
    if (vxlan_is_gpe(vxlan))
        return NEXT_VXLAN_GPE;
    if (!vxlan_is_valid(d, vxlan))
        return stop(d, REASON_TUNNEL_BAD);
    d->offset += 8;
    return path_push(d->headers, PATH_VXLAN, load_be32(vxlan + 4) >> 8) ? NEXT_ETHERNET : NEXT_END;
}

/* Version 0, options in words of 4 bytes. The reserved byte must be ignored (section 3.4). */
enum next_header decode_geneve(struct decoding *d, const uint8_t *geneve) {
    uint32_t length = 8 + (geneve[0] & 0x3f) * 4u;
    if (geneve[0] >> 6 != 0)
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, length) || !path_push(d->headers, PATH_GENEVE, load_be32(geneve + 4) >> 8))
        return NEXT_END;
    d->offset += length;
    return decode_bridged_or_routed(d, load_be16(geneve + 2));
}

/* An IP packet that fills the rest of the datagram. */
static enum next_header tunnelled_ip(struct decoding *d, enum path_kind kind) {
    if (!ip_fills(d, d->offset, 0))
        return stop(d, REASON_TUNNEL_BAD);
    return path_push(d->headers, kind, 0) ? NEXT_IP : NEXT_END;
}

enum gtp_flag { GTP_VERSION = 0xf0, GTP_EXTENSION = 0x04, GTP_OPTIONS = 0x07 };

/* TS 29.281, 5.2.1: each extension header has its length in words of 4 bytes first, and the type of
 * the next one last. */
static bool skip_gtp_extensions(struct decoding *d, uint8_t type) {
    for (int count = 0; type; count++) {
        uint32_t length = d->offset < d->captured ? d->data[d->offset] * 4u : 0;
        if (count == EXTENSIONS_MAX || length == 0 || !tunnel_has(d, length))
            return false;
        d->offset += length;
        type = d->data[d->offset - 1];
    }
    return true;
}

/* Sequence number, N-PDU number and type of the first extension header are present together. */
enum next_header decode_gtp_u(struct decoding *d, const uint8_t *gtp) {
    uint32_t length = load_be16(gtp + 2);
    d->offset += 8;
    if ((gtp[0] & GTP_VERSION) != 0x30 || gtp[1] != 255 || length > d->end - d->offset)
        return stop(d, REASON_TUNNEL_BAD);
    decoding_narrow(d, d->offset + length);
    if (gtp[0] & GTP_OPTIONS) {
        if (!tunnel_has(d, 4))
            return NEXT_END;
        d->offset += 4;
        if (!skip_gtp_extensions(d, gtp[0] & GTP_EXTENSION ? gtp[11] : 0))
            return stop(d, REASON_TUNNEL_BAD);
    }
    return tunnelled_ip(d, PATH_GTP_U);
}

/* RFC 4380, 5.1.1: authentication (0001) with two sizes, 8 bytes and a confirmation; then the
 * origin's port and address (0000). The first 4 bytes are at hand. */
static uint32_t teredo_indications(const struct decoding *d, const uint8_t *teredo) {
    uint32_t length = load_be16(teredo) == 1 ? 13u + teredo[2] + teredo[3] : 0;
    bool has_origin = d->offset + (uint64_t)length + 2 <= d->captured;
    return has_origin && load_be16(teredo + length) == 0 ? length + 8 : length;
}

enum next_header decode_teredo(struct decoding *d, const uint8_t *teredo) {
    uint32_t length = teredo_indications(d, teredo);
    if (!tunnel_has(d, length + 1))
        return NEXT_END;
    d->offset += length;
    if (d->data[d->offset] >> 4 != 6)
        return stop(d, REASON_TUNNEL_BAD);
    return tunnelled_ip(d, PATH_TEREDO);
}

/* A peer of a Teredo client has any port: then an address must have the prefix of Teredo. */
static bool holds_teredo(const struct decoding *d, const uint8_t *ip) {
    if (d->captured - d->offset < IPV6_HEADER || ip[0] >> 4 != 6 || !ip_fills(d, d->offset, 0))
        return false;
    return load_be32(ip + 8) == TEREDO_PREFIX || load_be32(ip + 24) == TEREDO_PREFIX;
}

/* The identity has 2^n bytes, the signature a multiple of 4. Operation 1 forwards a packet. */
enum next_header decode_ayiya(struct decoding *d, const uint8_t *ayiya) {
    uint32_t length = 8 + (1u << (ayiya[0] >> 4)) + (ayiya[1] >> 4) * 4u;
    bool forwards = (ayiya[2] & 0x0f) == 1;
    if (!forwards || (ayiya[3] != IP_IPV6 && ayiya[3] != IP_IPV4))
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, length + 1))
        return NEXT_END;
    d->offset += length;
    if (d->data[d->offset] >> 4 != (ayiya[3] == IP_IPV6 ? 6 : 4))
        return stop(d, REASON_TUNNEL_BAD);
    return tunnelled_ip(d, PATH_AYIYA);
}

enum capwap_flag { /* RFC 5415, 4.3: of the first word */
                   CAPWAP_NATIVE = 0x100,
                   CAPWAP_FRAGMENT = 0x080,
                   CAPWAP_KEEP_ALIVE = 0x008,
                   CAPWAP_PREAMBLE = 0xff000000,
};

/* Frame control of a data frame: type 2 and version 0 in its first byte, or in the second one. */
static enum next_header wlan_of_capwap(struct decoding *d) {
    if (!tunnel_has(d, 2))
        return NEXT_END;
    const uint8_t *control = d->data + d->offset;
    bool swapped = (control[0] & 0x0f) != 0x08 && (control[1] & 0x0f) == 0x08;
    return swapped ? NEXT_WLAN_SWAPPED : NEXT_WLAN;
}

/* Returns whether a frame of Ethernet has an IPv4 packet that continues in further fragments. */
static bool frame_begins(const struct decoding *d) {
    uint32_t at = d->offset + ETHERNET_HEADER;
    return (uint64_t)at + IPV4_HEADER <= d->captured && load_be16(d->data + at - 2) == 0x0800 &&
           d->data[at] == 0x45 && load_be16(d->data + at + 2) > d->end - at &&
           checksum_is_right(d->data + at, IPV4_HEADER);
}

/* The first fragment counts for the whole packet, by the IP length, because packets of usual size
 * do not fit into one datagram; further ones are ordinary datagrams. */
static enum next_header capwap_frame(struct decoding *d, bool native, bool is_fragment) {
    bool evident = native || (is_fragment ? frame_begins(d) : frame_fills(d, d->offset));
    if (!evident)
        return stop(d, REASON_TUNNEL_BAD);
    if (is_fragment && d->end < UINT32_MAX - UINT16_MAX)
        d->end = d->offset + UINT16_MAX;
    return native ? wlan_of_capwap(d) : NEXT_ETHERNET;
}

/* The preamble is 0 (1 would be DTLS). Native frames are those of the binding, 1 for 802.11; some
 * controllers write 0. */
enum next_header decode_capwap(struct decoding *d, const uint8_t *capwap) {
    uint32_t word = load_be32(capwap), length = (word >> 19 & 0x1f) * 4, binding = word >> 9 & 0x1f;
    bool native = word & CAPWAP_NATIVE, is_fragment = word & CAPWAP_FRAGMENT;
    if (word & (CAPWAP_PREAMBLE | CAPWAP_KEEP_ALIVE) || length < 8 || (native && binding > 1) ||
        (is_fragment && load_be16(capwap + 6) >> 3))
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, length) || !path_push(d->headers, PATH_CAPWAP, 0))
        return NEXT_END;
    d->offset += length;
    return capwap_frame(d, native, is_fragment);
}

/* RFC 9300 section 5.3: the I flag shows an instance, which is a VPN. */
enum next_header decode_lisp(struct decoding *d, const uint8_t *lisp) {
    uint32_t instance = lisp[0] & 0x08 ? load_be32(lisp + 4) >> 8 : 0;
    d->offset += 8;
    if (!ip_fills(d, d->offset, 0))
        return stop(d, REASON_TUNNEL_BAD);
    return path_push(d->headers, PATH_LISP, instance) ? NEXT_IP : NEXT_END;
}

enum amt_type { AMT_QUERY = 4, AMT_UPDATE = 5, AMT_DATA = 6 };
#define AMT_GATEWAY 18 /* bytes of port and address behind the packet of a query */

/* RFC 7450 section 5.1: version 0 and the type. */
enum next_header decode_amt(struct decoding *d, const uint8_t *amt) {
    uint8_t type = amt[0];
    if (type != AMT_QUERY && type != AMT_UPDATE && type != AMT_DATA)
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, type == AMT_DATA ? 2 : 12))
        return NEXT_END;
    d->offset += type == AMT_DATA ? 2 : 12;
    if (!ip_fills(d, d->offset, type == AMT_QUERY ? AMT_GATEWAY : 0))
        return stop(d, REASON_TUNNEL_BAD);
    return path_push(d->headers, PATH_AMT, 0) ? NEXT_IP : NEXT_END;
}

/* The payload below the bottom of the stack must be IP, or Ethernet with or without a control
 * word. */
static bool labels_hold_ip(const struct decoding *d) {
    uint32_t at = d->offset;
    for (int labels = 0; labels < SHIMS_MAX; labels++) {
        if ((uint64_t)at + 4 > d->captured)
            return false;
        at += 4;
        if (d->data[at - 2] & 1)
            return ip_fills(d, at, 0) || frame_fills(d, at) || frame_fills(d, at + 4);
    }
    return false;
}

enum next_header decode_udp_mpls(struct decoding *d, const uint8_t *mpls) {
    (void)mpls;
    if (!labels_hold_ip(d))
        return stop(d, REASON_TUNNEL_BAD);
    return path_push(d->headers, PATH_MPLS, 0) ? NEXT_MPLS : NEXT_END;
}

enum next_header tunnel_to(uint16_t port) {
    switch (port) {
    case 1701: return NEXT_UDP_L2TP;
    case 2152: return NEXT_GTP_U;
    case 2268: return NEXT_AMT;
    case 3544: return NEXT_TEREDO;
    case 4341: return NEXT_LISP;
    case 4789:
    case 8472: return NEXT_VXLAN; /* Linux's port before RFC 7348 */
    case 4790: return NEXT_VXLAN_GPE;
    case 5072: return NEXT_AYIYA;
    case 5247: return NEXT_CAPWAP;
    case 6081: return NEXT_GENEVE;
    case 6635: return NEXT_UDP_MPLS;
    default: return NEXT_END;
    }
}

/* A server answers from its port. Source ports of most tunnels are hashes of the inner flow (RFC
 * 7348 section 5, RFC 8926 section 3.3). */
static enum next_header tunnel_from(uint16_t port) {
    enum next_header next = tunnel_to(port);
    bool answers = next == NEXT_TEREDO || next == NEXT_AYIYA || next == NEXT_CAPWAP ||
                   next == NEXT_AMT || next == NEXT_UDP_L2TP;
    return answers ? next : NEXT_END;
}

enum next_header decode_udp_tunnel(struct decoding *d, const uint8_t *payload) {
    enum next_header next = tunnel_to(d->headers->destination_port);
    if (!next)
        next = tunnel_from(d->headers->source_port);
    if (!next && holds_teredo(d, payload))
        next = NEXT_TEREDO;
    if (!next)
        return NEXT_END;
    enter_tunnel(d, OUTER_UDP);
    d->headers->udp_tunnel = true;
    d->headers->tunnel_offset = d->headers->outer_length;
    return next;
}
