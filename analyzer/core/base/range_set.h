/* SPDX-License-Identifier: Apache-2.0 */
/* The gaps of a TCP stream: bytes below snd_nxt that the capture point has not seen. They are
 * kept as ascending disjoint ranges, at most GAPS_MOST of them; everything between them has been
 * seen. A change costs the time to move the gaps on one side of it, the side with fewer of them. */
#ifndef WIRETALE_RANGE_SET_H
#define WIRETALE_RANGE_SET_H

#include "base/pool.h"

#define GAPS_MOST       4096u /* every second segment of a window of 1 Gbit/s and 100 ms */
#define GAPS_ACKED_MOST 16u   /* kept for data that the capture stored after its ACK */

struct flow_event; /* tcp/segment.h */

struct gap {
    int64_t start, end; /* stream positions, [start, end) */
    int64_t opened_ns;
    uint64_t seen_bytes;      /* of the stream, retransmitted ones too, before that */
    struct flow_event *event; /* that reports its acknowledgment, or NULL */
    uint32_t opener_frame;    /* of the segment that opened it */
    uint32_t tsval;           /* TSval of that segment */
    uint16_t ip_id;           /* IPv4 ID of that segment; 0 proves nothing */
    bool timestamps;          /* tsval is known */
    bool acked;       /* the receiver has the bytes, although the capture point did not see them */
    int64_t acked_ns; /* ns; valid if acked */
};

struct range_set {
    struct gap *gaps; /* the lowest */
    uint16_t count, acked;
    uint16_t head; /* unused entries below the lowest gap */
    uint16_t room; /* of all entries */
};

/* The effect of a segment on the gaps. */
struct gap_fill {
    int64_t bytes;       /* bytes of gaps that it filled */
    int64_t acked_bytes; /* bytes of those in acknowledged gaps */
    uint32_t closed;     /* gaps that it filled completely */
    struct gap gap;      /* the first gap that it touched, as it was before */
};

/* Adds a gap, which must be above all others. Returns the bytes that become unknown because
 * there is no room: of the lowest gaps, or of the gap itself without memory. */
int64_t range_set_open(struct range_set *list, struct gap gap, struct pool *pool);

/* Removes [start, end) from the gaps. `*given_up` grows by the bytes that become unknown if a
 * split finds no room. */
struct gap_fill range_set_fill(struct range_set *list, int64_t start, int64_t end,
                               struct pool *pool, int64_t *given_up);

/* Marks gaps below `position` as acknowledged at `now_ns`. Returns the bytes that are newly
 * acknowledged. */
int64_t range_set_acknowledge(struct range_set *list, int64_t position, int64_t now_ns,
                              struct pool *pool);
/* Sets the event of the gaps that were acknowledged at `now_ns`. */
void range_set_set_event(struct range_set *list, int64_t now_ns, struct flow_event *event);

/* Returns the index of the first gap that ends above `position`, `count` if there is none. */
uint32_t range_set_first_above(const struct range_set *list, int64_t position);

/* Returns the bytes of gaps that are not acknowledged. */
int64_t range_set_bytes(const struct range_set *list);
void range_set_free(struct range_set *list, struct pool *pool);

#endif
