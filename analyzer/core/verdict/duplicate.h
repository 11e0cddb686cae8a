/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of packets: by a mirror port (the capture's own doing), or by the network. */
#ifndef WIRETALE_TCP_COPY_H
#define WIRETALE_TCP_COPY_H

#include "tcp/segment.h"

#define MIRROR_GAP_NS   1000000 /* a mirror port's copy comes within */
#define MARK_UNIT_SHIFT 7       /* 128 ns */
#define HASTE_GAP_NS    500000  /* sooner than any timer */

/* A time as a packet_mark has it. */
static inline uint32_t tcp_copy_time(int64_t time_ns) {
    return (uint32_t)(time_ns >> MARK_UNIT_SHIFT);
}

/* What is the same of a segment and its copy, in one number: they are told by it from most others.
 * It is a part of the header so that it can be computed where that is read.
 *
 * Two multiplications by odd constants (of MurmurHash, public domain): each spreads what differs to
 * the upper half. */
static inline uint32_t tcp_copy_signature(const struct tcp_header *tcp, uint16_t checksum,
                                          uint32_t payload_bytes) {
    uint64_t place = (uint64_t)tcp->acknowledgment << 32 | tcp->sequence;
    uint64_t rest = (uint64_t)checksum << 32 | (uint32_t)tcp->window << 16 | tcp->flags;
    uint64_t hash = place * UINT64_C(0xFF51AFD7ED558CCD) ^ rest;
    hash += (uint64_t)payload_bytes << 32;
    if (tcp->options & TCP_OPTION_TIMESTAMPS)
        hash += tcp->timestamp_value;
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0xC4CEB9FE1A85EC53) >> 32);
}

/* Whether the segment is a copy of one of the last packets; then it is counted, and is nothing
 * else. Others are remembered for their copies. `doubtful`: it brings nothing new by its numbers.
 */
bool tcp_copy_take(struct step *step, bool doubtful);

#endif
