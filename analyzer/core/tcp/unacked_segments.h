/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of one direction that have not been acknowledged: what round trips are measured
 * from. At most SEGMENTS_MOST, the oldest forgotten first. */
#ifndef WIRETALE_SEGMENT_RING_H
#define WIRETALE_SEGMENT_RING_H

#include "base/pool.h"

#define SEGMENTS_MOST    1024u
#define SEGMENTS_ONE_WAY 8u /* as long as the other direction has not been seen */

struct segment {
    int64_t end;     /* stream position after its last byte */
    int64_t time_ns; /* of its first sending seen */
    uint32_t length; /* of the positions it takes, SYN and FIN with them */
    uint32_t frame;
    uint32_t tsval; /* 0 without timestamps */
    uint16_t ip_id;
    bool resent;
};

struct segment_ring {
    struct segment *segments;
    uint16_t head, count, room; /* room is a power of two */
};

/* What an acknowledgment took out of the ring. */
struct segment_acked {
    uint32_t count;
    bool resent;       /* one of them had been sent again: no sample (Karn) */
    bool left;         /* segments above are still unacknowledged */
    int64_t newest_ns; /* when the last of them was sent */
};

static inline struct segment *segment_ring_at(const struct segment_ring *ring, uint32_t i) {
    return &ring->segments[(ring->head + i) & (ring->room - 1)];
}

/* The place for a new segment at the end, NULL without room; then there may be one after the list
 * has grown, or the oldest was forgotten, but for want of any memory. */
static inline struct segment *segment_ring_next(struct segment_ring *ring) {
    return ring->count < ring->room ? segment_ring_at(ring, ring->count++) : NULL;
}
struct segment *segment_ring_push(struct segment_ring *ring, uint32_t most,
                                  struct allowance *allowance);

struct segment_acked segment_ring_acknowledge(struct segment_ring *ring, int64_t position);
/* Marks every segment that holds bytes of [start, end) as sent again. */
void segment_ring_mark_resent(struct segment_ring *ring, int64_t start, int64_t end);
/* The segment that holds the byte at `position`, NULL when it is not known. */
const struct segment *segment_ring_find(const struct segment_ring *ring, int64_t position);
void segment_ring_free(struct segment_ring *ring, struct allowance *allowance);

#endif
