/* SPDX-License-Identifier: Apache-2.0 */
/* IP, TCP, UDP, SCTP, DCCP and ICMP without addresses and payload.
 *
 * Options are kept if verdicts or the decoder use them: MSS, window scale, SACK and timestamps of
 * TCP, the jumbo length of IPv6. Of the others the kind and length stay, because a server or a
 * cookie could be known by the rest (MPTCP has addresses, RFC 8684). Options of IPv4 become 0, the
 * end of options: a record of the route is a list of addresses. */
#include "cut/ip_rules.h"

#define TCP_HEADER      20
#define UDP_HEADER      8
#define SCTP_HEADER     12
#define ICMP_HEADER     8
#define FRAGMENT_HEADER 8
#define IPV6_SIZE       16
#define OPTION_JUMBO    0xc2

/* --- IP ------------------------------------------------------------------------------------- */

/* Keeps the jumbo payload option (RFC 2675); zeros are padding (Pad1). */
static void put_ipv6_options(struct draft *draft, uint32_t at, uint32_t end) {
    while (at + 2 <= end && has(draft, at, 2)) {
        uint32_t length = draft->in[at] ? 2u + draft->in[at + 1] : 1;
        if (draft->in[at] == OPTION_JUMBO && length == 6 && at + length <= end)
            put(draft, at, length);
        at += length;
    }
}

/* A routing header keeps its type, without segments left: its addresses become 0. */
static void put_extension(struct draft *draft, uint8_t protocol, uint32_t at, uint32_t length) {
    switch (protocol) {
    case IP_HOP_BY_HOP:
    case IP_DESTINATION:
        put(draft, at, 2);
        put_ipv6_options(draft, at + 2, at + length);
        break;
    case IP_ROUTING: put(draft, at, 3); break;
    case IP_FRAGMENT: put(draft, at, FRAGMENT_HEADER); break;
    case IP_AH: put(draft, at, length < 12 ? length : 12); break;
    default: put(draft, at, 2);
    }
}

/* Writes extension headers from `at` and returns the offset behind them. Sets the protocol behind
 * them, and whether the packet is a fragment without a transport header. */
static uint32_t put_extensions(struct draft *draft, uint32_t at, uint8_t *protocol, bool *later) {
    for (int i = 0; i < EXTENSIONS_MAX && extension_is_known(*protocol) && has(draft, at, 8); i++) {
        const uint8_t *extension = draft->in + at;
        uint32_t length = extension_length(*protocol, extension);
        put_extension(draft, *protocol, at, length);
        *later |= *protocol == IP_FRAGMENT && load_be16(extension + 2) & 0xfff8;
        *protocol = extension[0];
        at += length;
    }
    return at;
}

/* Writes an IP header with its extension headers; returns the offset behind them, 0 if its first
 * bytes were not captured. */
static uint32_t put_ip(struct draft *draft, uint32_t at, bool is_ipv4, uint8_t *protocol,
                       bool *later) {
    uint32_t least = is_ipv4 ? IPV4_HEADER : IPV6_HEADER;
    put(draft, at, is_ipv4 ? 12 : 8);
    if (!has(draft, at, least))
        return 0;
    const uint8_t *ip = draft->in + at;
    uint32_t size = is_ipv4 ? 4 : IPV6_SIZE, addresses = least - 2 * size;
    put_address(draft, at + addresses, size);
    put_address(draft, at + addresses + size, size);
    *protocol = ip[is_ipv4 ? 9 : 6];
    *later = is_ipv4 && (load_be16(ip + 6) & 0x1fff);
    uint32_t header = is_ipv4 ? (ip[0] & 15) * 4u : IPV6_HEADER;
    at += header < least ? least : header;
    return is_ipv4 && *protocol != IP_AH ? at : put_extensions(draft, at, protocol, later);
}

/* --- TCP and other transports --------------------------------------------------------------- */

/* Bytes of an option that stay. */
static uint32_t tcp_option_kept(const uint8_t *option, uint32_t length) {
    switch (option[0]) {
    case 2:
    case 3:
    case 4:
    case 5:
    case 8: return length;
    case 30: return length < 3 ? length : 3; /* MPTCP: its subtype */
    case 253:
    case 254: return length < 4 ? length : 4; /* the experiment (RFC 6994) */
    default: return 2;
    }
}

static void put_tcp_options(struct draft *draft, uint32_t at, uint32_t end) {
    while (at < end && has(draft, at, 1) && draft->in[at] != 0) {
        const uint8_t *option = draft->in + at;
        uint32_t length = option[0] == 1 ? 1 : 2;
        if (!has(draft, at, length) || (length == 2 && option[1] < 2)) {
            put(draft, at, end - at < 2 ? 1 : 2); /* malformed, and it stays so */
            return;
        }
        length = option[0] == 1 ? 1 : option[1];
        uint32_t kept = length == 1 ? 1 : tcp_option_kept(option, length);
        put(draft, at, kept < end - at ? kept : end - at);
        at += length;
    }
}

static void put_tcp(struct draft *draft, uint32_t at, uint32_t end) {
    put(draft, at, TCP_HEADER);
    if (end > at + TCP_HEADER)
        put_tcp_options(draft, at + TCP_HEADER, end);
}

/* Ports, coverage, checksum, type and sequence number (RFC 4340, 5.1); options become 0. */
static uint32_t dccp_kept(const struct draft *draft, uint32_t at) {
    return has(draft, at, 12) && draft->in[at + 8] & 1 ? 16 : 12;
}

static uint32_t tcp_end(const struct draft *draft, uint32_t at) {
    uint32_t length = has(draft, at, TCP_HEADER) ? (draft->in[at + 12] & 0xf0) >> 2 : TCP_HEADER;
    return at + (length < TCP_HEADER ? TCP_HEADER : length);
}

uint32_t transport_end(const struct draft *draft, const struct decode_step *step) {
    uint32_t at = step->offset;
    if (step->kind == NEXT_ICMP)
        return at + ICMP_HEADER;
    if (step->kind != NEXT_TRANSPORT)
        return at;
    switch (step->protocol) {
    case IP_TCP: return tcp_end(draft, at);
    case IP_UDP:
    case IP_UDP_LITE: return at + UDP_HEADER;
    case IP_SCTP: return at + SCTP_HEADER;
    case IP_DCCP:
        return has(draft, at, 12) && draft->in[at + 4] >= 3 ? at + draft->in[at + 4] * 4u : at + 12;
    default: return at;
    }
}

static void put_transport(struct draft *draft, const struct decode_step *step) {
    uint32_t at = step->offset;
    switch (step->protocol) {
    case IP_TCP: put_tcp(draft, at, transport_end(draft, step)); break;
    case IP_UDP:
    case IP_UDP_LITE: put(draft, at, UDP_HEADER); break;
    case IP_SCTP: put(draft, at, 8); break; /* without its CRC-32C */
    case IP_DCCP:
        put(draft, at, dccp_kept(draft, at));
        clear(draft, at + 6, 2); /* the checksum */
        break;
    case IP_IPCOMP: put(draft, at, 4); break;
    default: break;
    }
}

/* --- ICMP ----------------------------------------------------------------------------------- */

static bool is_error(uint8_t protocol, uint8_t type) {
    if (protocol == IP_ICMP)
        return type == 3 || type == 4 || type == 5 || type == 11 || type == 12; /* RFC 792 */
    return type >= 1 && type <= 4;                                              /* RFC 4443 */
}

/* A redirect (RFC 792) has the address of a router. */
static void put_icmp(struct draft *draft, const struct decode_step *step) {
    put(draft, step->offset, ICMP_HEADER);
    if (step->protocol == IP_ICMP && has(draft, step->offset, 1) && draft->in[step->offset] == 5)
        put_address(draft, step->offset + 4, 4);
}

/* A quotation: its IP header, and at most the first header inside. The checksum of that one becomes
 * 0, because it covers bytes that the quotation lacks. */
static void put_quotation(struct draft *draft, uint32_t at) {
    bool is_ipv4 = has(draft, at, 1) && draft->in[at] >> 4 == 4, later = false;
    uint8_t protocol = 0;
    uint32_t inside = put_ip(draft, at, is_ipv4, &protocol, &later);
    if (!inside || later)
        return;
    uint32_t checksum = protocol == IP_TCP ? 16 : protocol == IP_UDP ? 6 : 2;
    switch (protocol) {
    case IP_TCP: put_tcp(draft, inside, tcp_end(draft, inside)); break;
    case IP_UDP:
    case IP_ICMP:
    case IP_ICMPV6: put(draft, inside, 8); break;
    case IP_UDP_LITE:
    case IP_SCTP:
    case IP_DCCP: put(draft, inside, 4); return;
    default: return;
    }
    clear(draft, inside + checksum, 2);
}

/* RFC 4861, 4.6: type and length in 8 bytes; link-layer addresses and prefixes are replaced. */
static void put_discovery_options(struct draft *draft, uint32_t at) {
    while (has(draft, at, 8) && draft->in[at + 1]) {
        uint32_t length = draft->in[at + 1] * 8u;
        put(draft, at, 2);
        if ((draft->in[at] == 1 || draft->in[at] == 2) && length == 8)
            put_address(draft, at + 2, 6);
        if (draft->in[at] == 3 && length == 32) {
            put(draft, at, 16);
            put_address(draft, at + 16, IPV6_SIZE);
        }
        if (draft->in[at] == 5)
            put(draft, at, 8); /* the MTU */
        at += length;
    }
}

/* RFC 4861: solicitation and advertisement of a router (133, 134), of a neighbor (135, 136), and a
 * redirect (137), with 0, 0, 1, 1 and 2 addresses before the options. */
static void put_discovery(struct draft *draft, uint32_t at, uint8_t type) {
    uint32_t addresses = type == 137 ? 2 : type >= 135;
    if (type == 134)
        put(draft, at, 8);
    for (uint32_t i = 0; i < addresses; i++)
        put_address(draft, at + i * IPV6_SIZE, IPV6_SIZE);
    put_discovery_options(draft, at + addresses * IPV6_SIZE + (type == 134 ? 8 : 0));
}

void put_icmp_body(struct draft *draft, const struct decode_step *icmp) {
    uint32_t at = icmp->offset + ICMP_HEADER;
    if (!has(draft, icmp->offset, ICMP_HEADER))
        return;
    uint8_t type = draft->in[icmp->offset];
    if (is_error(icmp->protocol, type))
        put_quotation(draft, at);
    else if (icmp->protocol == IP_ICMPV6 && type >= 133 && type <= 137)
        put_discovery(draft, at, type);
}

void put_ip_step(struct draft *draft, const struct decode_step *step) {
    uint8_t protocol = 0;
    bool later = false;
    switch (step->kind) {
    case NEXT_IPV4: put_ip(draft, step->offset, true, &protocol, &later); break;
    case NEXT_IPV6: put_ip(draft, step->offset, false, &protocol, &later); break;
    case NEXT_TRANSPORT: put_transport(draft, step); break;
    default: put_icmp(draft, step);
    }
}

/* --- checksums ------------------------------------------------------------------------------ */

static void store_be16(uint8_t *place, uint32_t value) {
    place[0] = (uint8_t)(value >> 8);
    place[1] = (uint8_t)value;
}

/* The sum of 16-bit words in network byte order (RFC 1071). */
static uint64_t sum_words(const uint8_t *bytes, uint32_t size) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i + 2 <= size; i += 2)
        sum += load_be16(bytes + i);
    return size % 2 ? sum + (uint64_t)bytes[size - 1] * 256 : sum;
}

static uint16_t folded(uint64_t sum) {
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Computes the checksum at `place` over [from, end), with the sum of a pseudo header. */
static void store_checksum(struct draft *draft, uint32_t place, uint32_t from, uint32_t end,
                           uint64_t pseudo) {
    end = end < draft->captured ? end : draft->captured;
    if (!has(draft, place, 2) || end < from)
        return;
    memset(draft->out + place, 0, 2);
    store_be16(draft->out + place, folded(pseudo + sum_words(draft->out + from, end - from)));
}

/* RFC 793 and RFC 8200, 8.1: addresses, length and protocol. */
static uint64_t pseudo_sum(const struct draft *draft, const struct decode_step *ip, uint32_t length,
                           uint8_t protocol) {
    bool is_ipv4 = ip->kind == NEXT_IPV4;
    uint32_t addresses = ip->offset + (is_ipv4 ? 12 : 8), size = is_ipv4 ? 8 : 2 * IPV6_SIZE;
    return sum_words(draft->out + addresses, size) + (length >> 16) + (length & 0xffff) + protocol;
}

static void put_udp_checksum(struct draft *draft, const struct decode_step *step, uint64_t pseudo) {
    uint32_t at = step->offset, length = load_be16(draft->out + at + 4), end = step->end;
    bool lite = step->protocol == IP_UDP_LITE;
    if (load_be16(draft->in + at + 6) == 0 && !lite)
        return; /* the sender computed none */
    if (length >= UDP_HEADER && length < end - at)
        end = at + length;
    store_checksum(draft, at + 6, at, end, pseudo);
    if (load_be16(draft->out + at + 6) == 0)
        store_be16(draft->out + at + 6, 0xffff);
}

static void put_ipv4_checksum(struct draft *draft, uint32_t at) {
    if (!has(draft, at, IPV4_HEADER))
        return;
    uint32_t header = (draft->in[at] & 15) * 4u;
    store_checksum(draft, at + 10, at, at + (header < IPV4_HEADER ? IPV4_HEADER : header), 0);
}

/* Also the header that an error quotes. */
static void put_icmp_checksum(struct draft *draft, const struct decode_step *step,
                              uint64_t pseudo) {
    uint32_t at = step->offset, quoted = at + ICMP_HEADER;
    if (has(draft, quoted, 1) && is_error(step->protocol, draft->in[at]) &&
        draft->in[quoted] >> 4 == 4)
        put_ipv4_checksum(draft, quoted);
    store_checksum(draft, at + 2, at, step->end, pseudo);
}

/* `ip` is the IP header around it. A datagram has its own length, which is that of all its
 * fragments. */
static void put_transport_checksum(struct draft *draft, const struct decode_step *step,
                                   const struct decode_step *ip) {
    uint32_t at = step->offset, length = step->end - at;
    uint8_t protocol = step->protocol;
    if (step->kind == NEXT_ICMP)
        put_icmp_checksum(draft, step,
                          protocol == IP_ICMP ? 0 : pseudo_sum(draft, ip, length, protocol));
    else if (protocol == IP_TCP)
        store_checksum(draft, at + 16, at, step->end, pseudo_sum(draft, ip, length, protocol));
    else if ((protocol == IP_UDP || protocol == IP_UDP_LITE) && has(draft, at, UDP_HEADER)) {
        uint32_t own = load_be16(draft->out + at + 4);
        length = protocol == IP_UDP && own ? own : length;
        put_udp_checksum(draft, step, pseudo_sum(draft, ip, length, protocol));
    }
}

void put_checksum(struct draft *draft, const struct decode_step *steps, size_t i) {
    const struct decode_step *step = &steps[i];
    uint32_t at = step->offset;
    if (step->kind == NEXT_IPV4)
        put_ipv4_checksum(draft, at);
    if (step->kind == NEXT_GRE && has(draft, at, 8) &&
        (load_be16(draft->in + at) & 0x8007) == 0x8000)
        store_checksum(draft, at + 4, at, step->end, 0);
    if (step->kind != NEXT_TRANSPORT && step->kind != NEXT_ICMP)
        return;
    while (i-- > 0)
        if (steps[i].kind == NEXT_IPV4 || steps[i].kind == NEXT_IPV6) {
            put_transport_checksum(draft, step, &steps[i]);
            return;
        }
}
