/* SPDX-License-Identifier: Apache-2.0 */
#include "device/repeats.h"

#include <pcap/dlt.h>
#include <stdbool.h>
#include <string.h>

#include "common/hash.h"

#define LINK_RAW      101 /* of files: DLT_RAW differs between systems */
#define TCP           6
#define LEAST_PAYLOAD 2 /* keep-alives and window probes have one byte */

enum { FLAG_SYN = 2 };

struct segment {
    const uint8_t *addresses, *ports;
    size_t addresses_size;
    uint32_t seq, length; /* of its payload */
    uint16_t id;
    uint8_t flags;
};

static uint32_t get_16(const uint8_t *at) {
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get_32(const uint8_t *at) {
    return get_16(at) << 16 | get_16(at + 2);
}

/* Returns the offset of the IP header, 0 if there is none. Up to two VLAN tags are passed over. */
static size_t find_ip(int link_type, const uint8_t *packet, size_t captured, size_t *at) {
    size_t type_at = link_type == DLT_EN10MB ? 12 : link_type == DLT_LINUX_SLL ? 14 : 0;
    *at = link_type == DLT_LINUX_SLL2 ? 20 : type_at + 2;
    if (link_type == LINK_RAW) {
        *at = 0;
        return captured > 0;
    }
    if (link_type != DLT_EN10MB && link_type != DLT_LINUX_SLL && link_type != DLT_LINUX_SLL2)
        return false;
    for (unsigned tags = 0; tags <= 2 && *at < captured; tags++) {
        uint32_t type = get_16(packet + type_at);
        if (type != 0x8100 && type != 0x88a8)
            return type == 0x0800 || type == 0x86dd;
        type_at = *at + 2;
        *at += 4;
        if (*at > captured)
            break;
    }
    return false;
}

static bool read_tcp(const uint8_t *tcp, const uint8_t *end, uint32_t size,
                     struct segment *segment) {
    if (end - tcp < 20)
        return false;
    uint32_t header = (uint32_t)(tcp[12] >> 4) * 4;
    segment->ports = tcp;
    segment->seq = get_32(tcp + 4);
    segment->flags = tcp[13];
    segment->length = size > header ? size - header : 0;
    return header >= 20;
}

/* The payload is what the IP header says, because the packet may be cut. */
static bool read_segment(const uint8_t *ip, const uint8_t *end, struct segment *segment) {
    if (end - ip < 20)
        return false;
    uint32_t header = (uint32_t)(ip[0] & 15) * 4, size = get_16(ip + 2);
    if (ip[0] >> 4 == 4 && header >= 20 && size > header && ip[9] == TCP &&
        !(get_16(ip + 6) & 0x3fff) && end - ip > header) {
        *segment = (struct segment){
            .addresses = ip + 12, .addresses_size = 8, .id = (uint16_t)get_16(ip + 4)};
        return read_tcp(ip + header, end, size - header, segment);
    }
    if (ip[0] >> 4 != 6 || end - ip < 40 || ip[6] != TCP)
        return false;
    *segment = (struct segment){.addresses = ip + 8, .addresses_size = 32};
    return read_tcp(ip + 40, end, get_16(ip + 4), segment);
}

void repeats_open(struct repeats *repeats) {
    memset(repeats, 0, sizeof *repeats);
    hash_seed_fill(repeats->seed, 2);
}

static uint32_t key_of(const struct repeats *repeats, const struct segment *segment) {
    uint64_t hash = hash_bytes(0, repeats->seed, segment->addresses, segment->addresses_size);
    return (uint32_t)hash_bytes(hash, repeats->seed, segment->ports, 4) | 1;
}

static void count(_Atomic uint64_t *counter) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void repeats_take(struct repeats *repeats, int link_type, const uint8_t *packet, size_t captured) {
    struct segment segment;
    size_t at;
    if (captured < 20 || !find_ip(link_type, packet, captured, &at) || at >= captured ||
        !read_segment(packet + at, packet + captured, &segment))
        return;
    uint32_t key = key_of(repeats, &segment);
    struct repeats_flow *flow = &repeats->flows[(key >> 1) % REPEATS_FLOWS];
    uint32_t next = segment.seq + segment.length;
    if (flow->key != key || segment.flags & FLAG_SYN) {
        bool is_syn = segment.flags & FLAG_SYN;
        *flow = (struct repeats_flow){key, next + is_syn, segment.seq, segment.id};
        return;
    }
    bool is_copy = segment.id && segment.id == flow->id && segment.seq == flow->seq;
    flow->id = segment.id;
    flow->seq = segment.seq;
    if (segment.length < LEAST_PAYLOAD || is_copy)
        return;
    count(&repeats->segments);
    if ((int32_t)(next - flow->next) > 0)
        flow->next = next;
    else
        count(&repeats->repeated);
}
