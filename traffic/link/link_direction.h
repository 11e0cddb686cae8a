/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of the link: packets come, wait, are sent, travel and leave. No clock and no socket
 * in here: the caller says what time it is, and asks when to come again.
 *
 *     arrive → loss, MTU → corruption, copies → queue → server → delay line → take
 */
#ifndef WIRETALE_LINK_LINK_DIRECTION_H
#define WIRETALE_LINK_LINK_DIRECTION_H

#include <stdatomic.h>

#include "delay_line.h"
#include "link_server.h"
#include "loss_model.h"
#include "packet_queue.h"

#define HELD_BYTES_MOST (UINT64_C(1) << 30) /* of a direction's packets inside the link */

/* What a direction tells its owner. */
struct direction_events {
    void *context;
    void (*fate_known)(void *context, const struct truth_record *truth);
    void (*too_big)(void *context, const struct link_packet *packet); /* an answer is due */
};

struct link_direction {
    const struct link_spec *spec;
    const struct direction_events *events;
    _Atomic int64_t *origin_ns; /* of both directions: the link's first packet; 0: not yet */
    uint64_t seed;
    uint8_t number;
    uint64_t index; /* of the last packet */
    int64_t last_arrival_ns;
    uint64_t held_bytes;
    uint64_t fates[FATES];
    struct loss_model loss;
    struct packet_queue queue;
    struct link_server server;
    struct delay_line line;
};

/* NULL, or what is wrong with the trace file. */
const char *link_direction_init(struct link_direction *direction, const struct link_spec *spec,
                                uint64_t seed, uint8_t number,
                                const struct direction_events *events, _Atomic int64_t *origin_ns,
                                char *problem, size_t problem_bytes);

/* A frame came at `arrival_ns` (`in_ns` in the time of day). False: it is no packet to be emulated,
 * to be passed on as it is. */
bool link_direction_arrive(struct link_direction *direction, const uint8_t *frame, uint32_t size,
                           int64_t arrival_ns, int64_t in_ns);

/* Lets time go on to `now_ns`: all that came until then has been told. */
void link_direction_advance(struct link_direction *direction, int64_t now_ns);

/* When the next packet leaves at the earliest; INT64_MAX: none is inside. */
int64_t link_direction_next_ns(const struct link_direction *direction);

/* A packet that leaves by `now_ns`, or NULL. To be given back by link_direction_sent(). */
struct link_packet *link_direction_take(struct link_direction *direction, int64_t now_ns);

/* It was sent at `out_ns` of the time of day (0: it could not be); `due_ns` is when it should have
 * been. */
void link_direction_sent(struct link_direction *direction, struct link_packet *packet,
                         int64_t out_ns, int64_t due_ns);

/* Gives up what is inside and frees all. */
void link_direction_end(struct link_direction *direction);

#endif
