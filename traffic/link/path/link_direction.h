/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of the link. It has neither clock nor socket: the caller passes the time, and asks
 * when to come again, so that tests run a day of traffic in a moment.
 *
 *     arrive -> loss, MTU -> corruption, copies -> queue -> server -> delay line -> take
 *
 * A packet's fate depends on seed, direction and number, never on time, except where a setting
 * names a time. All times are monotonic ns unless a name says otherwise. */
#ifndef WIRETALE_LINK_LINK_DIRECTION_H
#define WIRETALE_LINK_LINK_DIRECTION_H

#include <stdatomic.h>

#include "path/delay_line.h"
#include "path/link_server.h"
#include "queue/packet_queue.h"

#define MAX_HELD_BYTES (UINT64_C(1) << 30) /* of packets inside the direction */

/* Callbacks to the owner; both run inside the functions below. */
struct direction_events {
    void *context;
    void (*fate_known)(void *context, const struct truth_record *truth);
    void (*too_big)(void *context, const struct link_packet *packet); /* ICMP is due */
};

struct link_direction {
    const struct link_spec *spec;
    const struct direction_events *events;
    _Atomic int64_t *origin_ns; /* of the link's first packet in either direction; 0: none yet */
    uint64_t seed;
    uint8_t number; /* 0 or 1 */
    uint64_t index; /* of the latest packet, from 1 */
    int64_t last_arrival_ns;
    uint64_t held_bytes;
    uint64_t fates[FATES]; /* packets by fate */
    uint64_t marked;       /* packets with a mark of the link (RFC 3168) */
    uint32_t range;        /* first of spec->listed that is not passed */
    bool gilbert_bad;      /* state of the Gilbert-Elliott model */
    struct packet_queue queue;
    struct link_server server;
    struct delay_line line;
};

/* Returns NULL, or the reason why the trace file cannot be used, in `error`. */
const char *link_direction_init(struct link_direction *direction, const struct link_spec *spec,
                                uint64_t seed, uint8_t number,
                                const struct direction_events *events, _Atomic int64_t *origin_ns,
                                char *error, size_t error_size);

/* Takes a frame that arrived at `arrival_ns`, which is `in_ns` since the epoch. Returns false if it
 * must not be emulated: the caller passes it on unchanged. */
bool link_direction_arrive(struct link_direction *direction, const uint8_t *frame, uint32_t size,
                           int64_t arrival_ns, int64_t in_ns);

/* Advances to `now_ns`; all frames that arrived until then must have been passed in. */
void link_direction_advance(struct link_direction *direction, int64_t now_ns);

/* Returns the earliest time at which a packet can leave; INT64_MAX if there is none inside. */
int64_t link_direction_next_ns(const struct link_direction *direction);

/* Returns a packet that leaves by `now_ns`, or NULL. The caller must give it back by
 * link_direction_sent(). */
struct link_packet *link_direction_take(struct link_direction *direction, int64_t now_ns);

/* The packet was sent at `out_ns` since the epoch (0: the interface refused it); it was due at
 * `due_ns`. */
void link_direction_sent(struct link_direction *direction, struct link_packet *packet,
                         int64_t out_ns, int64_t due_ns);

/* Reports the packets inside as unfinished and frees everything. */
void link_direction_end(struct link_direction *direction);

#endif
