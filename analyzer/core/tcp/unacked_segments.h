/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of one direction that are not acknowledged yet: the source of RTT samples, the TSval and
 * IP ID of first transmissions, and the largest payload that was acknowledged. A ring that grows to
 * MAX_UNACKED and then forgets the oldest. Ends must ascend, because positions are found by
 * bisection. */
#ifndef WIRETALE_UNACKED_SEGMENTS_H
#define WIRETALE_UNACKED_SEGMENTS_H

#include "base/packet.h"
#include "base/pool.h"

#define MAX_UNACKED         1024u
#define MAX_UNACKED_ONE_WAY 8u /* while no packet of the other direction was seen */

struct unacked_segment {
    int64_t end;     /* stream position after its last byte */
    int64_t time_ns; /* first transmission seen */
    uint32_t length; /* sequence space, with SYN and FIN */
    uint32_t frame;
    uint32_t tsval;    /* 0 without timestamps */
    uint32_t repeated; /* payload that the stream had retransmitted before, modulo 2^32 */
    uint32_t least;    /* payload of the smallest packet that carried its first byte */
    uint16_t ip_id;
    uint8_t ttl;
    uint8_t link : 7;   /* unacked_link() */
    bool no_sample : 1; /* retransmitted or held behind a gap: no RTT sample (Karn, RFC 6298
                           section 3) */
};

/* Returns 7 bits of the link addresses at a port of the capture. */
static inline uint8_t unacked_link(uint16_t port) {
    return port >> PORT_INTERFACE_BITS & 127;
}

struct unacked_segments {
    struct unacked_segment *segments;
    uint16_t head, count;
    uint16_t room : 15;  /* a power of two */
    uint16_t forgot : 1; /* a larger segment than acked_max, which may have been acknowledged */
    uint16_t acked_max;  /* largest payload known to be acknowledged, UINT16_MAX for more */
};

/* The segments that one ACK removed. */
struct ack_result {
    uint32_t count;
    bool no_sample;    /* of one of them */
    bool left;         /* later segments are still unacknowledged */
    int64_t newest_ns; /* transmission time of the last one */
    uint32_t newest_frame;
};

static inline struct unacked_segment *unacked_at(const struct unacked_segments *ring, uint32_t i) {
    return &ring->segments[(ring->head + i) & (ring->room - 1)];
}

/* Returns the entry for a new segment, NULL if the ring is full: then unacked_push() grows it or
 * drops the oldest, and returns NULL only without any memory. */
static inline struct unacked_segment *unacked_next(struct unacked_segments *ring) {
    return ring->count < ring->room ? unacked_at(ring, ring->count++) : NULL;
}
struct unacked_segment *unacked_push(struct unacked_segments *ring, uint32_t most,
                                     struct pool *pool);

/* Removes all segments that end at or below `position`, which must not descend from call to call.
 */
struct ack_result unacked_acknowledge(struct unacked_segments *ring, int64_t position);

/* Notes the payloads of the segments whose first byte is in [start, end), which a SACK reports. */
void unacked_sacked(struct unacked_segments *ring, int64_t start, int64_t end);

/* Notes that a packet with this payload carried [start, end) again. */
void unacked_repeated(struct unacked_segments *ring, int64_t start, int64_t end, uint32_t payload);

/* Notes a segment of that payload that the ring does not hold, and which may be acknowledged. */
static inline void unacked_forget(struct unacked_segments *ring, uint32_t payload) {
    ring->forgot |= payload > ring->acked_max;
}

/* Excludes all segments with bytes in [start, end) from RTT samples. */
void unacked_exclude(struct unacked_segments *ring, int64_t start, int64_t end);

/* Returns the segment that holds the byte at `position`, NULL if it is unknown. */
const struct unacked_segment *unacked_find(const struct unacked_segments *ring, int64_t position);

/* Returns the position that the first of the segments sent at `time_ns` or later begins with,
 * `next` if all were sent before. */
int64_t unacked_sent_before(const struct unacked_segments *ring, int64_t time_ns, int64_t next);

/* Frees the ring, which is empty afterwards and keeps acked_max. */
void unacked_free(struct unacked_segments *ring, struct pool *pool);

#endif
