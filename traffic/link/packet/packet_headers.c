/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Ethernet, VLAN tags, IPv4, IPv6 with its extension headers, TCP, UDP and the header of a
 * block; makes ICMP messages. Reading moves a cursor that holds the bytes that are left: a length
 * is checked before the bytes are used, and a packet that is cut short is identified as far as it
 * goes. */
#include "packet/packet_headers.h"

#include <netinet/in.h>
#include <string.h>

#define MAX_EXTENSIONS 8u

/* The bytes of a frame that are not read yet. */
struct cursor {
    const uint8_t *at;
    uint32_t left;
};

static bool skip(struct cursor *cursor, uint32_t count) {
    if (cursor->left < count)
        return false;
    cursor->at += count;
    cursor->left -= count;
    return true;
}

static uint16_t load16(const uint8_t *at) {
    return (uint16_t)block_load(at, 2);
}

static void identify_block(const struct cursor *payload, struct truth_record *truth) {
    struct block_header header;
    truth->payload_bytes = payload->left;
    if (!block_read_header(&header, payload->at, payload->left))
        return;
    truth->bits |= TRUTH_BLOCK;
    truth->block_run = header.run;
    truth->block_stream = header.stream;
    truth->block_sequence = header.sequence;
}

static void identify_ports(const struct cursor *cursor, struct truth_record *truth) {
    truth->bits |= TRUTH_PORTS;
    truth->source_port = load16(cursor->at);
    truth->destination_port = load16(cursor->at + 2);
}

/* RFC 9293 3.1. If the data offset points behind the packet, the payload is unknown. */
static void identify_tcp(struct cursor cursor, struct truth_record *truth) {
    if (cursor.left < 20)
        return;
    identify_ports(&cursor, truth);
    truth->bits |= TRUTH_TCP;
    truth->tcp_sequence = (uint32_t)block_load(cursor.at + 4, 4);
    truth->tcp_ack = (uint32_t)block_load(cursor.at + 8, 4);
    truth->tcp_flags = cursor.at[13];
    if (skip(&cursor, (uint32_t)(cursor.at[12] >> 4) * 4))
        identify_block(&cursor, truth);
}

/* The IP length bounds the payload, so the length in the UDP header (RFC 768) is not used. */
static void identify_udp(struct cursor cursor, struct truth_record *truth) {
    if (cursor.left < 8)
        return;
    identify_ports(&cursor, truth);
    skip(&cursor, 8);
    identify_block(&cursor, truth);
}

/* A later fragment has no ports: only its bytes are counted. */
static void identify_transport(struct cursor cursor, struct truth_record *truth) {
    if (truth->fragment_offset)
        truth->payload_bytes = cursor.left;
    else if (truth->protocol == IPPROTO_TCP)
        identify_tcp(cursor, truth);
    else if (truth->protocol == IPPROTO_UDP)
        identify_udp(cursor, truth);
}

/* Ethernet pads short frames, so the length of the IP header bounds the packet. */
static void cut_to(struct cursor *cursor, uint32_t bytes) {
    if (bytes < cursor->left)
        cursor->left = bytes;
}

/* RFC 791. A total length below the header length (segmentation offload sets 0) is ignored. */
static bool identify_ip4(struct cursor cursor, struct truth_record *truth) {
    if (cursor.left < 20)
        return false;
    const uint8_t *ip = cursor.at;
    uint32_t header = (ip[0] & 15u) * 4;
    cut_to(&cursor, load16(ip + 2) >= header ? load16(ip + 2) : cursor.left);
    truth->ip_version = 4;
    truth->ip_bytes = cursor.left;
    truth->ip_id = load16(ip + 4);
    truth->fragment_offset = load16(ip + 6) & 0x1fff;
    if (load16(ip + 6) & 0x3fff)
        truth->bits |= TRUTH_FRAGMENT;
    truth->protocol = ip[9];
    memcpy(truth->source, ip + 12, 4);
    memcpy(truth->destination, ip + 16, 4);
    if (header >= 20 && skip(&cursor, header))
        identify_transport(cursor, truth);
    return true;
}

static bool is_extension(uint8_t protocol) {
    return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
           protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_FRAGMENT;
}

/* Skips one IPv6 extension header; notes the fragment header (RFC 8200, 4.5). */
static bool skip_extension(struct cursor *cursor, struct truth_record *truth) {
    if (cursor->left < 8)
        return false;
    const uint8_t *at = cursor->at;
    uint32_t bytes = truth->protocol == IPPROTO_FRAGMENT ? 8 : (at[1] + 1u) * 8;
    if (truth->protocol == IPPROTO_FRAGMENT) {
        truth->bits |= TRUTH_FRAGMENT;
        truth->fragment_offset = load16(at + 2) >> 3;
        truth->ip_id = (uint32_t)block_load(at + 4, 4);
    }
    truth->protocol = at[0];
    return skip(cursor, bytes) && !truth->fragment_offset;
}

/* Returns whether the packet is a message of RFC 4861 or RFC 3810, which never leaves a link. */
static bool is_of_the_link(const struct cursor *cursor, const struct truth_record *truth) {
    if (truth->protocol != IPPROTO_ICMPV6 || !cursor->left)
        return false;
    uint8_t type = cursor->at[0];
    return (type >= 130 && type <= 137) || type == 143;
}

/* RFC 8200. At most MAX_EXTENSIONS extension headers are followed. */
static bool identify_ip6(struct cursor cursor, struct truth_record *truth) {
    if (cursor.left < 40)
        return false;
    const uint8_t *ip = cursor.at;
    cut_to(&cursor, 40u + load16(ip + 4));
    truth->ip_version = 6;
    truth->ip_bytes = cursor.left;
    truth->protocol = ip[6];
    memcpy(truth->source, ip + 8, 16);
    memcpy(truth->destination, ip + 24, 16);
    skip(&cursor, 40);
    for (unsigned i = 0; i < MAX_EXTENSIONS && is_extension(truth->protocol); i++)
        if (!skip_extension(&cursor, truth))
            break;
    if (is_of_the_link(&cursor, truth))
        return false;
    if (!is_extension(truth->protocol))
        identify_transport(cursor, truth);
    return true;
}

/* RFC 1624, equation 3: the checksum after the first word of an IPv4 header changed. */
static void correct_checksum(uint8_t *ip, uint16_t before) {
    uint32_t sum = (uint16_t)~load16(ip + 10) + (uint16_t)~before + load16(ip);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    block_store(ip + 10, (uint16_t)~sum, 2);
}

/* The ECN field is in the lowest bits of the second byte (IPv4), or within it (IPv6). An IP header
 * that packet_identify() accepted is complete. */
bool packet_mark(struct link_packet *packet) {
    uint8_t *ip = packet->frame + packet->ip_at;
    unsigned shift = packet->original->truth.ip_version == 4 ? 0 : 4;
    uint16_t before = load16(ip);
    if (!(ip[1] >> shift & 3))
        return false;
    ip[1] |= (uint8_t)(3u << shift);
    if (!shift)
        correct_checksum(ip, before);
    return true;
}

/* Follows tags of IEEE 802.1Q and 802.1ad as far as the frame reaches. */
bool packet_identify(const uint8_t *frame, uint32_t size, struct truth_record *truth,
                     uint32_t *ip_at) {
    if (size < ETHERNET_BYTES)
        return false;
    uint32_t at = 12;
    uint16_t type = load16(frame + at);
    while ((type == 0x8100 || type == 0x88a8) && size >= at + 6)
        type = load16(frame + (at += 4));
    *ip_at = at += 2;
    struct cursor cursor = {frame + at, size - at};
    if (type == 0x0800)
        return identify_ip4(cursor, truth);
    return type == 0x86dd && identify_ip6(cursor, truth);
}

#define ICMP4_QUOTE 548u  /* so that the answer has 576 bytes at most (RFC 1812, 4.3.2.3) */
#define ICMP6_QUOTE 1232u /* 1280 (RFC 4443, 2.4) */

/* Adds 16-bit words for the Internet checksum (RFC 1071). */
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

/* RFC 792 and RFC 1191: type 3, code 4, with the MTU of the link. */
static void write_ip4(uint8_t *ip, uint32_t bytes, uint16_t mtu, const uint8_t *from,
                      const uint8_t *to) {
    ip[0] = 0x45;
    block_store(ip + 2, bytes, 2);
    ip[8] = 64;
    ip[9] = IPPROTO_ICMP;
    memcpy(ip + 12, from, 4);
    memcpy(ip + 16, to, 4);
    block_store(ip + 10, checksum(sum_words(0, ip, 20)), 2);
    ip[20] = 3; /* destination unreachable */
    ip[21] = 4; /* fragmentation needed */
    block_store(ip + 26, mtu, 2);
}

/* RFC 4443, section 3.2: type 2, with the MTU of the link. */
static void write_ip6(uint8_t *ip, uint32_t bytes, uint16_t mtu, const uint8_t *from,
                      const uint8_t *to) {
    ip[0] = 0x60;
    block_store(ip + 4, bytes - 40, 2);
    ip[6] = IPPROTO_ICMPV6;
    ip[7] = 64;
    memcpy(ip + 8, from, 16);
    memcpy(ip + 24, to, 16);
    ip[40] = 2; /* packet too big */
    block_store(ip + 44, mtu, 4);
}

/* Conditions of RFC 1122, 3.2.2 and RFC 4443, 2.4. */
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

/* The message goes back to the frame's sender, without VLAN tags, and quotes the packet. */
uint32_t icmp_too_big(const struct link_packet *packet, uint16_t mtu,
                      const struct link_addresses *from, uint8_t *frame) {
    if (!is_due(packet))
        return 0;
    bool is_ip4 = packet->truth.ip_version == 4;
    uint32_t header = is_ip4 ? 20 : 40, most = is_ip4 ? ICMP4_QUOTE : ICMP6_QUOTE, pseudo = 0;
    uint32_t quote = packet->truth.ip_bytes < most ? packet->truth.ip_bytes : most;
    uint8_t *ip = frame + ETHERNET_BYTES, *icmp = ip + header;
    memcpy(frame, packet->frame + 6, 6);
    memcpy(frame + 6, packet->frame, 6);
    block_store(frame + 12, is_ip4 ? 0x0800 : 0x86dd, 2);
    memset(ip, 0, header + 8);
    if (is_ip4) {
        write_ip4(ip, header + 8 + quote, mtu, from->ip4, packet->truth.source);
    } else {
        write_ip6(ip, header + 8 + quote, mtu, from->ip6, packet->truth.source);
        pseudo = sum_words(8 + quote + IPPROTO_ICMPV6, ip + 8, 32); /* RFC 8200, 8.1 */
    }
    memcpy(icmp + 8, packet->frame + packet->ip_at, quote);
    block_store(icmp + 2, checksum(sum_words(pseudo, icmp, 8 + quote)), 2);
    return ETHERNET_BYTES + header + 8 + quote;
}
