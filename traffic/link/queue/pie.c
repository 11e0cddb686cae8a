/* SPDX-License-Identifier: Apache-2.0 */
/* PIE (RFC 8033, section 4, with the parts of section 5 that its appendix A has: ECN, capped steps
 * and de-randomized drops). Each 15 ms, the drop probability changes with the distance of the
 * queueing delay from its target and with its trend; a packet that arrives is dropped with that
 * probability. The delay is the age of the head, because packets have timestamps. Updates need no
 * timer: they are computed, each for its own time, before the queue next changes. */
#include "queue/discipline.h"

#define TARGET_NS    INT64_C(15000000) /* QDELAY_REF, section 4.2 */
#define UPDATE_NS    INT64_C(15000000) /* T_UPDATE */
#define MAX_BURST_NS INT64_C(150000000)
#define ALPHA        0.125 /* 1/s */
#define BETA         1.25
#define MAX_MARKED   0.1   /* mark_ecnth, section 5.1: drops begin above it */
#define PACKET_BYTES 1500u /* MEAN_PKTSIZE */

static int64_t target_of(const struct packet_queue *queue) {
    return queue->spec->target_ns ? queue->spec->target_ns : TARGET_NS;
}

static int64_t delay_at(const struct packet_queue *queue, int64_t time_ns) {
    const struct link_packet *head = queue->whole.head;
    return head && time_ns > head->arrival_ns ? time_ns - head->arrival_ns : 0;
}

/* Steps are smaller while the probability is small (section 4.2). */
static double step_share(double probability) {
    static const struct {
        double below, share;
    } steps[] = {{1e-6, 1.0 / 2048}, {1e-5, 1.0 / 512}, {1e-4, 1.0 / 128},
                 {1e-3, 1.0 / 32},   {1e-2, 1.0 / 8},   {1e-1, 1.0 / 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (probability < steps[i].below)
            return steps[i].share;
    return 1;
}

/* calculate_drop_prob() of appendix A. */
static void update(struct packet_queue *queue, int64_t time_ns) {
    struct pie_state *pie = &queue->pie;
    int64_t delay = delay_at(queue, time_ns), target = target_of(queue);
    double step =
        ALPHA * (double)(delay - target) / 1e9 + BETA * (double)(delay - pie->delay_old_ns) / 1e9;
    step *= step_share(pie->drop_probability);
    if (pie->drop_probability >= 0.1 && step > 0.02)
        step = 0.02; /* section 5.5 */
    double probability = pie->drop_probability + step;
    if (delay < target / 2 && pie->delay_old_ns < target / 2)
        probability *= 0.98;
    pie->drop_probability = probability < 0 ? 0 : probability > 1 ? 1 : probability;
    pie->delay_old_ns = delay;
    pie->burst_ns = pie->burst_ns > UPDATE_NS ? pie->burst_ns - UPDATE_NS : 0;
}

/* Computes the updates until `now_ns`. If nothing changes any more, the rest is skipped. */
void pie_catch_up(struct packet_queue *queue, int64_t now_ns) {
    struct pie_state *pie = &queue->pie;
    if (!pie->update_ns) {
        pie->update_ns = now_ns + UPDATE_NS;
        pie->burst_ns = MAX_BURST_NS;
    }
    for (; pie->update_ns <= now_ns; pie->update_ns += UPDATE_NS) {
        if (!queue->whole.head && pie->drop_probability <= 0 && !pie->delay_old_ns &&
            !pie->burst_ns)
            pie->update_ns += (now_ns - pie->update_ns) / UPDATE_NS * UPDATE_NS;
        update(queue, pie->update_ns);
    }
}

/* drop_early() of appendix A, with the safeguards of section 4.1. */
static bool is_drawn_early(struct packet_queue *queue, const struct link_packet *packet) {
    struct pie_state *pie = &queue->pie;
    bool is_short = queue->bytes <= UINT64_C(2) * PACKET_BYTES;
    if ((pie->delay_old_ns < target_of(queue) / 2 && pie->drop_probability < 0.2) || is_short)
        return false;
    if (pie->drop_probability <= 0)
        pie->accumulated = 0;
    pie->accumulated += pie->drop_probability; /* section 5.4 */
    if (pie->accumulated < 0.85)
        return false;
    double draw = random_share(queue->seed, DRAW_RED, packet->original->truth.index);
    if (pie->accumulated < 8.5 && draw >= pie->drop_probability)
        return false;
    pie->accumulated = 0;
    return true;
}

/* Bursts pass if the queue was short before them (section 4.4). */
bool pie_drops(struct packet_queue *queue, struct link_packet *packet) {
    struct pie_state *pie = &queue->pie;
    int64_t now = packet->arrival_ns, half = target_of(queue) / 2;
    pie_catch_up(queue, now);
    if (pie->burst_ns <= 0 && is_drawn_early(queue, packet))
        return pie->drop_probability >= MAX_MARKED || !queue_mark(queue, packet, FATE_PIE);
    if (pie->drop_probability <= 0 && delay_at(queue, now) < half && pie->delay_old_ns < half)
        pie->burst_ns = MAX_BURST_NS;
    return false;
}
