/* SPDX-License-Identifier: Apache-2.0 */
/* FQ-CoDel (RFC 8290): flows are hashed to queues, each with a CoDel of its own. The scheduler
 * serves queues by deficit round robin (section 4.2): a queue whose deficit is used up gets a
 * quantum of bytes and goes to the end of the old queues. A queue that becomes active is among the
 * new ones first, so a sparse flow does not wait for the bulk flows; if it empties, it goes through
 * the old ones once, so that it cannot starve them. If the limit of all queues is exceeded, half
 * the packets of the longest one, at most 64, are dropped from its head (section 4.1). */
#include <string.h>

#include "queue/discipline.h"

#define DROP_BATCH 64u

static void list_append(struct flow_list *list, struct flow_queue *flow) {
    flow->next = NULL;
    if (list->tail)
        list->tail->next = flow;
    else
        list->head = flow;
    list->tail = flow;
}

static struct flow_queue *list_take(struct flow_list *list) {
    struct flow_queue *flow = list->head;
    list->head = flow->next;
    if (!list->head)
        list->tail = NULL;
    return flow;
}

/* The hash of addresses, ports and protocol, salted by the seed (RFC 8290, 4.1.1). */
static struct flow_queue *flow_of(const struct packet_queue *queue,
                                  const struct link_packet *packet) {
    const struct truth_record *truth = &packet->original->truth;
    uint64_t words[4], hash = queue->seed;
    memcpy(words, truth->source, 16);
    memcpy(words + 2, truth->destination, 16);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = block_mix(hash ^ words[i]);
    uint64_t ends = (uint64_t)truth->source_port << 16 | truth->destination_port;
    hash = block_mix(hash ^ (ends << 8 | truth->protocol));
    return &queue->flows[hash % queue->spec->fq_flows];
}

static bool is_over_limit(const struct packet_queue *queue, uint32_t busy_bytes) {
    const struct link_spec *spec = queue->spec;
    return (spec->queue_packets && queue->packets + (busy_bytes > 0) > spec->queue_packets) ||
           (spec->queue_bytes && queue->bytes + busy_bytes > spec->queue_bytes);
}

static void drop_from_longest(struct packet_queue *queue) {
    struct flow_queue *longest = &queue->flows[0];
    for (uint64_t i = 1; i < queue->spec->fq_flows; i++)
        if (queue->flows[i].bytes > longest->bytes)
            longest = &queue->flows[i];
    uint64_t count = longest->packets / 2;
    count = count < 1 ? 1 : count > DROP_BATCH ? DROP_BATCH : count;
    for (struct link_packet *packet; count && (packet = flow_queue_take(queue, longest)); count--)
        queue_drop(queue, packet, FATE_QUEUE);
}

void fq_codel_put(struct packet_queue *queue, struct link_packet *packet, uint32_t busy_bytes) {
    struct flow_queue *flow = flow_of(queue, packet);
    flow_queue_put(queue, flow, packet);
    if (!flow->is_active) {
        flow->is_active = true;
        flow->deficit = (int64_t)queue->spec->fq_quantum;
        list_append(&queue->fresh, flow);
    }
    while (queue->packets && is_over_limit(queue, busy_bytes))
        drop_from_longest(queue);
}

/* Returns NULL if no queue has a packet; CoDel never drops the last one of a queue. */
struct link_packet *fq_codel_take(struct packet_queue *queue, int64_t now_ns) {
    for (;;) {
        struct flow_list *list = queue->fresh.head ? &queue->fresh : &queue->old;
        struct flow_queue *flow = list->head;
        if (!flow)
            return NULL;
        if (flow->deficit <= 0) {
            flow->deficit += (int64_t)queue->spec->fq_quantum;
            list_append(&queue->old, list_take(list));
            continue;
        }
        struct link_packet *packet = codel_take(queue, flow, now_ns);
        if (packet) {
            flow->deficit -= packet->link_bytes;
            return packet;
        }
        list_take(list);
        if (list == &queue->fresh && queue->old.head)
            list_append(&queue->old, flow);
        else
            flow->is_active = false;
    }
}
