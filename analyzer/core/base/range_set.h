/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a stream that have not been seen below its highest byte seen: what is left of the
 * stream is what has been. Kept as ascending, disjoint ranges, at most HOLES_MOST. */
#ifndef WIRETALE_HOLE_LIST_H
#define WIRETALE_HOLE_LIST_H

#include "base/pool.h"

#define HOLES_MOST       256u
#define HOLES_ACKED_MOST 16u /* acknowledged holes are kept for data that was stored late */

struct hole {
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

struct hole_list {
    struct hole *holes;
    uint32_t count, room, acked;
};

/* What one segment did to the holes. */
struct hole_fill {
    int64_t bytes;       /* of holes that it filled */
    int64_t acked_bytes; /* of those, in holes that had been acknowledged */
    uint32_t closed;     /* holes filled to their end */
    struct hole hole;    /* the first that it touched, as it was */
};

/* Adds a hole above all others. Returns the bytes of older holes that had to be given up for it (of
 * the hole itself where there is no memory at all): nobody can say any more whether they are seen.
 */
int64_t hole_list_open(struct hole_list *list, struct hole hole, struct allowance *allowance);

/* Takes [start, end) out of the holes. `*given_up` grows by bytes lost to a split without room. */
struct hole_fill hole_list_fill(struct hole_list *list, int64_t start, int64_t end,
                                struct allowance *allowance, int64_t *given_up);

/* Marks what lies below `position` as acknowledged at `now_ns`; returns the bytes newly so. */
int64_t hole_list_acknowledge(struct hole_list *list, int64_t position, int64_t now_ns,
                              struct allowance *allowance);
/* The event that told of the holes acknowledged at `now_ns`. */
void hole_list_tell(struct hole_list *list, int64_t now_ns, uint64_t event);

/* Bytes in holes not acknowledged. */
int64_t hole_list_bytes(const struct hole_list *list);
void hole_list_free(struct hole_list *list, struct allowance *allowance);

#endif
