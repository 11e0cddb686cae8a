/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that pass the capture point again and again. */
#ifndef WIRETALE_PASS_H
#define WIRETALE_PASS_H

#include "flow/flow.h"

#define PASSING      8u /* packets that are followed at once */
#define PASSES_LEAST 5u /* captures of both sides of a router, or two, store fewer */

/* A packet with a lower TTL than others of its direction. */
struct passing {
    uint32_t ip_bytes;
    uint16_t ip_id;
    uint8_t ttl;    /* in its last pass */
    uint8_t passes; /* with a lower TTL each time; 0: the entry is empty */
};

/* Of one direction. */
struct pass_log {
    struct passing passing[PASSING]; /* by the low bits of their ID */
    int64_t first_ns, last_ns;       /* TIME_UNKNOWN without one */
    uint64_t packets;                /* that passed PASSES_LEAST times */
    uint32_t first_frame, first_capture;
    uint8_t most; /* passes of a packet */
    uint8_t step; /* of its TTL */
};

/* Returns the logs of both directions, NULL without one. */
static inline const struct pass_log *passes_of(const struct flow *flow, unsigned direction) {
    return flow->passes ? &flow->passes[direction] : NULL;
}

/* Takes a packet whose TTL is below the greatest of its direction. */
void note_pass(struct flow *flow, unsigned direction, const struct packet_info *packet,
               struct pool *pool);

#endif
