/* SPDX-License-Identifier: Apache-2.0 */
/* Protocols that hide IP packets from the analysis: flows behind them are missing or seem to have
 * one direction, so that a finding must name them.
 *
 * The decoder notes the EtherType, PPP protocol or link type at which it stopped
 * (headers.undecoded). Protocols that never carry IP, such as ARP and LLDP, do not count. An IP
 * protocol counts if it is an encapsulation. A UDP port proves nothing, so a datagram to the port
 * of an encapsulation counts only if it contains an IP header. */
#include <stdio.h>

#include "decode/step.h"

/* EtherTypes of IEEE's registry that carry no IP packet, ascending. */
static const struct {
    uint16_t first, last;
} ether_types_without_ip[] = {
    {0x0600, 0x0600}, /* XNS */
    {0x0806, 0x0806}, /* ARP */
    {0x0842, 0x0842}, /* Wake-on-LAN */
    {0x0bad, 0x0bad}, /* VINES */
    {0x2000, 0x2004}, /* CDP, DTP */
    {0x22ea, 0x22ea}, /* Stream Reservation Protocol */
    {0x22f0, 0x22f0}, /* AVTP */
    {0x22f4, 0x22f4}, /* IS-IS */
    {0x6000, 0x6009}, /* DEC */
    {0x8035, 0x8035}, /* RARP */
    {0x809b, 0x809b}, /* AppleTalk */
    {0x80f3, 0x80f3}, /* AppleTalk ARP */
    {0x8102, 0x8103}, /* SLPP, VLACP */
    {0x8137, 0x8138}, /* IPX */
    {0x8204, 0x8204}, /* QNX */
    {0x872d, 0x872d}, /* Cisco OTV hello */
    {0x8808, 0x8809}, /* pause, LACP and other slow protocols */
    {0x8819, 0x8819}, /* CobraNet */
    {0x8863, 0x8863}, /* PPPoE discovery */
    {0x886f, 0x886f}, /* Network Load Balancing */
    {0x8874, 0x8874}, /* Broadcom */
    {0x887b, 0x887b}, /* HomePlug */
    {0x888d, 0x888e}, /* 802.1X */
    {0x8892, 0x8892}, /* PROFINET */
    {0x8899, 0x889a}, /* Realtek, HyperSCSI */
    {0x88a2, 0x88a2}, /* ATA over Ethernet */
    {0x88a4, 0x88a4}, /* EtherCAT */
    {0x88ab, 0x88ab}, /* POWERLINK */
    {0x88b8, 0x88ba}, /* GOOSE, GSE, sampled values */
    {0x88bf, 0x88bf}, /* MikroTik RoMON */
    {0x88c7, 0x88c7}, /* 802.11 pre-authentication */
    {0x88ca, 0x88ca}, /* TIPC */
    {0x88cc, 0x88cd}, /* LLDP, SERCOS */
    {0x88d9, 0x88dc}, /* LLTD, WSMP */
    {0x88e1, 0x88e1}, /* HomePlug AV */
    {0x88e3, 0x88e3}, /* Media Redundancy Protocol */
    {0x88f5, 0x88f8}, /* MVRP, MMRP, PTP, NC-SI */
    {0x88fb, 0x88fb}, /* PRP supervision */
    {0x8902, 0x8902}, /* connectivity fault management */
    {0x8906, 0x8906}, /* Fibre Channel */
    {0x8914, 0x8915}, /* its initialization, RoCE */
    {0x891d, 0x891d}, /* TTEthernet */
    {0x8929, 0x8929}, /* Multiple I-SID Registration */
    {0x893a, 0x893a}, /* IEEE 1905.1 */
    {0x8940, 0x8940}, /* edge control */
    {0x8947, 0x8947}, /* GeoNetworking */
    {0x9000, 0x9000}, /* loopback test */
    {0x9003, 0x9003}, /* Juniper and others: keep-alive */
    {0xfefe, 0xfefe}, /* OSI over Cisco HDLC */
};

/* IP protocols (IANA) that carry another packet and are not decoded. */
static bool is_encapsulation(uint8_t protocol) {
    enum { MINIMAL = 55, IPIP_OLD = 94, ENCAP = 98, IPCOMP = 108 };
    return protocol == MINIMAL || protocol == IPIP_OLD || protocol == ENCAP || protocol == IPCOMP;
}

/* UDP ports (IANA) of encapsulations: those that are decoded, GUE and TZSP. */
static bool is_encapsulation_port(uint16_t port) {
    return tunnel_to(port) || port == 6080 || port == 37008;
}

#define HEADERS_BEFORE 64u /* bytes between the UDP header and the IP header that is looked for */

static bool is_ipv4(const uint8_t *ip, uint32_t rest) {
    uint32_t length = load_be16(ip + 2);
    return ip[0] == 0x45 && length >= IPV4_HEADER && length <= rest &&
           checksum_is_right(ip, IPV4_HEADER);
}

/* Without a checksum, the length must be exact. */
static bool is_ipv6(const uint8_t *ip, uint32_t rest) {
    bool transport = ip[6] == IP_TCP || ip[6] == IP_UDP || ip[6] == IP_ICMPV6;
    return ip[0] >> 4 == 6 && transport && IPV6_HEADER + (uint32_t)load_be16(ip + 4) == rest;
}

static bool holds_ip(const struct headers *headers) {
    for (uint32_t at = 0; at <= HEADERS_BEFORE; at++) {
        const uint8_t *ip = headers->payload + at;
        if (at + IPV4_HEADER > headers->payload_captured)
            return false;
        uint32_t rest = headers->payload_length - at;
        if (is_ipv4(ip, rest) || is_ipv6(ip, rest))
            return true;
    }
    return false;
}

static bool ether_type_is_without_ip(uint16_t type) {
    if (type < ETHER_TYPE_MIN) /* GRE's keep-alives have type 0 */
        return true;
    for (size_t i = 0; i < sizeof ether_types_without_ip / sizeof *ether_types_without_ip; i++)
        if (type <= ether_types_without_ip[i].last)
            return type >= ether_types_without_ip[i].first;
    return false;
}

/* IANA's PPP numbers: data of network protocols are below 4000, control protocols above. */
static bool ppp_is_without_ip(uint16_t protocol) {
    switch (protocol) {
    case 0x0023: /* OSI */
    case 0x0025: /* XNS */
    case 0x0027: /* DECnet */
    case 0x0029: /* AppleTalk */
    case 0x002b: /* IPX */
    case 0x0035: /* VINES */
    case 0x003f: /* NetBIOS */ return true;
    default: return protocol >= 0x4000;
    }
}

static bool is_without_ip(uint32_t undecoded) {
    uint16_t number = (uint16_t)undecoded;
    switch (undecoded >> 16) {
    case UNDECODED_ETHER_TYPE: return ether_type_is_without_ip(number);
    case UNDECODED_PPP: return ppp_is_without_ip(number);
    default: return false;
    }
}

uint32_t undecoded_protocol(const struct headers *headers) {
    if (headers->undecoded)
        return is_without_ip(headers->undecoded) ? 0 : headers->undecoded;
    if (headers->layer < LAYER_NETWORK)
        return 0;
    if (headers->answer == DECODE_MALFORMED || headers->fragment_offset)
        return 0;
    if (headers->layer == LAYER_NETWORK && (is_encapsulation(headers->protocol) ||
                                            (headers->protocol == IP_L2TP && holds_ip(headers))))
        return UNDECODED_IP_PROTOCOL << 16 | headers->protocol;
    if (headers->protocol == IP_UDP && is_encapsulation_port(headers->destination_port) &&
        holds_ip(headers))
        return UNDECODED_UDP_PORT << 16 | headers->destination_port;
    return 0;
}

void undecoded_name(uint32_t protocol, char text[UNDECODED_NAME_MAX]) {
    const size_t room = UNDECODED_NAME_MAX;
    unsigned number = protocol & 0xffff;
    switch (protocol >> 16) {
    case UNDECODED_ETHER_TYPE: snprintf(text, room, "EtherType 0x%04x", number); return;
    case UNDECODED_PPP: snprintf(text, room, "PPP protocol 0x%04x", number); return;
    case UNDECODED_LINK_TYPE: snprintf(text, room, "link type %u", number); return;
    case UNDECODED_IP_PROTOCOL: snprintf(text, room, "IP protocol %u", number); return;
    case UNDECODED_TCP_PORT: snprintf(text, room, "TCP port %u", number); return;
    case UNDECODED_UDP_PORT: snprintf(text, room, "UDP port %u", number); return;
    default: snprintf(text, room, "6LoWPAN"); return;
    }
}
