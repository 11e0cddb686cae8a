/* SPDX-License-Identifier: Apache-2.0 */
/* One step of decoding: the packet while it is decoded, and one function for each kind of header.
 *
 * decode.c checks that the least bytes of a header are at hand. A decoder reads the header at
 * d->offset, moves d->offset behind it and returns the kind of the header that follows. It returns
 * NEXT_END if none follows; if that is not the usual end of a packet, headers->reason says why.
 * Decoders must not call one another across files. */
#ifndef WIRETALE_DECODE_STEP_H
#define WIRETALE_DECODE_STEP_H

#include <stddef.h>

#include "base/bytes.h"
#include "decode/headers.h"

#define IPV4_HEADER     20
#define IPV6_HEADER     40
#define EXTENSIONS_MAX  16 /* IPv6 or GTP-U extension headers followed in one packet */
#define SHIMS_MAX       8  /* headers without a step in the path, more is REASON_DEPTH */
#define ETHERNET_HEADER 14
#define ETHER_TYPE_MIN  0x0600 /* IEEE 802.3: a lower value is a length */

enum next_header {
    NEXT_END,
    NEXT_IPV4,
    NEXT_TRANSPORT, /* headers->protocol names it */
    NEXT_IPV6,
    NEXT_IP, /* the version is in the first nibble */
    NEXT_ETHERNET,
    NEXT_COOKED,
    NEXT_COOKED_2,
    NEXT_LOOPBACK,
    NEXT_SERIAL, /* Cisco HDLC or PPP */
    NEXT_CISCO_HDLC,
    NEXT_PPP,
    NEXT_WLAN,
    NEXT_WLAN_PADDED,  /* behind its header, up to a multiple of 4 bytes */
    NEXT_WLAN_SWAPPED, /* with both bytes of frame control exchanged */
    NEXT_RADIOTAP,
    NEXT_PPI,
    NEXT_PRISM,
    NEXT_LLC, /* IEEE 802.2 */
    NEXT_VLAN,
    NEXT_MPLS,
    NEXT_MPLS_PAYLOAD,
    NEXT_PPPOE,
    NEXT_METADATA, /* the first of those in shim.c */
    NEXT_VN_TAG,
    NEXT_E_TAG,
    NEXT_FABRIC_PATH,
    NEXT_PBB,
    NEXT_NSH,
    NEXT_ARISTA,
    NEXT_MACSEC,
    NEXT_IP_TUNNEL,  /* headers->protocol names it */
    NEXT_UDP_TUNNEL, /* headers->destination_port names it */
    NEXT_GRE,
    NEXT_ETHER_IP,
    NEXT_PIM,
    NEXT_VXLAN,
    NEXT_VXLAN_GPE,
    NEXT_GENEVE,
    NEXT_GTP_U,
    NEXT_TEREDO,
    NEXT_AYIYA,
    NEXT_CAPWAP,
    NEXT_UDP_MPLS,
    NEXT_LISP,
    NEXT_AMT,
    NEXT_L2TP,
    NEXT_UDP_L2TP,
    NEXT_ICMP,
    NEXT_COUNT
};

/* The packet around a tunnel: the result if the tunnel holds no IP packet. */
struct outer_packet {
    enum { OUTER_NONE, OUTER_IP, OUTER_UDP } kind;
    uint8_t headers[offsetof(struct headers, link_hash)];
};

struct decoding {
    const uint8_t *data;
    uint32_t offset;   /* of the header at hand, in bytes from data; <= captured */
    uint32_t captured; /* bytes in the file, up to `end` */
    uint32_t end;      /* where the enclosing layer ends on the wire, in bytes from data */
    uint32_t shims;    /* headers that shim_pass() counted */
    bool is_narrowed;  /* a length field below has set `end`, not the record */
    struct headers *headers;
    struct outer_packet outer; /* the innermost; outer.headers is unset for OUTER_NONE */
};

/* `header` is at d->offset; the least bytes of its kind (decode.c) are at hand. */
typedef enum next_header decoder(struct decoding *d, const uint8_t *header);

static inline enum next_header stop(struct decoding *d, enum decode_reason reason) {
    d->headers->reason = reason;
    return NEXT_END;
}

/* Stops at a protocol that is not decoded. */
static inline enum next_header stop_at(struct decoding *d, enum decode_reason reason,
                                       enum undecoded kind, uint16_t number) {
    d->headers->undecoded = (uint32_t)kind << 16 | number;
    return stop(d, reason);
}

/* Returns whether [offset, offset + bytes) was captured. If not, the reason is `cut` if the wire
 * had those bytes, else `absent`. */
static inline bool decoding_has(struct decoding *d, uint32_t offset, uint32_t bytes,
                                enum decode_reason cut, enum decode_reason absent) {
    uint64_t last = (uint64_t)offset + bytes;
    if (LIKELY(last <= d->captured))
        return true;
    d->headers->reason = last <= d->end ? cut : absent;
    return false;
}

/* Returns whether `bytes` of the header at d->offset were captured; else with a reason set. */
static inline bool link_has(struct decoding *d, uint32_t bytes) {
    return decoding_has(d, d->offset, bytes, REASON_LINK_CUT, REASON_LINK_SHORT);
}

static inline bool tunnel_has(struct decoding *d, uint32_t bytes) {
    return decoding_has(d, d->offset, bytes, REASON_TUNNEL_CUT, REASON_TUNNEL_SHORT);
}

/* The next layer ends at `end`, not after the one below: padding or a trailer follows. */
static inline void decoding_narrow(struct decoding *d, uint32_t end) {
    d->end = end;
    d->is_narrowed = true;
    if (d->captured > end)
        d->captured = end;
}

/* Returns whether `length` bytes from d->offset end within the enclosing layer. If that is the
 * record alone, they do: a tool or a mirror port cut the packet and wrote the shorter length into
 * the record, so that the rest counts as cut, like that of a snap length. */
static inline bool decoding_fits(struct decoding *d, uint32_t length) {
    if (LIKELY(length <= d->end - d->offset))
        return true;
    if (d->is_narrowed || length > UINT32_MAX - d->offset)
        return false;
    d->end = d->offset + length;
    d->headers->length_over_record = true;
    return true;
}

/* Reads an IEEE 802.3 length: `length` bytes from d->offset begin with an 802.2 header, and
 * Ethernet padding may follow. A length over the frame's rest is REASON_LINK_BAD. */
static inline enum next_header decode_802_3(struct decoding *d, uint32_t length) {
    if (length > d->end - d->offset)
        return stop(d, REASON_LINK_BAD);
    decoding_narrow(d, d->offset + length);
    return NEXT_LLC;
}

/* Sets the fields from member `from` up to member `until`, which is kept, to 0. */
#define HEADERS_CLEAR(headers, from, until)                                                        \
    memset((uint8_t *)(headers) + offsetof(struct headers, from), 0,                               \
           offsetof(struct headers, until) - offsetof(struct headers, from))

/* The payload begins at `offset`, which may be past the bytes at hand. */
static inline void decoding_payload(struct decoding *d, uint32_t offset) {
    uint32_t start = offset < d->captured ? offset : d->captured;
    d->headers->payload = d->data + start;
    d->headers->payload_captured = d->captured - start;
    d->headers->payload_length = d->end - offset;
}

/* Adds an encapsulation. This and shim_pass() are the bounds on the depth of a packet: whatever can
 * contain a header of its own kind passes here. Returns false with REASON_DEPTH above
 * PATH_DEPTH_MAX. */
static inline bool path_push(struct headers *headers, enum path_kind kind, uint32_t id) {
    if (headers->path_depth == PATH_DEPTH_MAX) {
        headers->reason = REASON_DEPTH;
        return false;
    }
    headers->path[headers->path_depth++] = (struct path_step){.kind = kind, .id = id};
    return true;
}

/* Counts a header that adds no step, because it does not distinguish flows. Returns false with
 * REASON_DEPTH above SHIMS_MAX. */
static inline bool shim_pass(struct decoding *d) {
    if (d->shims == SHIMS_MAX) {
        d->headers->reason = REASON_DEPTH;
        return false;
    }
    d->shims++;
    return true;
}

/* The packet so far is kept: decode_packet() returns to it if the tunnel holds no IP packet. `kind`
 * is that of struct outer_packet. */
static inline void enter_tunnel(struct decoding *d, int kind) {
    d->outer.kind = kind;
    memcpy(d->outer.headers, d->headers, sizeof d->outer.headers);
    d->headers->layer = LAYER_LINK;
}

/* A hash of two addresses of 6 bytes. The odd factors are those of splitmix64 and xxHash. */
static inline uint32_t link_hash(const uint8_t *addresses) {
    uint64_t mixed = load_le64(addresses) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ load_le32(addresses + 8)) * 0xc2b2ae3d27d4eb4fu;
    return (uint32_t)(mixed >> 32);
}

/* link_types.c */
NOINLINE enum next_header begin_link(struct decoding *d, uint16_t number); /* of the link type */

/* link.c */
enum next_header decode_ethernet_link(struct decoding *d); /* checks its length, sets link_hash */
decoder decode_ethernet, decode_cooked, decode_cooked_2, decode_loopback, decode_serial;
decoder decode_cisco_hdlc, decode_ppp, decode_llc;
/* Returns what follows a network protocol identifier (ISO/IEC TR 9577), at least 1 byte of which
 * must be at hand. */
enum next_header decode_nlpid(struct decoding *d);
/* Returns what follows an EtherType, with the offset behind it. A value below 0x0600 is a length
 * (IEEE 802.3). */
enum next_header decode_ether_type(struct decoding *d, uint16_t type);
/* Returns NEXT_END for an EtherType that is not decoded. */
enum next_header ether_type_next(uint16_t type);

/* ieee80211.c */
decoder decode_wlan, decode_wlan_padded, decode_wlan_swapped;
decoder decode_radiotap, decode_ppi, decode_prism;

/* shim.c */
decoder decode_metadata, decode_vn_tag, decode_e_tag, decode_fabric_path, decode_pbb, decode_nsh;
decoder decode_arista, decode_macsec;
/* Returns what follows a protocol number of NSH (RFC 8300, 11.2.5) or VXLAN-GPE, NEXT_END if it is
 * not decoded. */
enum next_header service_next(uint8_t protocol);

/* tunnel.c */
decoder decode_vlan, decode_mpls, decode_mpls_payload, decode_pppoe, decode_gre;
decoder decode_ip_tunnel, decode_ether_ip, decode_pim;
/* Returns what follows an EtherType of GRE or Geneve, which may be Ethernet. */
enum next_header decode_bridged_or_routed(struct decoding *d, uint16_t protocol);

/* udp_tunnel.c */
decoder decode_udp_tunnel, decode_vxlan, decode_vxlan_gpe, decode_geneve, decode_gtp_u;
decoder decode_teredo, decode_ayiya, decode_capwap, decode_udp_mpls, decode_lisp, decode_amt;
/* Returns the tunnel of a destination port, NEXT_END if there is none. */
enum next_header tunnel_to(uint16_t port);

/* Returns whether an Ethernet frame at `offset` is evident: by its EtherType, and the length of its
 * IP packet. */
bool frame_fills(const struct decoding *d, uint32_t offset);

/* l2tp.c */
decoder decode_l2tp, decode_udp_l2tp;

/* ip.c */
enum next_header decode_ipv4(struct decoding *d); /* checks its length */
decoder decode_ipv6, decode_ip;
bool extension_is_known(uint8_t protocol);
/* Returns whether the checksum (RFC 1071) of an IPv4 header is right: it is the sender's then. */
bool checksum_is_right(const uint8_t *ip, uint32_t header_length);
/* Returns whether the layer holds an IP packet from `offset` to its end, by version and length. Up
 * to `padding` bytes may follow the packet. */
bool ip_fills(const struct decoding *d, uint32_t offset, uint32_t padding);
/* Returns the length in bytes of an IPv6 extension header, whose first two bytes must be at
 * hand. */
uint32_t extension_length(uint8_t protocol, const uint8_t *extension);

/* transport.c, icmp.c */
enum next_header decode_transport(struct decoding *d); /* sets the payload in each case */
decoder decode_icmp;

#endif
