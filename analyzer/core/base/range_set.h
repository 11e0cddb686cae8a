/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a stream that have not been seen below its highest byte seen: what is left of the
 * stream is what has been. Kept as ascending, disjoint ranges, at most GAPS_MOST. */
#ifndef WIRETALE_RANGE_SET_H
#define WIRETALE_RANGE_SET_H

#include "base/pool.h"

#define GAPS_MOST       256u
#define GAPS_ACKED_MOST 16u /* acknowledged gaps are kept for data that was stored late */

struct gap {
    int64_t start, end; /* stream positions, [start, end) */
    int64_t opened_ns;
    uint64_t event;        /* row of the event that told of it being acknowledged */
    uint32_t opener_frame; /* of the segment that came ahead */
    uint32_t tsval;        /* of that segment */
    uint16_t ip_id;        /* of that segment, 0 tells nothing */
    bool timestamps;       /* tsval is known */
    bool acked;            /* acknowledged, so the receiver has what was not seen here */
    int64_t acked_ns;      /* then: since when */
};

struct range_set {
    struct gap *gaps;
    uint32_t count, room, acked;
};

/* What one segment did to the gaps. */
struct gap_fill {
    int64_t bytes;       /* of gaps that it filled */
    int64_t acked_bytes; /* of those, in gaps that had been acknowledged */
    uint32_t closed;     /* gaps filled to their end */
    struct gap gap;      /* the first that it touched, as it was */
};

/* Adds a gap above all others. Returns the bytes of older gaps that had to be given up for it (of
 * the gap itself where there is no memory at all): nobody can say any more whether they are seen.
 */
int64_t range_set_open(struct range_set *list, struct gap gap, struct pool *pool);

/* Takes [start, end) out of the gaps. `*given_up` grows by bytes lost to a split without room. */
struct gap_fill range_set_fill(struct range_set *list, int64_t start, int64_t end,
                               struct pool *pool, int64_t *given_up);

/* Marks what lies below `position` as acknowledged at `now_ns`; returns the bytes newly so. */
int64_t range_set_acknowledge(struct range_set *list, int64_t position, int64_t now_ns,
                              struct pool *pool);
/* The event that told of the gaps acknowledged at `now_ns`. */
void range_set_tell(struct range_set *list, int64_t now_ns, uint64_t event);

/* Bytes in gaps not acknowledged. */
int64_t range_set_bytes(const struct range_set *list);
void range_set_free(struct range_set *list, struct pool *pool);

#endif
