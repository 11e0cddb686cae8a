/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that travel: a heap by the time at which they leave, and a list of packets that are held
 * back so that others overtake them. It owns its packets. Jitter keeps the order of packets unless
 * `jitter-reorders` is set: a packet then leaves no earlier than the one before it. */
#ifndef WIRETALE_LINK_DELAY_LINE_H
#define WIRETALE_LINK_DELAY_LINE_H

#include "packet/link_packet.h"
#include "packet/link_spec.h"

struct delay_line {
    const struct link_spec *spec;
    uint64_t seed;             /* of the direction */
    int64_t origin_ns;         /* of the link's first packet: a schedule counts from it */
    struct link_packet **heap; /* the root leaves first */
    uint32_t count, capacity;  /* of the heap */
    struct link_packet *held;  /* linked by `next` */
    int64_t last_out_ns;       /* of the latest packet that keeps the order */
    uint64_t order;            /* of the next packet, to break ties */
};

void delay_line_init(struct delay_line *line, const struct link_spec *spec, uint64_t seed);
/* Frees the heap; all packets must have been taken. */
void delay_line_free(struct delay_line *line);

/* Takes a packet whose last bit was out at `sent_ns`. Returns false if memory ran out. */
bool delay_line_put(struct delay_line *line, struct link_packet *packet, int64_t sent_ns);

/* Returns the time at which the next packet leaves, or INT64_MAX. A packet that is held back leaves
 * when enough others have overtaken it, or after `reorder-wait`. */
int64_t delay_line_next_ns(const struct delay_line *line);

/* Returns the next packet that leaves by `now_ns`, or NULL. */
struct link_packet *delay_line_take(struct delay_line *line, int64_t now_ns);
/* Returns any packet, whenever it leaves; NULL if the line is empty. */
struct link_packet *delay_line_empty(struct delay_line *line);

#endif
