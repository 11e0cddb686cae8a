/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_id.h"

#include <netinet/in.h>
#include <string.h>

#include "common/block.h"
#include "link_packet.h"

#define EXTENSIONS_MOST 8u

/* What is left of a frame. */
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

static void identify_udp(struct cursor cursor, struct truth_record *truth) {
    if (cursor.left < 8)
        return;
    identify_ports(&cursor, truth);
    skip(&cursor, 8);
    identify_block(&cursor, truth);
}

static void identify_transport(struct cursor cursor, struct truth_record *truth) {
    if (truth->fragment_offset)
        truth->payload_bytes = cursor.left;
    else if (truth->protocol == IPPROTO_TCP)
        identify_tcp(cursor, truth);
    else if (truth->protocol == IPPROTO_UDP)
        identify_udp(cursor, truth);
}

/* The frame may be longer than the packet (padding): cut off. */
static void cut_to(struct cursor *cursor, uint32_t bytes) {
    if (bytes < cursor->left)
        cursor->left = bytes;
}

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

/* Steps over one extension header. */
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

/* Of RFC 4861 and RFC 3810: messages that never leave a link. */
static bool is_of_the_link(const struct cursor *cursor, const struct truth_record *truth) {
    if (truth->protocol != IPPROTO_ICMPV6 || !cursor->left)
        return false;
    uint8_t type = cursor->at[0];
    return (type >= 130 && type <= 137) || type == 143;
}

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
    for (unsigned i = 0; i < EXTENSIONS_MOST && is_extension(truth->protocol); i++)
        if (!skip_extension(&cursor, truth))
            break;
    if (is_of_the_link(&cursor, truth))
        return false;
    if (!is_extension(truth->protocol))
        identify_transport(cursor, truth);
    return true;
}

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
