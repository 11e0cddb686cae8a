/* SPDX-License-Identifier: Apache-2.0 */
/* What a queue discipline works on: the packets of a queue, by flow, and the state of the
 * discipline. */
#ifndef WIRETALE_LINK_DISCIPLINE_H
#define WIRETALE_LINK_DISCIPLINE_H

#include "packet/link_packet.h"
#include "packet/link_spec.h"
#include "packet/packet_headers.h"

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

/* Names are those of RFC 8033, section 4. */
struct pie_state {
    double drop_probability;
    double accumulated; /* accu_prob: since the last drop */
    int64_t burst_ns;   /* burst_allowance */
    int64_t delay_old_ns;
    int64_t update_ns; /* of the next update; 0: no packet came yet */
};

/* A queue of packets: that of a flow, or the only one. */
struct flow_queue {
    struct link_packet *head, *tail;
    uint64_t packets, bytes; /* with overhead */
    struct codel_state codel;
    int64_t deficit;         /* bytes that the flow may still send in its turn */
    struct flow_queue *next; /* in its list */
    bool is_active;          /* in one of the lists */
};

struct flow_list {
    struct flow_queue *head, *tail;
};

struct packet_queue {
    const struct link_spec *spec;
    uint64_t seed;            /* of the direction */
    double rate_bps;          /* of the link, or its trace's mean; 0: no limit */
    struct flow_queue whole;  /* waiting; the packet being sent is not among them */
    struct flow_queue *flows; /* of fq_codel, in place of `whole` */
    struct flow_list fresh, old;
    uint64_t packets, bytes; /* of all flows */
    uint32_t max_bytes_seen; /* of a packet: CoDel never drops the last of this size */
    int64_t put_ns;          /* arrival of the latest packet */
    struct red_state red;
    struct pie_state pie;
    struct link_packet *dropped; /* for the caller, linked by `next` */
};

static inline void flow_queue_put(struct packet_queue *queue, struct flow_queue *flow,
                                  struct link_packet *packet) {
    packet->next = NULL;
    if (flow->tail)
        flow->tail->next = packet;
    else
        flow->head = packet;
    flow->tail = packet;
    flow->packets++;
    flow->bytes += packet->link_bytes;
    queue->packets++;
    queue->bytes += packet->link_bytes;
    if (packet->link_bytes > queue->max_bytes_seen)
        queue->max_bytes_seen = packet->link_bytes;
}

/* Returns the head, or NULL. */
static inline struct link_packet *flow_queue_take(struct packet_queue *queue,
                                                  struct flow_queue *flow) {
    struct link_packet *packet = flow->head;
    if (!packet)
        return NULL;
    flow->head = packet->next;
    if (!flow->head)
        flow->tail = NULL;
    flow->packets--;
    flow->bytes -= packet->link_bytes;
    queue->packets--;
    queue->bytes -= packet->link_bytes;
    packet->next = NULL;
    return packet;
}

static inline void queue_drop(struct packet_queue *queue, struct link_packet *packet,
                              enum fate fate) {
    packet->drop_fate = fate;
    packet->next = queue->dropped;
    queue->dropped = packet;
}

/* Returns whether the packet was marked in place of being dropped with this fate. */
static inline bool queue_mark(const struct packet_queue *queue, struct link_packet *packet,
                              enum fate fate) {
    if (!queue->spec->ecn || !packet_mark(packet))
        return false;
    packet->original->truth.marked = (uint8_t)fate;
    return true;
}

/* RFC 8289: returns the packet of the flow to send at `now_ns`, or NULL. */
struct link_packet *codel_take(struct packet_queue *queue, struct flow_queue *flow, int64_t now_ns);

/* RFC 8290. `busy_bytes` are those of the packet that is being sent. */
void fq_codel_put(struct packet_queue *queue, struct link_packet *packet, uint32_t busy_bytes);
struct link_packet *fq_codel_take(struct packet_queue *queue, int64_t now_ns);

/* RFC 8033: computes the updates until `now_ns`, before the queue changes. */
void pie_catch_up(struct packet_queue *queue, int64_t now_ns);
/* Returns whether the packet that arrives must be dropped. */
bool pie_drops(struct packet_queue *queue, struct link_packet *packet);

#endif
