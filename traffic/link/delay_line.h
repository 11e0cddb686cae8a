/* SPDX-License-Identifier: Apache-2.0 */
/* Packets under way: a heap by the time they leave, and those that are held back to be overtaken.
 */
#ifndef WIRETALE_LINK_DELAY_LINE_H
#define WIRETALE_LINK_DELAY_LINE_H

#include "link_packet.h"
#include "link_spec.h"

struct delay_line {
    const struct link_spec *spec;
    uint64_t seed;
    struct link_packet **heap;
    uint32_t count, room;
    struct link_packet *held; /* linked by next */
    int64_t last_out_ns;      /* of the last in order */
    uint64_t order;
};

void delay_line_init(struct delay_line *line, const struct link_spec *spec, uint64_t seed);
void delay_line_free(struct delay_line *line); /* its packets must be out */

/* A packet that was sent out at `sent_ns` begins its way. False without memory. */
bool delay_line_put(struct delay_line *line, struct link_packet *packet, int64_t sent_ns);

/* When the next one leaves; INT64_MAX: none. Held packets that nothing overtakes leave after their
 * wait. */
int64_t delay_line_next_ns(const struct delay_line *line);

/* The next one that leaves by `now_ns`, or NULL. */
struct link_packet *delay_line_take(struct delay_line *line, int64_t now_ns);

/* Any one, whenever it was to leave; NULL when all are out. */
struct link_packet *delay_line_empty(struct delay_line *line);

#endif
