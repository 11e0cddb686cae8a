/* SPDX-License-Identifier: Apache-2.0 */
/* The queue in front of the server, and its discipline: tail drop, RED (Floyd and Jacobson 1993,
 * "gentle" as in Floyd 2000) or CoDel (RFC 8289). A limit includes the packet that is being sent,
 * because it occupies the buffer until its last bit is out. */
#ifndef WIRETALE_LINK_PACKET_QUEUE_H
#define WIRETALE_LINK_PACKET_QUEUE_H

#include "path/link_packet.h"
#include "path/link_spec.h"

struct red_state {
    double average;  /* in the unit of the queue */
    int64_t idle_ns; /* since when the queue is empty */
    int64_t since;   /* packets since the last drop; -1: below the lower threshold */
};

/* Names are those of the pseudocode in RFC 8289, section 5. */
struct codel_state {
    int64_t first_above_ns; /* 0: the sojourn time is below the target */
    int64_t drop_next_ns;
    uint32_t count;
    uint32_t last_count;
    bool dropping;
};

struct packet_queue {
    const struct link_spec *spec;
    uint64_t seed;                   /* of the direction */
    double rate_bps;                 /* of the link, or its trace's mean; 0: no limit */
    struct link_packet *head, *tail; /* waiting; the one being sent is not among them */
    uint64_t packets, bytes;         /* of these, with overhead */
    uint32_t max_bytes_seen;         /* of a packet: CoDel never drops the last of this size */
    struct red_state red;
    struct codel_state codel;
    struct link_packet *dropped; /* by CoDel, for the caller, linked by `next` */
};

void packet_queue_init(struct packet_queue *queue, const struct link_spec *spec, uint64_t seed);

/* Takes a packet and returns FATE_DELIVERED, or returns the reason for dropping it. `busy_bytes`
 * are those of the packet that is being sent; 0 if the server is idle. */
enum fate packet_queue_put(struct packet_queue *queue, struct link_packet *packet,
                           uint32_t busy_bytes);

/* Returns the packet to send at `now_ns`, or NULL. */
struct link_packet *packet_queue_take(struct packet_queue *queue, int64_t now_ns);

/* The latest packet is out at `from_ns`; if none waits, the link is idle from then on. */
void packet_queue_rest(struct packet_queue *queue, int64_t from_ns);

#endif
