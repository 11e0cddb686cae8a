/* SPDX-License-Identifier: Apache-2.0 */
/* The first FIN or RST of a direction. */
#ifndef WIRETALE_ENDING_H
#define WIRETALE_ENDING_H

#include "flow/flow.h"

struct ending {
    int64_t time_ns;  /* TIME_UNKNOWN without one */
    int64_t idle_ns;  /* since the packet of the flow before it; negative: unknown */
    int64_t reply_ns; /* since the last packet of the other direction; negative: unknown */
    int64_t late_ns;  /* to the first new payload of the other end; negative: none */
    uint64_t window : 16;
    uint64_t peer_unique : 48; /* unique bytes of the other end before it */
    int32_t unacked;           /* payload of the other end, bytes; negative: unknown */
    uint32_t packets;          /* of its direction, with it */
    uint32_t frame, capture;
    int16_t ip_id_step; /* from the packet of its direction before */
    uint16_t ip_id;
    uint8_t ttl, ttl_min, ttl_max; /* the latter of the packets of its direction before */
    bool first : 1;                /* of its direction */
    bool with_ack : 1, timestamps : 1;
    bool stepped : 1; /* ip_id_step is known */
};
_Static_assert(sizeof(struct ending) == 64, "a size class of pools; half of a capture may end");

/* By direction, NULL without one. */
struct endings {
    struct ending *fins[2], *resets[2];
};

/* Takes the first FIN and the first RST of a direction; must be called before the packet is
 * counted. */
void note_ending(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                 const struct packet_info *packet, struct pool *pool);

/* Takes new payload of a direction after the other end sent a FIN or RST. */
void note_late_data(struct flow *flow, unsigned direction, const struct packet_info *packet);

void endings_free(struct flow *flow, struct pool *pool);

#endif
