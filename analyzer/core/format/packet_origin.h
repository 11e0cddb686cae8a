/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of a packet in a shard (shard/split.h): its file and frame, and the state that the
 * packets of other shards would have left.
 *
 *   Section header option 0x8157    u32: version of this layout
 *   Enhanced packet block, options in this order:
 *     epb_packetid (5)              u64: bits 0-33 frame, 34-52 file, 53-60 ids_before
 *                                   (struct packet_info), 61-62 checksum (enum
 *                                   packet_checksum), 63 payload left out
 *     0x8158, in few packets        struct packet_origin without padding, ORIGIN_SIZE bytes
 *     0x8001, if it has a process   u32: number of its block (format/pcapng_process.h)
 *
 * Codes with the highest bit are for local use (draft-ietf-opsawg-pcapng, section 3.5). Numbers are
 * little-endian, as the whole section. */
#ifndef WIRETALE_PACKET_ORIGIN_H
#define WIRETALE_PACKET_ORIGIN_H

#include "base/bytes.h"
#include "base/packet.h"

#define ORIGIN_VERSION    4u
#define OPTION_SHARD      0x8157
#define OPTION_PACKET_ID  5
#define OPTION_ORIGIN     0x8158
#define ORIGIN_SIZE       36u
#define ID_FRAME_BITS     34u
#define ID_IDS_SHIFT      53u
#define ID_CHECKSUM_SHIFT 61u
/* A packet without a record: the clock has come at least so close to its time. */
#define CLOCK_LAG_NS 1000000000
#define ID_CUT       (UINT64_C(1) << 63)

/* Bits of packet->shard. */
enum packet_shard { SHARD_PACKET = 1, SHARD_PAYLOAD_CUT = 2, SHARD_ORIGIN = 4 };
#define SHARD_CHECKSUM_SHIFT 3 /* the next two bits are those of an enum packet_checksum */
#define SHARD_IDS_SHIFT      5 /* the next eight bits are ids_before */

/* An ICMP error concerns two flows, which may be in two shards; it is then in both. */
enum origin_flag { ORIGIN_QUOTE_ONLY = 1, ORIGIN_NOT_QUOTED = 2 };

struct packet_origin {
    int64_t time_ns;      /* as in struct packet, also TIME_UNKNOWN */
    int64_t used_ns;      /* without a time: that of the packet before; else the clock, which is the
                             latest time that two successive packets of the file reached */
    int64_t merge_ns;     /* the latest time of the file so far, by which files are merged */
    int64_t step_back_ns; /* how far it is before the packet before of its interface, else 0 */
    uint16_t clock_step_us; /* as in struct packet_info */
    uint16_t flags;         /* enum origin_flag */
};

/* Bytes between the padded data of a packet and its record: the option of its identity, and the
 * head of the next one. */
#define ORIGIN_OFFSET (4u + 8u + 4u)

/* Reads the record of a packet with SHARD_ORIGIN. */
static inline struct packet_origin packet_origin_of(const struct packet *packet) {
    const uint8_t *p = packet->data + (((size_t)packet->captured + 3) & ~(size_t)3) + ORIGIN_OFFSET;
    return (struct packet_origin){.time_ns = (int64_t)load_le64(p),
                                  .used_ns = (int64_t)load_le64(p + 8),
                                  .merge_ns = (int64_t)load_le64(p + 16),
                                  .step_back_ns = (int64_t)load_le64(p + 24),
                                  .clock_step_us = load_le16(p + 32),
                                  .flags = load_le16(p + 34)};
}

#endif
