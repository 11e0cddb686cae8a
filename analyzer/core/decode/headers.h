/* SPDX-License-Identifier: Apache-2.0 */
/* A decoded packet: from the link header to the transport header of the innermost IP packet.
 *
 * decode_packet() is a pure function of the packet's bytes. It sets the fields that the packet
 * determines, the last layer that it reached (`layer`), and why it stopped (`answer`, `reason`).
 * A field is valid only if its comment says so. */
#ifndef WIRETALE_HEADERS_H
#define WIRETALE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/packet.h"

enum decode_answer {
    DECODE_OK,
    DECODE_CUT,            /* the snap length ended the bytes inside a header */
    DECODE_NOT_UNDERSTOOD, /* well formed as far as decoded, but of a kind that is not decoded */
    DECODE_MALFORMED,      /* breaks its own format */
};

/* Reasons: symbol, answer, public name. */
#define DECODE_REASONS(X)                                                                          \
    X(NONE, OK, "ok")                                   /* decoded to the transport header */      \
    X(LINK_TYPE, NOT_UNDERSTOOD, "link-type")           /* link type not understood */             \
    X(NOT_IP, NOT_UNDERSTOOD, "not-ip")                 /* ARP, LLDP, STP, ... */                  \
    X(WLAN_NOT_DATA, NOT_UNDERSTOOD, "wlan-not-data")   /* 802.11 management or control frame */   \
    X(WLAN_PROTECTED, NOT_UNDERSTOOD, "wlan-protected") /* encrypted 802.11 data */                \
    X(WLAN_NO_DATA, NOT_UNDERSTOOD, "wlan-no-data")     /* 802.11 data frame without a payload */  \
    X(PPP_COMPRESSED, NOT_UNDERSTOOD, "ppp-protocol")   /* PPP protocol other than IP */           \
    X(COMPRESSED, NOT_UNDERSTOOD, "compressed")         /* compressed payload (IPComp) */          \
    X(LINK_FRAGMENT, NOT_UNDERSTOOD, "link-fragment")   /* not the first frame of a packet */      \
    X(6LOWPAN, NOT_UNDERSTOOD, "6lowpan")               /* IPv6 with compressed headers */         \
    X(DEPTH, NOT_UNDERSTOOD, "too-deep")       /* more encapsulations than the decoder follows */  \
    X(ENCRYPTED, NOT_UNDERSTOOD, "encrypted")  /* encrypted payload (ESP, MACsec) */               \
    X(LINK_CUT, CUT, "link-cut")               /* link header cut by the snap length */            \
    X(TUNNEL_CUT, CUT, "tunnel-cut")           /* encapsulation header cut by the snap length */   \
    X(IP_CUT, CUT, "ip-cut")                   /* IP header cut by the snap length */              \
    X(TRANSPORT_CUT, CUT, "transport-cut")     /* transport header cut by the snap length */       \
    X(OPTIONS_CUT, CUT, "tcp-options-cut")     /* TCP options cut by the snap length */            \
    X(LINK_SHORT, MALFORMED, "link-short")     /* frame shorter than its link header */            \
    X(LINK_BAD, MALFORMED, "link-bad")         /* link header with an impossible field */          \
    X(FCS_BAD, NOT_UNDERSTOOD, "fcs-bad")      /* the radio received wrong bytes */                \
    X(TUNNEL_SHORT, MALFORMED, "tunnel-short") /* frame shorter than its encapsulation header */   \
    X(TUNNEL_BAD, MALFORMED, "tunnel-bad")     /* encapsulation header with an impossible field */ \
    X(IP_SHORT, MALFORMED, "ip-short")         /* packet shorter than an IP header */              \
    X(IP_VERSION, MALFORMED, "ip-version")     /* IP version neither 4 nor 6 */                    \
    X(IP_HEADER_LENGTH, MALFORMED, "ip-header-length") /* under 20 or over the packet */           \
    X(IP_LENGTH, MALFORMED, "ip-length")       /* IP length under its header, or over the packet   \
                                                  around it */                                     \
    X(IP_EXTENSION, MALFORMED, "ip-extension") /* over the packet, or repeated without end */      \
    X(IP_FRAGMENT, MALFORMED, "ip-fragment")   /* past 65,535 bytes, or not a multiple of 8 */     \
    X(TRANSPORT_SHORT, MALFORMED, "transport-short") /* packet shorter than it */                  \
    X(TRANSPORT_BAD, MALFORMED, "transport-bad")     /* of DCCP or UDP-Lite: offset, coverage */   \
    X(TCP_OFFSET, MALFORMED, "tcp-data-offset") /* TCP data offset under 5 or over the packet */   \
    X(TCP_OPTIONS, MALFORMED, "tcp-options")    /* TCP option length of 0, 1 or over the header */ \
    X(UDP_LENGTH, MALFORMED, "udp-length")      /* UDP length under 8 or over the packet */

enum decode_reason {
#define X(symbol, answer, name) REASON_##symbol,
    DECODE_REASONS(X)
#undef X
        REASON_COUNT
};

/* IP protocol numbers (IANA) that decoders distinguish. */
enum ip_protocol {
    IP_HOP_BY_HOP = 0,
    IP_ICMP = 1,
    IP_IGMP = 2,
    IP_IPV4 = 4,
    IP_TCP = 6,
    IP_UDP = 17,
    IP_DCCP = 33,
    IP_IPV6 = 41,
    IP_ROUTING = 43,
    IP_FRAGMENT = 44,
    IP_GRE = 47,
    IP_ESP = 50,
    IP_AH = 51,
    IP_ICMPV6 = 58,
    IP_DESTINATION = 60,
    IP_ETHER_IP = 97,
    IP_PIM = 103,
    IP_IPCOMP = 108,
    IP_L2TP = 115,
    IP_MOBILITY = 135,
    IP_SCTP = 132,
    IP_VRRP = 112,
    IP_UDP_LITE = 136,
    IP_MPLS = 137,
    IP_HIP = 139,
    IP_SHIM6 = 140,
};

static inline bool protocol_has_ports(uint8_t protocol) {
    return protocol == IP_TCP || protocol == IP_UDP || protocol == IP_UDP_LITE ||
           protocol == IP_SCTP || protocol == IP_DCCP;
}

static inline bool is_icmp(uint8_t protocol) {
    return protocol == IP_ICMP || protocol == IP_ICMPV6;
}

/* The last layer whose header was read. If decoding stops early, these fields are valid:
 *
 * - IP_CUT, IP_EXTENSION, IP_FRAGMENT, ENCRYPTED, COMPRESSED: LAYER_NETWORK if the fixed IP header
 *   was good; LAYER_LINK in an encrypted frame (MACsec). `protocol` and ip_header_length stop
 * before the extension header that could not be read.
 * - TRANSPORT_CUT, TRANSPORT_SHORT, TRANSPORT_BAD, TCP_OFFSET: LAYER_NETWORK, and the ports if
 *   ports_known.
 * - OPTIONS_CUT, TCP_OPTIONS: LAYER_TRANSPORT with TCP's fixed header, the length of the payload,
 *   and the options before the cut or bad one.
 * - UDP_LENGTH, TRANSPORT_BAD of UDP-Lite: LAYER_TRANSPORT, with the payload by the IP length.
 *
 * A tunnel over IP whose inner packet is cut, malformed or too deep keeps the outer headers beside
 * that reason. Inside UDP only "too deep" does, because a port number proves no tunnel: anything
 * else there is an ordinary datagram with DECODE_OK. */
enum layer { LAYER_NONE, LAYER_LINK, LAYER_NETWORK, LAYER_TRANSPORT };

/* An encapsulation around the innermost IP packet, outermost first; valid at each layer. */
enum path_kind {
    PATH_VLAN,   /* id: VLAN id, never 0; QinQ is two steps */
    PATH_PPPOE,  /* id: session */
    PATH_GRE,    /* id: key (PPTP: 0, EoIP: the tunnel), or 0 without one */
    PATH_IPIP,   /* id: 0 (IPv4 or IPv6 in IP) */
    PATH_VXLAN,  /* id: VNI */
    PATH_GENEVE, /* id: VNI */
    PATH_PBB,    /* id: service (I-SID) */
    PATH_LISP,   /* id: instance, or 0 without one */
    /* Id 0: there is none, or each direction has its own (TEID of GTP-U) and both are one flow. */
    PATH_MPLS, /* over IP or UDP; labels on a link add no step */
    PATH_ETHER_IP,
    PATH_PIM,
    PATH_GTP_U,
    PATH_TEREDO,
    PATH_AYIYA,
    PATH_CAPWAP,
    PATH_AMT,
    PATH_L2TP,
    PATH_KINDS
};
#define PATH_DEPTH_MAX 8 /* steps; more is REASON_DEPTH */

struct path_step {
    uint32_t kind; /* enum path_kind */
    uint32_t id;
};

#define SACK_BLOCKS_MAX 4

/* TCP header flags as in the 12 low bits of its bytes 12-13. */
enum tcp_flag {
    TCP_FIN = 0x001,
    TCP_SYN = 0x002,
    TCP_RST = 0x004,
    TCP_PSH = 0x008,
    TCP_ACK = 0x010,
    TCP_URG = 0x020,
    TCP_ECE = 0x040,
    TCP_CWR = 0x080,
    TCP_AE = 0x100,
};

/* Options of a TCP header. */
enum tcp_option_seen {
    TCP_OPTION_MSS = 1,
    TCP_OPTION_WINDOW_SCALE = 2,
    TCP_OPTION_SACK_PERMITTED = 4,
    TCP_OPTION_TIMESTAMPS = 8,
    TCP_OPTION_SACK = 16,
    TCP_OPTION_MPTCP = 32,
    TCP_OPTION_SIGNATURE = 64, /* MD5 (RFC 2385) or AO (RFC 5925) */
    TCP_OPTION_FAST_OPEN = 128,
    TCP_OPTION_OTHER = 256,
    TCP_OPTION_CUT = 512, /* the capture does not hold all of them */
};

/* What a segment says about its multipath connection (RFC 6824 for version 0, RFC 8684). */
#define MULTIPATH_BYTES 8
enum multipath_fact {
    MULTIPATH_NONE,
    MULTIPATH_KEY_0, /* the key of its sender, of version 0 */
    MULTIPATH_KEY_1,
    MULTIPATH_TOKEN, /* the token of its receiver, 4 bytes, in the SYN of a subflow */
};

struct tcp_header {
    uint32_t sequence;
    uint32_t acknowledgment;
    uint16_t flags;   /* enum tcp_flag */
    uint16_t window;  /* as sent, unscaled */
    uint16_t options; /* enum tcp_option_seen */
    uint8_t window_scale;
    uint8_t sack_count;
    uint32_t signature; /* not from the wire: see verdict/duplicate.c */
    uint32_t timestamp_value;
    uint32_t timestamp_echo;
    uint16_t mss;      /* fields that few packets set come last */
    uint8_t nop_run;   /* most NOP options in a row; to be read with the MSS */
    uint8_t multipath; /* enum multipath_fact; to be read with TCP_OPTION_MPTCP */
    union {
        struct {
            uint32_t start, end;
        } sack[SACK_BLOCKS_MAX];                  /* sack_count of them */
        uint8_t multipath_bytes[MULTIPATH_BYTES]; /* without SACK blocks */
    };
};

/* Types of RFC 792 and RFC 4443. */
enum icmp_type {
    ICMP_ECHO_REPLY = 0,
    ICMP_ECHO_REQUEST = 8,
    ICMPV6_ECHO_REQUEST = 128,
    ICMPV6_ECHO_REPLY = 129,
    ICMPV6_ROUTER = 134,
    ICMPV6_SOLICITATION = 135, /* RFC 4861 section 4 */
    ICMPV6_ADVERTISEMENT = 136
};

/* The packet that an ICMP error quotes, as far as it quotes it. */
struct icmp_header {
    uint8_t type, code;
    uint16_t identifier; /* echo request and reply only, as the sequence number */
    uint16_t sequence;
    uint32_t mtu; /* fragmentation needed / packet too big, else 0 */
    bool quotes;  /* the fields below are valid */
    bool quotes_sequence;
    bool quotes_echo; /* an echo request: its identifier and sequence number are valid */
    uint16_t quoted_identifier, quoted_echo_sequence;
    uint8_t quoted_protocol;
    uint16_t quoted_source_port, quoted_destination_port; /* 0 if unknown */
    uint32_t quoted_sequence;                             /* TCP, if quotes_sequence */
    uint8_t quoted_source[16], quoted_destination[16];    /* IPv4 in the first 4 bytes */
};

/* A frame of IEEE 802.11 with data, also if it is encrypted. */
enum wlan_frame { WLAN_NONE, WLAN_DATA, WLAN_RETRY /* the sender repeats it */ };

/* The protocol at which decoding stopped, in the upper 16 bits of headers.undecoded. */
enum undecoded {
    UNDECODED_NONE,
    UNDECODED_ETHER_TYPE,
    UNDECODED_PPP,
    UNDECODED_LINK_TYPE,
    UNDECODED_IP_PROTOCOL,
    UNDECODED_UDP_PORT,
    UNDECODED_TCP_PORT,
    UNDECODED_6LOWPAN,
};

struct headers {
    uint32_t undecoded; /* enum undecoded, and the protocol's number in the lower 16 bits */
    uint8_t answer;     /* enum decode_answer */
    uint8_t reason;     /* enum decode_reason */
    uint8_t layer;      /* enum layer */
    uint8_t path_depth;
    bool length_over_record; /* a length field exceeds the record's length on the wire, and counts
                                instead of it: a tool or a mirror port cut the packet */
    bool udp_tunnel;         /* it is in a tunnel over UDP: tunnel_offset is valid */
    uint8_t wlan;            /* enum wlan_frame */
    int8_t wlan_dbm;         /* signal at the antenna, 0 if unknown; valid with `wlan` */
    uint32_t wlan_offset;    /* of the 802.11 header in the packet; valid with `wlan` */
    uint32_t arp_offset;     /* of an ARP packet, in bytes of the packet; 0 without one */
    uint32_t control_offset; /* of MAC control, EAPOL, a BPDU or the body of 802.11 management
                                likewise */
    bool control_is_login;   /* it is EAPOL */
    bool control_is_wlan;    /* it is 802.11 management */
    bool control_is_bridge;  /* it is a BPDU of the spanning tree */

    /* From LAYER_NETWORK: the innermost IP header. */
    uint8_t ip_version;    /* 4 or 6; 0 below LAYER_NETWORK */
    uint8_t traffic_class; /* DSCP and ECN */
    uint8_t ttl;           /* hop limit */
    uint8_t protocol;      /* after IPv6 extension headers */
    bool fragment; /* offset > 0 or more fragments; false for an atomic fragment (RFC 6946) */
    bool more_fragments;
    bool atomic_fragment;
    bool length_from_frame; /* the IP length was 0 (segmentation offload, jumbogram), so the frame's
                               length counts */
    uint32_t fragment_offset; /* bytes of the datagram before this fragment */
    uint32_t fragment_length; /* bytes of it that this fragment holds, else 0 */
    uint32_t identification;  /* IPv4: 16 bits; IPv6: of the fragment header, else 0 */
    uint32_t ip_length; /* header, extension headers and payload of this IP packet on the wire */
    uint32_t ip_header_length; /* with extension headers up to the transport or fragment payload */
    uint32_t outer_length;     /* bytes before the innermost IP header: link and encapsulations */
    uint8_t source[16], destination[16]; /* IPv4 in the first 4 bytes, the rest 0 */

    /* From LAYER_NETWORK too: the payload of the innermost header that was read. A fragment with
     * an offset, which ends at LAYER_NETWORK with DECODE_OK, has a piece of the datagram; a
     * first fragment has the bytes behind its transport header. `payload` points into the
     * packet's data, at its end if nothing was captured. */
    uint32_t payload_length;   /* on the wire, by the IP length: without Ethernet padding */
    uint32_t payload_captured; /* of them, bytes in the file */
    const uint8_t *payload;    /* points to payload_captured bytes of the packet's data */

    /* From LAYER_TRANSPORT (TCP, UDP, UDP-Lite, SCTP, DCCP, ICMP, ICMPv6), never in a fragment with
     * an offset. Other protocols end at LAYER_NETWORK with answer DECODE_OK. 0 below. */
    union {
        struct {
            uint16_t source_port, destination_port; /* 0 for ICMP; valid if ports_known */
        };
        uint32_t ports; /* both: the source port in the lower half */
    };
    uint32_t transport_header_length;
    uint32_t udp_length; /* UDP: its own length field (whole datagram, also in a first fragment) */
    uint16_t transport_checksum; /* UDP, UDP-Lite, TCP */
    bool ports_known;            /* source_port and destination_port are valid */

    uint32_t link_hash; /* of the link header's addresses: distinguishes duplicates of two mirror
                           ports */
    union {
        struct tcp_header tcp;   /* protocol 6 */
        struct icmp_header icmp; /* protocol 1 or 58 */
    };
    struct path_step path[PATH_DEPTH_MAX]; /* path_depth of them */
    uint32_t tunnel_offset; /* of the IP header of the innermost datagram that was a tunnel */
};

/* Decodes packet->data. Never reads past packet->captured, and cannot fail. */
void decode_packet(const struct packet *packet, struct headers *headers);

/* Returns the protocol that may hide an IP packet, as in headers.undecoded; 0 if none does. The
 * packet's data must still be at hand. */
uint32_t undecoded_protocol(const struct headers *headers);
#define UNDECODED_NAME_MAX 32
/* Writes the name of such a protocol: `EtherType 0x8909`. */
void undecoded_name(uint32_t protocol, char text[UNDECODED_NAME_MAX]);

const char *decode_reason_name(enum decode_reason reason);
enum decode_answer decode_reason_answer(enum decode_reason reason);

#endif
