/* SPDX-License-Identifier: Apache-2.0 */
/* CoDel: the pseudocode of RFC 8289, section 5.5, function by function. A queue whose packets all
 * waited longer than the target for an interval is bad; one packet is then dropped, and further
 * ones at intervals that shrink with the square root of their number. A packet that can be marked
 * (RFC 3168) is sent with a mark where it would be dropped, as in Linux, so that one decision takes
 * one packet. */
#include <math.h>

#include "queue/discipline.h"

#define TARGET_NS INT64_C(5000000) /* RFC 8289, 4.3 */

/* dodequeue() of RFC 8289, 5.5. Returns the head; `*ok_to_drop` is set if the sojourn time has been
 * above the target for an interval. MAXPACKET of the RFC is the largest packet that was queued:
 * with no more bytes than that, CoDel must not drop. */
static struct link_packet *codel_head(struct packet_queue *queue, struct flow_queue *flow,
                                      int64_t now_ns, bool *ok_to_drop) {
    struct codel_state *codel = &flow->codel;
    struct link_packet *packet = flow_queue_take(queue, flow);
    int64_t target = queue->spec->target_ns ? queue->spec->target_ns : TARGET_NS;
    *ok_to_drop = false;
    if (!packet) {
        codel->first_above_ns = 0;
        return NULL;
    }
    if (now_ns - packet->arrival_ns < target || flow->bytes <= queue->max_bytes_seen)
        codel->first_above_ns = 0;
    else if (!codel->first_above_ns)
        codel->first_above_ns = now_ns + queue->spec->codel_interval_ns;
    else
        *ok_to_drop = now_ns >= codel->first_above_ns;
    return packet;
}

/* control_law() of RFC 8289, 5.4: drops come closer with the square root of their number. */
static int64_t control_law(const struct packet_queue *queue, const struct codel_state *codel,
                           int64_t time_ns) {
    return time_ns + (int64_t)((double)queue->spec->codel_interval_ns / sqrt(codel->count));
}

/* In the dropping state: drops as often as the law demands until `now_ns`. */
static struct link_packet *go_on(struct packet_queue *queue, struct flow_queue *flow,
                                 struct link_packet *packet, int64_t now_ns, bool ok_to_drop) {
    struct codel_state *codel = &flow->codel;
    codel->dropping = ok_to_drop;
    while (codel->dropping && now_ns >= codel->drop_next_ns) {
        codel->count++;
        if (queue_mark(queue, packet, FATE_CODEL)) {
            codel->drop_next_ns = control_law(queue, codel, codel->drop_next_ns);
            return packet;
        }
        queue_drop(queue, packet, FATE_CODEL);
        packet = codel_head(queue, flow, now_ns, &ok_to_drop);
        if (ok_to_drop)
            codel->drop_next_ns = control_law(queue, codel, codel->drop_next_ns);
        else
            codel->dropping = false;
    }
    return packet;
}

/* Enters the dropping state, with the drop rate of the previous one if that ended recently (RFC
 * 8289, 5.4). */
static struct link_packet *begin(struct packet_queue *queue, struct flow_queue *flow,
                                 struct link_packet *packet, int64_t now_ns) {
    struct codel_state *codel = &flow->codel;
    bool ok_to_drop;
    if (!queue_mark(queue, packet, FATE_CODEL)) {
        queue_drop(queue, packet, FATE_CODEL);
        packet = codel_head(queue, flow, now_ns, &ok_to_drop);
    }
    codel->dropping = true;
    uint32_t delta = codel->count - codel->last_count;
    bool recent = now_ns - codel->drop_next_ns < 16 * queue->spec->codel_interval_ns;
    codel->count = delta > 1 && recent ? delta : 1;
    codel->drop_next_ns = control_law(queue, codel, now_ns);
    codel->last_count = codel->count;
    return packet;
}

/* dequeue() of RFC 8289, 5.5. */
struct link_packet *codel_take(struct packet_queue *queue, struct flow_queue *flow,
                               int64_t now_ns) {
    bool ok_to_drop;
    struct link_packet *packet = codel_head(queue, flow, now_ns, &ok_to_drop);
    if (!packet) {
        flow->codel.dropping = false;
        return NULL;
    }
    if (flow->codel.dropping)
        return go_on(queue, flow, packet, now_ns, ok_to_drop);
    return ok_to_drop ? begin(queue, flow, packet, now_ns) : packet;
}
