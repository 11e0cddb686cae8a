/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes one packet: a loop in which each decoder returns the kind of the next header.
 *
 * Depth is bounded by path_push() and shim_pass(): every kind of header that can contain itself is
 * counted there, at most PATH_DEPTH_MAX and SHIMS_MAX in a packet. A tunnel over IP or UDP that
 * comes to no IP packet is given up: the headers around it, saved in `outer`, are the result. Only
 * the innermost tunnel can come to that, because the packet around it is an IP packet. */
#include "decode/decode.h"

static const uint8_t reason_answers[REASON_COUNT] = {
#define X(symbol, answer, name) DECODE_##answer,
    DECODE_REASONS(X)
#undef X
};

static const char *const reason_names[REASON_COUNT] = {
#define X(symbol, answer, name) name,
    DECODE_REASONS(X)
#undef X
};

#define LINK(decode, least)                                                                        \
    { decode, least, REASON_LINK_CUT, REASON_LINK_SHORT }
#define TUNNEL(decode, least)                                                                      \
    { decode, least, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT }
#define IP(decode, least)                                                                          \
    { decode, least, REASON_IP_CUT, REASON_IP_SHORT }

/* The headers that decode_packet() does not decode itself. */
static const struct kind {
    decoder *decode;
    uint8_t least;       /* bytes that must be at hand */
    uint8_t cut, absent; /* the reason if they were on the wire, or not */
} kinds[NEXT_COUNT] = {
    [NEXT_IPV6] = IP(decode_ipv6, IPV6_HEADER),
    [NEXT_IP] = IP(decode_ip, 1),
    [NEXT_ETHERNET] = LINK(decode_ethernet, ETHERNET_HEADER),
    [NEXT_COOKED] = LINK(decode_cooked, 16),
    [NEXT_COOKED_2] = LINK(decode_cooked_2, 20),
    [NEXT_LOOPBACK] = LINK(decode_loopback, 4),
    [NEXT_SERIAL] = LINK(decode_serial, 1),
    [NEXT_CISCO_HDLC] = LINK(decode_cisco_hdlc, 4),
    [NEXT_PPP] = LINK(decode_ppp, 2),
    [NEXT_WLAN] = LINK(decode_wlan, 2),
    [NEXT_WLAN_PADDED] = LINK(decode_wlan_padded, 2),
    [NEXT_WLAN_SWAPPED] = LINK(decode_wlan_swapped, 2),
    [NEXT_RADIOTAP] = LINK(decode_radiotap, 8),
    [NEXT_PPI] = LINK(decode_ppi, 8),
    [NEXT_PRISM] = LINK(decode_prism, 8),
    [NEXT_LLC] = LINK(decode_llc, 3),
    [NEXT_VLAN] = TUNNEL(decode_vlan, 4),
    [NEXT_MPLS] = TUNNEL(decode_mpls, 4),
    [NEXT_MPLS_PAYLOAD] = TUNNEL(decode_mpls_payload, 1),
    [NEXT_PPPOE] = TUNNEL(decode_pppoe, 6),
    [NEXT_METADATA] = TUNNEL(decode_metadata, 2),
    [NEXT_VN_TAG] = TUNNEL(decode_vn_tag, 4),
    [NEXT_E_TAG] = TUNNEL(decode_e_tag, 6),
    [NEXT_FABRIC_PATH] = TUNNEL(decode_fabric_path, 2),
    [NEXT_PBB] = TUNNEL(decode_pbb, 4),
    [NEXT_NSH] = TUNNEL(decode_nsh, 8),
    [NEXT_ARISTA] = TUNNEL(decode_arista, 4),
    [NEXT_MACSEC] = TUNNEL(decode_macsec, 6),
    [NEXT_IP_TUNNEL] = TUNNEL(decode_ip_tunnel, 0),
    [NEXT_UDP_TUNNEL] = TUNNEL(decode_udp_tunnel, 0),
    [NEXT_GRE] = TUNNEL(decode_gre, 4),
    [NEXT_ETHER_IP] = TUNNEL(decode_ether_ip, 2),
    [NEXT_PIM] = TUNNEL(decode_pim, 1),
    [NEXT_VXLAN] = TUNNEL(decode_vxlan, 8),
    [NEXT_VXLAN_GPE] = TUNNEL(decode_vxlan_gpe, 8),
    [NEXT_GENEVE] = TUNNEL(decode_geneve, 8),
    [NEXT_GTP_U] = TUNNEL(decode_gtp_u, 8),
    [NEXT_TEREDO] = TUNNEL(decode_teredo, 6),
    [NEXT_AYIYA] = TUNNEL(decode_ayiya, 8),
    [NEXT_CAPWAP] = TUNNEL(decode_capwap, 8),
    [NEXT_UDP_MPLS] = TUNNEL(decode_udp_mpls, 4),
    [NEXT_LISP] = TUNNEL(decode_lisp, 8),
    [NEXT_AMT] = TUNNEL(decode_amt, 2),
    [NEXT_L2TP] = TUNNEL(decode_l2tp, 4),
    [NEXT_UDP_L2TP] = TUNNEL(decode_udp_l2tp, 8),
    [NEXT_ICMP] = {decode_icmp, 8, REASON_TRANSPORT_CUT, REASON_TRANSPORT_SHORT},
};

static NOINLINE enum next_header decode_other(struct decoding *d, enum next_header next) {
    const struct kind *kind = &kinds[next];
    bool has = decoding_has(d, d->offset, kind->least, kind->cut, kind->absent);
    return has ? kind->decode(d, d->data + d->offset) : NEXT_END;
}

/* A tunnel over IP that holds another protocol is a whole packet of its own; one whose inner packet
 * is cut or malformed keeps that reason beside the outer addresses. A UDP port proves no tunnel, so
 * that the datagram is an ordinary one, unless it goes too deep. */
static NOINLINE void leave_tunnel(struct decoding *d) {
    enum decode_reason reason = d->headers->reason;
    uint32_t undecoded = d->headers->undecoded;
    bool understood = reason_answers[reason] != DECODE_NOT_UNDERSTOOD;
    memcpy(d->headers, d->outer.headers, sizeof d->outer.headers);
    d->headers->undecoded = undecoded;
    if (reason == REASON_DEPTH || (understood && d->outer.kind == OUTER_IP))
        d->headers->reason = reason;
}

/* Flattened: Ethernet, IPv4 and TCP are one function; all else is kept out of it (NOINLINE). */
__attribute__((flatten)) void decode_packet(const struct packet *packet, struct headers *headers) {
    struct decoding d;
    enum next_header next;
    d.data = packet->data;
    d.offset = 0;
    d.captured = packet->captured;
    /* A record that claims fewer bytes on the wire than it holds has at least those it holds. */
    d.end = packet->length > packet->captured ? packet->length : packet->captured;
    d.is_narrowed = false;
    d.headers = headers;
    d.shims = 0;
    d.outer.kind = OUTER_NONE;
    HEADERS_CLEAR(headers, undecoded, ip_version);
    headers->link_hash = 0;
    if (LIKELY(packet->link_type == LINKTYPE_ETHERNET))
        next = decode_ethernet_link(&d);
    else
        next = begin_link(&d, packet->link_type);
    /* The first two are compared so that they can be inlined; a call through the table cannot. */
    while (next != NEXT_END) {
        if (LIKELY(next == NEXT_IPV4))
            next = decode_ipv4(&d);
        else if (LIKELY(next == NEXT_TRANSPORT))
            next = decode_transport(&d);
        else
            next = decode_other(&d, next);
    }
    if (d.outer.kind != OUTER_NONE && headers->layer < LAYER_NETWORK)
        leave_tunnel(&d);
    headers->answer = reason_answers[headers->reason];
    /* Fields of layers that were not reached read as 0, never as those of an earlier packet. */
    if (headers->layer < LAYER_NETWORK)
        HEADERS_CLEAR(headers, ip_version, link_hash);
}

/* A UDP port proves no tunnel: the headers inside one that held no IP packet are payload. */
static size_t forget_tunnel(const struct decoding *d, const struct decode_step *steps,
                            size_t count) {
    size_t kept = count;
    if (d->outer.kind == OUTER_UDP && d->headers->layer < LAYER_NETWORK)
        while (kept && steps[--kept].kind != NEXT_UDP_TUNNEL)
            continue;
    return kept;
}

size_t decode_steps(const struct packet *packet, struct decode_step steps[DECODE_STEPS_MAX]) {
    struct headers headers = {0};
    struct decoding d = {.data = packet->data, .captured = packet->captured, .headers = &headers};
    size_t count = 0;
    d.end = packet->length > packet->captured ? packet->length : packet->captured;
    enum next_header next = NEXT_ETHERNET;
    if (packet->link_type != LINKTYPE_ETHERNET)
        next = begin_link(&d, packet->link_type);
    while (next != NEXT_END && count < DECODE_STEPS_MAX) {
        struct decode_step *step = &steps[count++];
        *step = (struct decode_step){next,  headers.protocol, headers.fragment, d.offset,
                                     d.end, d.offset};
        if (next == NEXT_IPV4)
            next = decode_ipv4(&d);
        else if (next == NEXT_TRANSPORT)
            next = decode_transport(&d);
        else
            next = decode_other(&d, next);
        step->behind = d.offset;
    }
    return forget_tunnel(&d, steps, count);
}

const char *decode_reason_name(enum decode_reason reason) {
    return reason_names[reason];
}

enum decode_answer decode_reason_answer(enum decode_reason reason) {
    return reason_answers[reason];
}
