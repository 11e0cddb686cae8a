/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where the last whole block of a file ends. The bytes are not trusted: each length is
 * checked against what is left before it is used. Only block types that this program writes are
 * accepted, so that the walk stops at the first byte of garbage. */
#include "finish/walk.h"

#include <string.h>

#include "buffer/pcapng.h"
#include "buffer/record.h"

#define PCAP_HEADER      24u
#define MIN_SECTION      28u
#define BLOCK_LEAST      12u
#define STATISTICS_FIXED 20u /* with type and length */

/* Returns the value of an option between `at` and `end`, or NULL. */
static const uint8_t *find_option(const uint8_t *at, const uint8_t *end, unsigned code,
                                  size_t *length) {
    while (end - at >= 4) {
        uint32_t head = get_u32(at);
        *length = head >> 16;
        at += 4;
        if (!head || *length > (size_t)(end - at))
            return NULL;
        if ((head & 0xFFFF) == code)
            return at;
        size_t step = (*length + 3) & ~(size_t)3;
        if (step > (size_t)(end - at))
            return NULL;
        at += step;
    }
    return NULL;
}

/* Returns the length of the block at `at`, or 0 if it is not whole. */
static uint32_t block_length(const uint8_t *at, size_t left) {
    if (left < BLOCK_LEAST)
        return 0;
    uint32_t length = get_u32(at + 4);
    if (length < BLOCK_LEAST || length % 4 || length > left || get_u32(at + length - 4) != length)
        return 0;
    return length;
}

/* Only sections in the byte order of this host with this program's name are recovered, because no
 * other writer guarantees that a file grows block by block. */
static bool is_our_section(const uint8_t *data, size_t size) {
    uint32_t length = block_length(data, size);
    if (length < MIN_SECTION || get_u32(data) != BLOCK_SECTION ||
        get_u32(data + 8) != PCAPNG_BYTE_ORDER_MAGIC)
        return false;
    size_t text;
    const uint8_t *name =
        find_option(data + MIN_SECTION - 4, data + length - 4, SHB_APPLICATION, &text);
    return name && text >= sizeof PCAPNG_APPLICATION - 1 &&
           !memcmp(name, PCAPNG_APPLICATION, sizeof PCAPNG_APPLICATION - 1);
}

/* A packet must belong to a described interface and fit into its block. */
static bool take_packet(struct recovered *found, const uint8_t *at, uint32_t length) {
    if (length < RECORD_EPB_FIXED)
        return false;
    struct record_view record = record_view(RECORD_PCAPNG, at);
    if (record.interface >= found->interfaces || get_u32(at + 20) > length - RECORD_EPB_FIXED)
        return false;
    struct recovered_interface *interface = &found->of[record.interface];
    if (!interface->packets++)
        interface->first_ns = record.time_ns;
    interface->last_ns = record.time_ns;
    found->packets++;
    found->closed = false;
    return true;
}

/* Each description is one interface, in the order of the file. */
static bool take_interface(struct recovered *found) {
    if (found->interfaces == DESCRIPTIONS_MAX)
        return false;
    found->of[found->interfaces++] = (struct recovered_interface){0};
    return true;
}

/* Statistics with counts of accepted packets mark an orderly end; packets after them clear the
 * mark. */
static bool take_block(struct recovered *found, const uint8_t *at, uint32_t length) {
    size_t size;
    switch (get_u32(at)) {
    case RECORD_PACKET_TYPE: return take_packet(found, at, length);
    case BLOCK_INTERFACE: return length >= 20 && take_interface(found);
    case BLOCK_STATISTICS:
        if (length < STATISTICS_FIXED + 4)
            return false;
        found->closed |=
            find_option(at + STATISTICS_FIXED, at + length - 4, ISB_ACCEPTED, &size) != NULL;
        return true;
    default: return false; /* no other type is written */
    }
}

/* Walks block by block until one is incomplete or unknown. */
static void walk_pcapng(struct recovered *found, const uint8_t *data, size_t size) {
    found->ours = is_our_section(data, size);
    if (!found->ours)
        return;
    found->whole = get_u32(data + 4);
    for (uint32_t length; (length = block_length(data + found->whole, size - found->whole));
         found->whole += length)
        if (!take_block(found, data + found->whole, length))
            return;
}

/* A classic file is recognized by its magic number alone: only its name indicates that this program
 * wrote it. */
static void walk_pcap(struct recovered *found, const uint8_t *data, size_t size) {
    found->classic = found->ours = size >= PCAP_HEADER;
    if (!found->ours)
        return;
    found->whole = PCAP_HEADER;
    while (size - found->whole >= RECORD_PCAP_HEADER) {
        const uint8_t *at = data + found->whole;
        uint32_t captured = get_u32(at + 8);
        if (get_u32(at + 4) >= RECORD_SECOND_NS || captured > RECORD_SNAPLEN_MAX ||
            captured > size - found->whole - RECORD_PCAP_HEADER)
            return;
        found->whole += RECORD_PCAP_HEADER + captured;
        found->packets++;
    }
}

void recover_walk(struct recovered *found, const uint8_t *data, size_t size) {
    *found = (struct recovered){0};
    if (size >= 4 && get_u32(data) == PCAP_MAGIC_NS)
        walk_pcap(found, data, size);
    else
        walk_pcapng(found, data, size);
}
