/* SPDX-License-Identifier: Apache-2.0 */
/* Queue disciplines. RED follows the paper's algorithm, with the thresholds in packets or bytes
 * like the limit; CoDel is the pseudocode of RFC 8289, section 5.5, function by function. The score
 * of tests/support/models/queue_model.py, an independent model, is compared in
 * test/test_queue_model.c. */
#include "path/packet_queue.h"

#include <math.h>

void packet_queue_init(struct packet_queue *queue, const struct link_spec *spec, uint64_t seed) {
    *queue = (struct packet_queue){
        .spec = spec, .seed = seed, .rate_bps = spec->rate_bps, .red = {.since = -1}};
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
 * begin before the queue is full, so that senders slow down early (RFC 2309, section 3). */
static bool red_drops(struct packet_queue *queue, const struct link_packet *packet,
                      uint32_t busy_bytes) {
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
    return true;
}

/* A tail drop restarts the count of RED, as its own drop does. */
enum fate packet_queue_put(struct packet_queue *queue, struct link_packet *packet,
                           uint32_t busy_bytes) {
    if (queue->spec->discipline == QUEUE_RED && red_drops(queue, packet, busy_bytes))
        return FATE_RED;
    if (is_full(queue, packet, busy_bytes)) {
        queue->red.since = 0;
        return FATE_QUEUE;
    }
    packet->next = NULL;
    if (queue->tail)
        queue->tail->next = packet;
    else
        queue->head = packet;
    queue->tail = packet;
    queue->packets++;
    queue->bytes += packet->link_bytes;
    if (packet->link_bytes > queue->max_bytes_seen)
        queue->max_bytes_seen = packet->link_bytes;
    return FATE_DELIVERED;
}

static struct link_packet *take_head(struct packet_queue *queue) {
    struct link_packet *packet = queue->head;
    if (!packet)
        return NULL;
    queue->head = packet->next;
    if (!queue->head)
        queue->tail = NULL;
    queue->packets--;
    queue->bytes -= packet->link_bytes;
    packet->next = NULL;
    return packet;
}

/* dodequeue() of RFC 8289, 5.5. Returns the head; `*ok_to_drop` is set if the sojourn time has been
 * above the target for an interval. MAXPACKET of the RFC is the largest packet that was queued:
 * with no more bytes than that, CoDel must not drop. */
static struct link_packet *codel_head(struct packet_queue *queue, int64_t now_ns,
                                      bool *ok_to_drop) {
    struct codel_state *codel = &queue->codel;
    struct link_packet *packet = take_head(queue);
    *ok_to_drop = false;
    if (!packet) {
        codel->first_above_ns = 0;
        return NULL;
    }
    if (now_ns - packet->arrival_ns < queue->spec->codel_target_ns ||
        queue->bytes <= queue->max_bytes_seen)
        codel->first_above_ns = 0;
    else if (!codel->first_above_ns)
        codel->first_above_ns = now_ns + queue->spec->codel_interval_ns;
    else
        *ok_to_drop = now_ns >= codel->first_above_ns;
    return packet;
}

/* control_law() of RFC 8289, 5.4: drops come closer with the square root of their number. */
static int64_t codel_law(const struct packet_queue *queue, int64_t time_ns) {
    return time_ns + (int64_t)((double)queue->spec->codel_interval_ns / sqrt(queue->codel.count));
}

/* link_direction.c ends these packets, because it owns their records. */
static void codel_drop(struct packet_queue *queue, struct link_packet *packet) {
    packet->next = queue->dropped;
    queue->dropped = packet;
}

/* In the dropping state: drops as often as the law demands until `now_ns`. */
static struct link_packet *codel_go_on(struct packet_queue *queue, struct link_packet *packet,
                                       int64_t now_ns, bool ok_to_drop) {
    struct codel_state *codel = &queue->codel;
    codel->dropping = ok_to_drop;
    while (codel->dropping && now_ns >= codel->drop_next_ns) {
        codel_drop(queue, packet);
        codel->count++;
        packet = codel_head(queue, now_ns, &ok_to_drop);
        if (ok_to_drop)
            codel->drop_next_ns = codel_law(queue, codel->drop_next_ns);
        else
            codel->dropping = false;
    }
    return packet;
}

/* Enters the dropping state, with the drop rate of the previous one if that ended recently (RFC
 * 8289, 5.4). */
static struct link_packet *codel_begin(struct packet_queue *queue, struct link_packet *packet,
                                       int64_t now_ns) {
    struct codel_state *codel = &queue->codel;
    bool ok_to_drop;
    codel_drop(queue, packet);
    packet = codel_head(queue, now_ns, &ok_to_drop);
    codel->dropping = true;
    uint32_t delta = codel->count - codel->last_count;
    bool recent = now_ns - codel->drop_next_ns < 16 * queue->spec->codel_interval_ns;
    codel->count = delta > 1 && recent ? delta : 1;
    codel->drop_next_ns = codel_law(queue, now_ns);
    codel->last_count = codel->count;
    return packet;
}

/* dequeue() of RFC 8289, 5.5. */
static struct link_packet *codel_take(struct packet_queue *queue, int64_t now_ns) {
    bool ok_to_drop;
    struct link_packet *packet = codel_head(queue, now_ns, &ok_to_drop);
    if (!packet) {
        queue->codel.dropping = false;
        return NULL;
    }
    if (queue->codel.dropping)
        return codel_go_on(queue, packet, now_ns, ok_to_drop);
    return ok_to_drop ? codel_begin(queue, packet, now_ns) : packet;
}

struct link_packet *packet_queue_take(struct packet_queue *queue, int64_t now_ns) {
    if (queue->spec->discipline == QUEUE_CODEL)
        return codel_take(queue, now_ns);
    return take_head(queue);
}

void packet_queue_rest(struct packet_queue *queue, int64_t from_ns) {
    if (!queue->packets)
        queue->red.idle_ns = from_ns;
}
