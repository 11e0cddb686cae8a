/* SPDX-License-Identifier: Apache-2.0 */
/* A packet as a record of a file. The reading thread writes it into a chunk, and all later stages
 * only move its bytes.
 *
 *   pcapng, enhanced packet block           classic pcap, ns (a1b23c4d)
 *   OFFSET SIZE DESCRIPTION                 OFFSET SIZE DESCRIPTION
 *   0      4    type 6                      0      4    seconds
 *   4      4    length of the block         4      4    nanoseconds
 *   8      4    interface number            8      4    captured length
 *   12     8    time, ns, high word first   12     4    length on the wire
 *   20     4    captured length             16     ..   data
 *   24     4    length on the wire
 *   28     ..   data, padded to 4 bytes
 *          8+4  epb_flags and end of options, if the direction is known
 *   -4     4    length of the block
 *
 * All fields are in the byte order of the host. */
#ifndef WIRETALE_CAPTURE_RECORD_H
#define WIRETALE_CAPTURE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RECORD_PACKET_TYPE 6u
#define RECORD_EPB_FIXED   32u /* with the trailing length */
#define RECORD_EPB_FLAGS   12u /* an option of 4 + 4 bytes, and the end of options */
#define RECORD_PCAP_HEADER 16u
#define RECORD_SNAPLEN_MAX 262144u
#define RECORD_MAX         (RECORD_EPB_FIXED + RECORD_SNAPLEN_MAX + RECORD_EPB_FLAGS)
#define RECORD_SECOND_NS   UINT64_C(1000000000)

enum record_format { RECORD_PCAPNG, RECORD_PCAP };

/* epb_flags, bits 0 and 1 */
enum record_direction { RECORD_UNKNOWN, RECORD_INBOUND, RECORD_OUTBOUND };

struct record_view { /* fields of a record without its packet */
    size_t size;
    uint32_t interface;
    int64_t time_ns;
};

static inline void put_u16(uint8_t *to, uint16_t value) {
    memcpy(to, &value, sizeof value);
}

static inline void put_u32(uint8_t *to, uint32_t value) {
    memcpy(to, &value, sizeof value);
}

static inline uint32_t get_u32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline size_t record_epb_size(uint32_t captured, enum record_direction direction) {
    size_t padded = ((size_t)captured + 3) & ~(size_t)3;
    return RECORD_EPB_FIXED + padded + (direction ? RECORD_EPB_FLAGS : 0);
}

/* Writes an enhanced packet block; `to` must have `size` bytes, which record_epb_size() returns. */
static inline void record_put_epb(uint8_t *to, size_t size, uint32_t interface, uint64_t time_ns,
                                  uint32_t captured, uint32_t length, const uint8_t *data,
                                  enum record_direction direction) {
    const uint32_t head[] = {
        RECORD_PACKET_TYPE, (uint32_t)size, interface, (uint32_t)(time_ns >> 32),
        (uint32_t)time_ns,  captured,       length};
    memcpy(to, head, sizeof head);
    put_u32(to + size - 4, (uint32_t)size);
    uint8_t *packet = to + sizeof head;
    size_t padded = ((size_t)captured + 3) & ~(size_t)3;
    if (captured & 3)
        put_u32(packet + padded - 4, 0);
    if (direction) {
        const uint32_t options[] = {4u << 16 | 2u, direction, 0};
        memcpy(packet + padded, options, sizeof options);
    }
    memcpy(packet, data, captured);
}

static inline void record_put_pcap(uint8_t *to, uint64_t time_ns, uint32_t captured,
                                   uint32_t length, const uint8_t *data) {
    const uint32_t head[] = {(uint32_t)(time_ns / RECORD_SECOND_NS),
                             (uint32_t)(time_ns % RECORD_SECOND_NS), captured, length};
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, data, captured);
}

/* Parses a record that this program wrote, without checks. */
static inline struct record_view record_view(enum record_format format, const uint8_t *at) {
    if (format == RECORD_PCAP)
        return (struct record_view){
            .size = RECORD_PCAP_HEADER + get_u32(at + 8),
            .time_ns = (int64_t)(get_u32(at) * RECORD_SECOND_NS + get_u32(at + 4))};
    return (struct record_view){.size = get_u32(at + 4),
                                .interface = get_u32(at + 8),
                                .time_ns =
                                    (int64_t)((uint64_t)get_u32(at + 12) << 32 | get_u32(at + 16))};
}

#endif
