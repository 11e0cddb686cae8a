/* SPDX-License-Identifier: Apache-2.0 */
#include "icmp_too_big.h"

#include <netinet/in.h>
#include <string.h>

#include "common/block.h"

#define ICMP4_QUOTE 548u  /* so that the answer has 576 bytes at most (RFC 1812, 4.3.2.3) */
#define ICMP6_QUOTE 1232u /* 1280 (RFC 4443, 2.4) */

static uint32_t sum_words(uint32_t sum, const uint8_t *bytes, uint32_t count) {
    for (uint32_t i = 0; i + 1 < count; i += 2)
        sum += (uint32_t)block_load(bytes + i, 2);
    return count % 2 ? sum + ((uint32_t)bytes[count - 1] << 8) : sum;
}

static uint16_t checksum(uint32_t sum) {
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Back where it came from: addresses of the frame exchanged, no VLAN tags. */
static void write_ethernet(const struct link_packet *packet, uint16_t type, uint8_t *frame) {
    memcpy(frame, packet->frame + 6, 6);
    memcpy(frame + 6, packet->frame, 6);
    block_store(frame + 12, type, 2);
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t answer_ip4(const struct link_packet *packet, uint16_t mtu, const uint8_t *from,
                           uint8_t *frame) {
    uint32_t quote = least(packet->truth.ip_bytes, ICMP4_QUOTE);
    uint8_t *ip = frame + ETHERNET_BYTES, *icmp = ip + 20;
    write_ethernet(packet, 0x0800, frame);
    memset(ip, 0, 28);
    ip[0] = 0x45;
    block_store(ip + 2, 28 + quote, 2);
    ip[8] = 64;
    ip[9] = IPPROTO_ICMP;
    memcpy(ip + 12, from, 4);
    memcpy(ip + 16, packet->truth.source, 4);
    block_store(ip + 10, checksum(sum_words(0, ip, 20)), 2);
    icmp[0] = 3; /* destination unreachable */
    icmp[1] = 4; /* fragmentation needed */
    block_store(icmp + 6, mtu, 2);
    memcpy(icmp + 8, packet->frame + packet->ip_at, quote);
    block_store(icmp + 2, checksum(sum_words(0, icmp, 8 + quote)), 2);
    return ETHERNET_BYTES + 28 + quote;
}

static uint32_t answer_ip6(const struct link_packet *packet, uint16_t mtu, const uint8_t *from,
                           uint8_t *frame) {
    uint32_t quote = least(packet->truth.ip_bytes, ICMP6_QUOTE);
    uint8_t *ip = frame + ETHERNET_BYTES, *icmp = ip + 40;
    write_ethernet(packet, 0x86dd, frame);
    memset(ip, 0, 48);
    ip[0] = 0x60;
    block_store(ip + 4, 8 + quote, 2);
    ip[6] = IPPROTO_ICMPV6;
    ip[7] = 64;
    memcpy(ip + 8, from, 16);
    memcpy(ip + 24, packet->truth.source, 16);
    icmp[0] = 2; /* packet too big */
    block_store(icmp + 4, mtu, 4);
    memcpy(icmp + 8, packet->frame + packet->ip_at, quote);
    uint32_t pseudo = sum_words(8 + quote + IPPROTO_ICMPV6, ip + 8, 32); /* RFC 8200, 8.1 */
    block_store(icmp + 2, checksum(sum_words(pseudo, icmp, 8 + quote)), 2);
    return ETHERNET_BYTES + 48 + quote;
}

/* None for a later fragment, for other ICMP than echo, or to a group (RFC 1122, 3.2.2; RFC
 * 4443, 2.4). */
static bool is_due(const struct link_packet *packet) {
    const struct truth_record *truth = &packet->truth;
    if (truth->fragment_offset || packet->frame[0] & 1)
        return false;
    const uint8_t *ip = packet->frame + packet->ip_at;
    uint32_t header = truth->ip_version == 4 ? (ip[0] & 15u) * 4 : 40;
    if (packet->size < packet->ip_at + header + 1)
        return false;
    if (truth->protocol == IPPROTO_ICMP)
        return ip[header] == 0 || ip[header] == 8;
    return truth->protocol != IPPROTO_ICMPV6 || ip[header] >= 128;
}

uint32_t icmp_too_big(const struct link_packet *packet, uint16_t mtu,
                      const struct link_addresses *from, uint8_t *frame) {
    if (!is_due(packet))
        return 0;
    return packet->truth.ip_version == 4 ? answer_ip4(packet, mtu, from->ip4, frame)
                                         : answer_ip6(packet, mtu, from->ip6, frame);
}
