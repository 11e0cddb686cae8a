/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes one packet: a loop in which each decoder returns the kind of the next header.
 *
 * Depth is bounded by path_push(): every kind of header that can contain itself is an
 * encapsulation, and a packet has at most PATH_DEPTH_MAX of them. A tunnel over IP or UDP that
 * comes to no IP packet is given up: the headers around it, saved in `outer`, are the result. Only
 * the innermost tunnel can come to that, because the packet around it is an IP packet. */
#include "decode/decode.h"

#define LINKTYPE_ETHERNET 1

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

static decoder *const decoders[NEXT_COUNT] = {
    [NEXT_IPV4] = decode_ipv4,
    [NEXT_TRANSPORT] = decode_transport,
    [NEXT_IPV6] = decode_ipv6,
    [NEXT_IP] = decode_ip,
    [NEXT_ETHERNET] = decode_ethernet,
    [NEXT_LLC] = decode_llc,
    [NEXT_PPP] = decode_ppp,
    [NEXT_VLAN] = decode_vlan,
    [NEXT_MPLS] = decode_mpls,
    [NEXT_PPPOE] = decode_pppoe,
    [NEXT_IP_TUNNEL] = decode_ip_tunnel,
    [NEXT_UDP_TUNNEL] = decode_udp_tunnel,
    [NEXT_ICMP] = decode_icmp,
};

static NOINLINE enum next_header decode_other_link(struct decoding *d, uint16_t link_type) {
    decoder *decode = link_decoder(link_type);
    if (!decode)
        decode = wlan_decoder(link_type);
    return decode ? decode(d) : stop(d, REASON_LINK_TYPE);
}

/* A tunnel over IP that holds another protocol is a whole packet of its own; one whose inner packet
 * is cut or malformed keeps that reason beside the outer addresses. A UDP port proves no tunnel, so
 * that the datagram is an ordinary one, unless it goes too deep. */
static NOINLINE void leave_tunnel(struct decoding *d) {
    enum decode_reason reason = d->headers->reason;
    bool understood = reason_answers[reason] != DECODE_NOT_UNDERSTOOD;
    memcpy(d->headers, d->outer.headers, sizeof d->outer.headers);
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
    d.headers = headers;
    d.outer.kind = OUTER_NONE;
    HEADERS_CLEAR(headers, answer, ip_version);
    headers->link_hash = 0;
    if (LIKELY(packet->link_type == LINKTYPE_ETHERNET))
        next = decode_ethernet_link(&d);
    else
        next = decode_other_link(&d, packet->link_type);
    /* The first two are compared so that they can be inlined; a call through the table cannot. */
    while (next != NEXT_END) {
        if (LIKELY(next == NEXT_IPV4))
            next = decode_ipv4(&d);
        else if (LIKELY(next == NEXT_TRANSPORT))
            next = decode_transport(&d);
        else
            next = decoders[next](&d);
    }
    if (d.outer.kind != OUTER_NONE && headers->layer < LAYER_NETWORK)
        leave_tunnel(&d);
    headers->answer = reason_answers[headers->reason];
    /* Fields of layers that were not reached read as 0, never as those of an earlier packet. */
    if (headers->layer < LAYER_NETWORK)
        HEADERS_CLEAR(headers, ip_version, link_hash);
}

const char *decode_reason_name(enum decode_reason reason) {
    return reason_names[reason];
}

enum decode_answer decode_reason_answer(enum decode_reason reason) {
    return reason_answers[reason];
}
