/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a stream that have not been seen below its highest byte seen: what is left of the
 * stream is what has been. Kept as ascending, disjoint ranges, at most HOLES_MOST. */
#ifndef WIRETALE_HOLE_LIST_H
#define WIRETALE_HOLE_LIST_H

#include "allowance.h"

#define HOLES_MOST       256u
#define HOLES_ACKED_MOST 16u /* acknowledged holes are kept for data that was stored late */

struct hole {
    int64_t start, end; /* stream positions, [start, end) */
    int64_t opened_ns;
    uint32_t opener_frame; /* of the segment that came ahead */
    bool acked;            /* acknowledged, so the receiver has what was not seen here */
};

struct hole_list {
    struct hole *holes;
    uint32_t count, room, acked;
};

/* What one segment did to the holes. */
struct hole_fill {
    int64_t bytes;         /* of holes that it filled */
    int64_t acked_bytes;   /* of those, in holes that had been acknowledged */
    uint32_t closed;       /* holes filled to their end */
    uint32_t opener_frame; /* of the first hole it touched, 0 without one */
};

/* Adds a hole above all others. Returns the bytes of older holes that had to be given up for it (of
 * the hole itself where there is no memory at all): nobody can say any more whether they are seen.
 */
int64_t hole_list_open(struct hole_list *list, struct hole hole, struct allowance *allowance);

/* Takes [start, end) out of the holes. `*given_up` grows by bytes lost to a split without room. */
struct hole_fill hole_list_fill(struct hole_list *list, int64_t start, int64_t end,
                                struct allowance *allowance, int64_t *given_up);

/* Marks what lies below `position` as acknowledged; returns the bytes newly so. */
int64_t hole_list_acknowledge(struct hole_list *list, int64_t position,
                              struct allowance *allowance);

/* Bytes in holes not acknowledged. */
int64_t hole_list_bytes(const struct hole_list *list);
void hole_list_free(struct hole_list *list, struct allowance *allowance);

#endif
