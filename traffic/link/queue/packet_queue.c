/* SPDX-License-Identifier: Apache-2.0 */
/* Queue disciplines. RED follows the paper's algorithm, with the thresholds in packets or bytes
 * like the limit; the others have files of their own. Each is compared with an independent model,
 * tests/support/models/queue_model.py, in test/test_queue_model.c. */
#include "queue/packet_queue.h"

#include <math.h>
#include <stdlib.h>

bool packet_queue_init(struct packet_queue *queue, const struct link_spec *spec, uint64_t seed) {
    *queue = (struct packet_queue){
        .spec = spec, .seed = seed, .rate_bps = spec->rate_bps, .red = {.since = -1}};
    if (spec->discipline == QUEUE_FQ_CODEL)
        queue->flows = calloc(spec->fq_flows, sizeof *queue->flows);
    return queue->flows || spec->discipline != QUEUE_FQ_CODEL;
}

void packet_queue_free(struct packet_queue *queue) {
    free(queue->flows);
    queue->flows = NULL;
}

static bool is_full(const struct packet_queue *queue, const struct link_packet *packet,
                    uint32_t busy_bytes) {
    const struct link_spec *spec = queue->spec;
    if (spec->queue_packets && queue->packets + (busy_bytes > 0) >= spec->queue_packets)
        return true;
    return spec->queue_bytes && queue->bytes + busy_bytes + packet->link_bytes > spec->queue_bytes;
}

static double red_limit(const struct link_spec *spec) {
    return spec->queue_packets ? (double)spec->queue_packets : (double)spec->queue_bytes;
}

/* Defaults: the upper threshold is half the limit, the lower a third of that. */
static double red_upper(const struct link_spec *spec) {
    return spec->red_max > 0 ? spec->red_max : red_limit(spec) / 2;
}

static double red_lower(const struct link_spec *spec) {
    return spec->red_min > 0 ? spec->red_min : red_upper(spec) / 3;
}

/* While the queue is idle, the average decays as if small packets had arrived all the time (Floyd
 * and Jacobson 1993, section 4). */
static void red_average(struct packet_queue *queue, const struct link_packet *packet,
                        uint32_t busy_bytes) {
    struct red_state *red = &queue->red;
    const struct link_spec *spec = queue->spec;
    bool by_bytes = spec->queue_bytes > 0;
    double now = by_bytes ? (double)(queue->bytes + busy_bytes)
                          : (double)(queue->packets + (busy_bytes > 0));
    if (now > 0) {
        red->average += spec->red_weight * (now - red->average);
    } else if (queue->rate_bps > 0) {
        double missed = (double)(packet->arrival_ns - red->idle_ns) * queue->rate_bps / 8e9 /
                        packet->link_bytes;
        red->average *= pow(1 - spec->red_weight, fmax(missed, 0));
    } else {
        red->average = 0;
    }
}

/* Rises linearly to red_probability at the upper threshold, and to 1 at twice that ("gentle"). */
static double red_chance(const struct link_spec *spec, double average) {
    double lower = red_lower(spec), upper = red_upper(spec);
    if (average < upper)
        return spec->red_probability * (average - lower) / (upper - lower);
    if (average < 2 * upper)
        return spec->red_probability + (1 - spec->red_probability) * (average - upper) / upper;
    return 1;
}

/* The chance rises with the packets since the last drop, so that drops are spread evenly. Drops
 * begin before the queue is full, so that senders slow down early (RFC 2309, section 3). Above the
 * upper threshold, packets are not marked (RFC 3168, section 7). */
static bool red_drops(struct packet_queue *queue, struct link_packet *packet, uint32_t busy_bytes) {
    struct red_state *red = &queue->red;
    red_average(queue, packet, busy_bytes);
    if (red->average < red_lower(queue->spec)) {
        red->since = -1;
        return false;
    }
    red->since++;
    double chance = red_chance(queue->spec, red->average);
    double spread = 1 - (double)red->since * chance; /* evens the gaps out */
    chance = spread > chance ? chance / spread : 1;
    if (random_share(queue->seed, DRAW_RED, packet->original->truth.index) >= chance)
        return false;
    red->since = 0;
    return red->average >= red_upper(queue->spec) || !queue_mark(queue, packet, FATE_RED);
}

/* A tail drop restarts the count of RED, as its own drop does. PIE decides about packets that would
 * find room alone. */
enum fate packet_queue_put(struct packet_queue *queue, struct link_packet *packet,
                           uint32_t busy_bytes) {
    uint64_t discipline = queue->spec->discipline;
    queue->put_ns = packet->arrival_ns;
    if (discipline == QUEUE_FQ_CODEL) {
        fq_codel_put(queue, packet, busy_bytes);
        return FATE_DELIVERED;
    }
    if (discipline == QUEUE_RED && red_drops(queue, packet, busy_bytes))
        return FATE_RED;
    if (is_full(queue, packet, busy_bytes)) {
        queue->red.since = 0;
        return FATE_QUEUE;
    }
    if (discipline == QUEUE_PIE && pie_drops(queue, packet))
        return FATE_PIE;
    flow_queue_put(queue, &queue->whole, packet);
    return FATE_DELIVERED;
}

struct link_packet *packet_queue_take(struct packet_queue *queue, int64_t now_ns) {
    switch (queue->spec->discipline) {
    case QUEUE_CODEL: return codel_take(queue, &queue->whole, now_ns);
    case QUEUE_FQ_CODEL: return fq_codel_take(queue, now_ns);
    case QUEUE_PIE: pie_catch_up(queue, now_ns); break;
    }
    return flow_queue_take(queue, &queue->whole);
}

struct link_packet *packet_queue_empty(struct packet_queue *queue) {
    if (!queue->flows)
        return flow_queue_take(queue, &queue->whole);
    for (uint64_t i = 0; i < queue->spec->fq_flows; i++)
        if (queue->flows[i].head)
            return flow_queue_take(queue, &queue->flows[i]);
    return NULL;
}

const struct link_packet *packet_queue_next(const struct packet_queue *queue) {
    return queue->spec->discipline == QUEUE_CODEL ? NULL : queue->whole.head;
}

/* Packets of FQ-CoDel wait while the server is busy or stalled, or they have just come. */
int64_t packet_queue_since_ns(const struct packet_queue *queue) {
    return queue->flows ? queue->put_ns : queue->whole.head->arrival_ns;
}

void packet_queue_rest(struct packet_queue *queue, int64_t from_ns) {
    if (!queue->packets)
        queue->red.idle_ns = from_ns;
}
