/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer before the link, and who is dropped from it: the last to come, RED, or CoDel.
 *
 * A limit counts the packet being sent as well: it stays in the buffer until its last bit is out.
 */
#ifndef WIRETALE_LINK_PACKET_QUEUE_H
#define WIRETALE_LINK_PACKET_QUEUE_H

#include "link_packet.h"
#include "link_spec.h"

/* Random early detection (Floyd and Jacobson 1993), gentle above its upper threshold (Floyd 2000).
 */
struct red_state {
    double average;  /* in the queue's unit */
    int64_t idle_ns; /* when it was empty last, empty since */
    int64_t since;   /* packets since the last one dropped; -1: below the lower threshold */
};

/* RFC 8289, 5: the names are those of its pseudocode. */
struct codel_state {
    int64_t first_above_ns;
    int64_t drop_next_ns;
    uint32_t count;
    uint32_t last_count;
    bool dropping;
};

struct packet_queue {
    const struct link_spec *spec;
    uint64_t seed;
    double rate_bps;                 /* of the link, at least in the mean; 0: no limit */
    struct link_packet *head, *tail; /* waiting, not being sent */
    uint64_t packets;
    uint64_t bytes;     /* on the link */
    uint32_t most_seen; /* the largest packet: CoDel leaves as much in the queue */
    struct red_state red;
    struct codel_state codel;
    struct link_packet *dropped; /* by CoDel: for the caller to log, linked by next */
};

void packet_queue_init(struct packet_queue *queue, const struct link_spec *spec, uint64_t seed);

/* Whether the packet was taken; else why not. `busy_bytes` is what is being sent (0: nothing). */
enum fate packet_queue_put(struct packet_queue *queue, struct link_packet *packet,
                           uint32_t busy_bytes);

/* The next to be sent at `now_ns`, or NULL. */
struct link_packet *packet_queue_take(struct packet_queue *queue, int64_t now_ns);

/* What was taken will be out at `from_ns`: from then on the link has nothing to do, unless more is
 * waiting. */
void packet_queue_rest(struct packet_queue *queue, int64_t from_ns);

#endif
