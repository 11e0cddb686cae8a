/* SPDX-License-Identifier: Apache-2.0 */
/* The queue in front of the server, and its discipline: tail drop, RED (Floyd and Jacobson 1993,
 * "gentle" as in Floyd 2000), CoDel (RFC 8289), FQ-CoDel (RFC 8290) or PIE (RFC 8033). A limit
 * includes the packet that is being sent, because it occupies the buffer until its last bit is out.
 *
 * RED and PIE drop when a packet arrives, CoDel when it leaves, FQ-CoDel at both times. Packets
 * that are dropped when others arrive or leave are in `dropped`: the caller must end each of them,
 * and its `drop_fate` is the reason. With the same arrivals and departures the decisions are the
 * same, because the queue has no clock of its own and draws by packet number. With `ecn=yes`,
 * packets of ECN-capable transports are marked (RFC 3168) in place of being dropped. */
#ifndef WIRETALE_LINK_PACKET_QUEUE_H
#define WIRETALE_LINK_PACKET_QUEUE_H

#include "queue/discipline.h"

/* Returns false if memory ran out. */
bool packet_queue_init(struct packet_queue *queue, const struct link_spec *spec, uint64_t seed);
/* Frees the flows; all packets must have been taken. */
void packet_queue_free(struct packet_queue *queue);

/* Takes a packet and returns FATE_DELIVERED, or returns the reason for dropping it. Others, or this
 * one with FQ-CoDel, may then be in `queue->dropped`. `busy_bytes` are those of the packet that is
 * being sent; 0 if the server is idle. */
enum fate packet_queue_put(struct packet_queue *queue, struct link_packet *packet,
                           uint32_t busy_bytes);

/* Returns the packet to send at `now_ns`, or NULL. */
struct link_packet *packet_queue_take(struct packet_queue *queue, int64_t now_ns);

/* Returns a packet, whatever its time; NULL if there is none. */
struct link_packet *packet_queue_empty(struct packet_queue *queue);

/* Returns the next packet if the discipline sends it for sure; NULL if that is not decided yet. */
const struct link_packet *packet_queue_next(const struct packet_queue *queue);

/* Returns the time before which no packet that waits can be sent. */
int64_t packet_queue_since_ns(const struct packet_queue *queue);

/* The latest packet is out at `from_ns`; if none waits, the link is idle from then on. */
void packet_queue_rest(struct packet_queue *queue, int64_t from_ns);

#endif
