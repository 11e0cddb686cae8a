/* SPDX-License-Identifier: Apache-2.0 */
/* TCP with its options (RFC 9293, 7323, 2018), UDP (RFC 768), UDP-Lite (RFC 3828), SCTP (RFC 9260)
 * and DCCP (RFC 4340).
 *
 *   TCP (RFC 9293 section 3.1)                UDP, UDP-Lite
 *   OFFSET SIZE                               OFFSET SIZE
 *   0      2    source port                   0      2    source port
 *   2      2    destination port              2      2    destination port
 *   4      4    sequence number               4      2    length, or checksum coverage
 *   8      4    acknowledgment number         6      2    checksum
 *   12     2    data offset in words, flags
 *   14     2    window
 *   16     2    checksum
 *   18     2    urgent pointer
 *   20     ..   options
 *
 * Payload lengths come from the IP or UDP length, so they are right if the snap length cut the
 * packet. flow/checksum.c verifies the checksums. In a first fragment the lengths are those of the
 * fragment. */
#include <string.h>

#include "decode/step.h"

#define TCP_HEADER  20
#define UDP_HEADER  8
#define SCTP_HEADER 12
#define DCCP_HEADER 12
#define PORTS       4

/* Returns the header at d->offset if `bytes` of it were captured, else NULL with a reason. Ports
 * come first in every protocol that has them; they may be all that was captured. */
static inline const uint8_t *read_ports(struct decoding *d, uint32_t bytes) {
    struct headers *headers = d->headers;
    const uint8_t *wire = d->data + d->offset;
    bool whole = decoding_has(d, d->offset, bytes, REASON_TRANSPORT_CUT, REASON_TRANSPORT_SHORT);
    if (LIKELY(whole) || (uint64_t)d->offset + PORTS <= d->captured) {
        uint32_t ports = load_be32(wire);
        headers->ports = ports << 16 | ports >> 16;
        headers->ports_known = true;
    }
    return whole ? wire : NULL;
}

static inline void transport_reached(struct decoding *d, uint32_t header_length) {
    decoding_payload(d, d->offset + header_length);
    d->headers->transport_header_length = header_length;
    d->headers->layer = LAYER_TRANSPORT;
}

enum tcp_option_kind { OPTION_END = 0, OPTION_NOP = 1, OPTION_EXPERIMENT = 254 };

/* The valid lengths of each option; one of another length is TCP_OPTION_OTHER. */
static const struct {
    uint8_t kind, least, most;
    uint16_t seen;
} tcp_option_rules[] = {
    {8, 10, 10, TCP_OPTION_TIMESTAMPS}, /* RFC 7323 */
    {5, 10, 34, TCP_OPTION_SACK},       /* RFC 2018 */
    {2, 4, 4, TCP_OPTION_MSS},          /* RFC 9293 */
    {3, 3, 3, TCP_OPTION_WINDOW_SCALE}, {4, 2, 2, TCP_OPTION_SACK_PERMITTED},
    {30, 3, 40, TCP_OPTION_MPTCP},      /* RFC 8684 */
    {19, 18, 18, TCP_OPTION_SIGNATURE}, /* MD5 */
    {29, 4, 40, TCP_OPTION_SIGNATURE},  /* AO */
    {34, 2, 18, TCP_OPTION_FAST_OPEN},  /* RFC 7413 */
};
#define TCP_OPTION_RULES     (sizeof tcp_option_rules / sizeof *tcp_option_rules)
#define FAST_OPEN_EXPERIMENT 0xf989 /* RFC 7413, 4.1.1 and appendix A */

static uint16_t tcp_option_seen(const uint8_t *option) {
    for (size_t i = 0; i < TCP_OPTION_RULES; i++)
        if (tcp_option_rules[i].kind == option[0])
            return option[1] >= tcp_option_rules[i].least && option[1] <= tcp_option_rules[i].most
                       ? tcp_option_rules[i].seen
                       : TCP_OPTION_OTHER;
    if (option[0] == OPTION_EXPERIMENT && option[1] >= 4 &&
        load_be16(option + 2) == FAST_OPEN_EXPERIMENT)
        return TCP_OPTION_FAST_OPEN;
    return TCP_OPTION_OTHER;
}

static inline void fill_timestamps(struct tcp_header *tcp, const uint8_t *values) {
    tcp->options |= TCP_OPTION_TIMESTAMPS;
    tcp->timestamp_value = load_be32(values);
    tcp->timestamp_echo = load_be32(values + 4);
}

static void fill_sack(struct tcp_header *tcp, const uint8_t *blocks, uint32_t count) {
    tcp->sack_count = (uint8_t)count;
    tcp->multipath = MULTIPATH_NONE;
    for (uint32_t i = 0; i < count; i++, blocks += 8) {
        tcp->sack[i].start = load_be32(blocks);
        tcp->sack[i].end = load_be32(blocks + 4);
    }
}

#define MPTCP_CAPABLE   0
#define MPTCP_JOIN      1
#define MPTCP_JOIN_SYN  12u /* bytes */
#define MPTCP_KEY_LEAST 12u /* bytes of MP_CAPABLE with the key of its sender */

/* Reads the key of MP_CAPABLE and the token of MP_JOIN (RFC 8684 sections 3.1 and 3.2), which are
 * at the same place. The bytes are those of SACK blocks, which no such segment has. */
static void fill_multipath(struct tcp_header *tcp, const uint8_t *option) {
    unsigned subtype = option[2] >> 4, version = option[2] & 15;
    bool syn = (tcp->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
    bool capable = subtype == MPTCP_CAPABLE && version <= 1 && option[1] >= MPTCP_KEY_LEAST;
    bool join = subtype == MPTCP_JOIN && syn && option[1] == MPTCP_JOIN_SYN;
    if (tcp->sack_count || (!capable && !join))
        return;
    tcp->multipath = join ? MULTIPATH_TOKEN : version ? MULTIPATH_KEY_1 : MULTIPATH_KEY_0;
    memcpy(tcp->multipath_bytes, option + 4, MULTIPATH_BYTES);
}

/* Reads a whole option of a valid length. */
static void read_tcp_option(struct tcp_header *tcp, const uint8_t *option) {
    uint16_t seen = tcp_option_seen(option);
    if (seen == TCP_OPTION_SACK && (option[1] - 2) % 8)
        seen = TCP_OPTION_OTHER;
    tcp->options |= seen;
    switch (seen) {
    case TCP_OPTION_MSS: tcp->mss = load_be16(option + 2); return;
    case TCP_OPTION_WINDOW_SCALE: tcp->window_scale = option[2]; return;
    case TCP_OPTION_TIMESTAMPS: fill_timestamps(tcp, option + 2); return;
    case TCP_OPTION_MPTCP: fill_multipath(tcp, option); return;
    case TCP_OPTION_SACK: fill_sack(tcp, option + 2, (option[1] - 2u) / 8); return;
    }
}

/* Reads `size` bytes of options, of which `at_hand` were captured. */
static enum decode_reason read_tcp_options(struct tcp_header *tcp, const uint8_t *options,
                                           uint32_t size, uint32_t at_hand) {
    uint32_t at = 0, nops = 0;
    while (at < at_hand && options[at] != OPTION_END) {
        if (options[at] == OPTION_NOP) {
            at++;
            if (++nops > tcp->nop_run)
                tcp->nop_run = (uint8_t)nops;
            continue;
        }
        nops = 0;
        if (at + 2 > size)
            return REASON_TCP_OPTIONS;
        if (at + 2 > at_hand)
            return REASON_OPTIONS_CUT;
        uint32_t length = options[at + 1];
        if (length < 2 || length > size - at)
            return REASON_TCP_OPTIONS;
        if (length > at_hand - at)
            return REASON_OPTIONS_CUT;
        read_tcp_option(tcp, options + at);
        at += length;
    }
    return at_hand < size && at >= at_hand ? REASON_OPTIONS_CUT : REASON_NONE;
}

static inline void fill_tcp(struct headers *headers, const uint8_t *wire) {
    struct tcp_header *tcp = &headers->tcp;
    headers->transport_checksum = load_be16(wire + 16);
    tcp->sequence = load_be32(wire + 4);
    tcp->acknowledgment = load_be32(wire + 8);
    tcp->flags = load_be16(wire + 12) & 0x0fff;
    tcp->window = load_be16(wire + 14);
    tcp->options = 0;
    tcp->mss = 0;
    tcp->nop_run = 0;
    tcp->multipath = MULTIPATH_NONE;
    tcp->window_scale = 0;
    tcp->sack_count = 0;
    tcp->signature = 0;
    tcp->timestamp_value = 0;
    tcp->timestamp_echo = 0;
}

#define NOP_NOP_TIMESTAMPS 0x0101080a /* RFC 7323 appendix A: the layout in nearly all segments */

static NOINLINE void decode_other_options(struct decoding *d, uint32_t offset, uint32_t size) {
    struct headers *headers = d->headers;
    uint32_t at_hand = d->captured - offset < size ? d->captured - offset : size;
    headers->reason = read_tcp_options(&headers->tcp, d->data + offset, size, at_hand);
    if (headers->reason == REASON_OPTIONS_CUT)
        headers->tcp.options |= TCP_OPTION_CUT;
}

static inline void decode_tcp_options(struct decoding *d, uint32_t offset, uint32_t size) {
    const uint8_t *options = d->data + offset;
    if (LIKELY(size == 12 && d->captured - offset >= 12 &&
               load_be32(options) == NOP_NOP_TIMESTAMPS))
        fill_timestamps(&d->headers->tcp, options + 4);
    else
        decode_other_options(d, offset, size);
}

#define STT_PORT 7471 /* IANA */

/* Stateless Transport Tunneling (draft-davie-stt) uses IP protocol 6 and a header like TCP's, so
 * that adapters segment it: without options or SYN; in place of the sequence number, the length of
 * the frame inside and the offset of this piece. It has no handshake and no ACKs. */
static NOINLINE bool is_stt(const struct decoding *d, const uint8_t *tcp) {
    uint16_t flags = load_be16(tcp + 12), total = load_be16(tcp + 4), piece_at = load_be16(tcp + 6);
    bool plain = flags >> 12 == 5 && !(flags & (TCP_SYN | TCP_FIN | TCP_RST));
    return plain && d->offset + TCP_HEADER < d->end && piece_at < total;
}

/* Returns false if the header was not reached. */
static inline bool decode_tcp(struct decoding *d) {
    const uint8_t *tcp = read_ports(d, TCP_HEADER);
    if (!tcp)
        return false;
    if (!LIKELY(d->headers->destination_port != STT_PORT) && is_stt(d, tcp)) {
        d->headers->ports = 0;
        d->headers->ports_known = false;
        d->headers->undecoded = UNDECODED_TCP_PORT << 16 | STT_PORT;
        return false;
    }
    uint32_t header_length = (tcp[12] & 0xf0) >> 2; /* the upper half counts words of 4 bytes */
    if (header_length < TCP_HEADER || header_length > d->end - d->offset) {
        d->headers->reason = REASON_TCP_OFFSET;
        return false;
    }
    transport_reached(d, header_length);
    fill_tcp(d->headers, tcp);
    if (header_length > TCP_HEADER)
        decode_tcp_options(d, d->offset + TCP_HEADER, header_length - TCP_HEADER);
    return true;
}

/* The length field of the datagram ends its payload; the IP packet may be longer (RFC 9868). In a
 * first fragment it is that of the whole datagram; a super-segment without an IP length may have 0
 * there too (RFC 2675). */
static enum next_header decode_udp(struct decoding *d) {
    struct headers *headers = d->headers;
    const uint8_t *udp = read_ports(d, UDP_HEADER);
    if (!udp)
        return NEXT_END;
    uint32_t length = load_be16(udp + 4), room = d->end - d->offset;
    bool left_out = length == 0 && headers->length_from_frame;
    headers->udp_length = length;
    headers->transport_checksum = load_be16(udp + 6);
    if (!left_out && length >= UDP_HEADER && length < room)
        decoding_narrow(d, d->offset + length);
    transport_reached(d, UDP_HEADER);
    d->offset += UDP_HEADER;
    if (!left_out && (length < UDP_HEADER || (length > room && !headers->fragment)))
        return stop(d, REASON_UDP_LENGTH);
    return headers->fragment ? NEXT_END : NEXT_UDP_TUNNEL;
}

/* RFC 3828, 3.1: in place of a length the bytes that the checksum covers, 0 for all. */
static enum next_header decode_udp_lite(struct decoding *d) {
    const uint8_t *udp = read_ports(d, UDP_HEADER);
    if (!udp)
        return NEXT_END;
    uint32_t coverage = load_be16(udp + 4);
    bool over = coverage > d->end - d->offset && !d->headers->fragment;
    d->headers->transport_checksum = load_be16(udp + 6);
    transport_reached(d, UDP_HEADER);
    return over || (coverage && coverage < UDP_HEADER) ? stop(d, REASON_TRANSPORT_BAD) : NEXT_END;
}

static enum next_header decode_sctp(struct decoding *d) {
    if (read_ports(d, SCTP_HEADER))
        transport_reached(d, SCTP_HEADER);
    return NEXT_END;
}

/* RFC 4340, 5.1: the data offset counts words of 4 bytes; 48-bit sequence numbers (the X bit) make
 * the generic header 16 bytes. */
static enum next_header decode_dccp(struct decoding *d) {
    const uint8_t *dccp = read_ports(d, DCCP_HEADER);
    if (!dccp)
        return NEXT_END;
    uint32_t least = dccp[8] & 1 ? 16 : 12, header_length = dccp[4] * 4u;
    if (header_length < least)
        return stop(d, REASON_TRANSPORT_BAD);
    if (decoding_has(d, d->offset, header_length, REASON_TRANSPORT_CUT, REASON_TRANSPORT_SHORT))
        transport_reached(d, header_length);
    return NEXT_END;
}

/* RFC 3173, 2.2: next header, flags, and the algorithm, 0 for none. Later fragments have only the
 * outer protocol, so that a first one must keep it. */
static enum next_header decode_ipcomp(struct decoding *d) {
    struct headers *headers = d->headers;
    const uint8_t *ipcomp = d->data + d->offset;
    if (!decoding_has(d, d->offset, 4, REASON_TRANSPORT_CUT, REASON_TRANSPORT_SHORT))
        return NEXT_END;
    if (load_be16(ipcomp + 2) != 0)
        return stop(d, REASON_COMPRESSED);
    if (headers->fragment || !shim_pass(d))
        return NEXT_END;
    headers->protocol = ipcomp[0];
    headers->ip_header_length += 4;
    d->offset += 4;
    return NEXT_TRANSPORT;
}

/* A fragment of a tunnel holds a piece of the inner packet: it belongs to the outer packet. */
static NOINLINE enum next_header decode_other_transport(struct decoding *d) {
    switch (d->headers->protocol) {
    case IP_UDP: return decode_udp(d);
    case IP_ICMP:
    case IP_ICMPV6: return NEXT_ICMP;
    case IP_UDP_LITE: return decode_udp_lite(d);
    case IP_SCTP: return decode_sctp(d);
    case IP_DCCP: return decode_dccp(d);
    case IP_IPCOMP: return decode_ipcomp(d);
    case IP_ESP: return stop(d, REASON_ENCRYPTED);
    default: return d->headers->fragment ? NEXT_END : NEXT_IP_TUNNEL;
    }
}

enum next_header decode_transport(struct decoding *d) {
    if (LIKELY(d->headers->protocol == IP_TCP) && decode_tcp(d))
        return NEXT_END;
    decoding_payload(d, d->offset);
    return decode_other_transport(d);
}
