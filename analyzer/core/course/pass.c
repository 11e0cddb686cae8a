/* SPDX-License-Identifier: Apache-2.0 */
/* Routing loops: a packet that passes again with the same IP ID and size, and a lower TTL each time
 * (Hengartner, Moon, Mortier, Diot 2002). A copy that a mirror port made has one TTL or two. */
#include "course/pass.h"

/* Takes a packet of the loop; `entry` was updated. */
static void note_loop(struct pass_log *log, const struct passing *entry, uint8_t step,
                      const struct packet_info *packet) {
    int64_t time_ns = packet->time_known ? packet->time_ns : TIME_UNKNOWN;
    if (entry->passes == PASSES_LEAST && !log->packets++) {
        log->first_ns = time_ns;
        log->first_frame = (uint32_t)min64((int64_t)packet->frame, UINT32_MAX);
        log->first_capture = packet->capture;
    }
    if (entry->passes > log->most) {
        log->most = entry->passes;
        log->step = step;
    }
    log->last_ns = time_ns;
}

/* The first pass has the greatest TTL, so that it was not noted: `passes` begins with 2 if the step
 * to it is as large as the next one will be, which a wrong guess costs one pass. */
NOINLINE void note_pass(struct flow *flow, unsigned direction, const struct packet_info *packet,
                        struct pool *pool) {
    if (!flow->passes)
        flow->passes = pool_zeroed(pool, 2 * sizeof *flow->passes);
    if (!flow->passes)
        return;
    struct pass_log *log = &flow->passes[direction];
    struct passing *entry = &log->passing[packet->ip_id % PASSING];
    bool same = entry->passes && entry->ip_id == packet->ip_id &&
                entry->ip_bytes == packet->ip_bytes && packet->ttl <= entry->ttl;
    if (!same) {
        *entry = (struct passing){packet->ip_bytes, packet->ip_id, packet->ttl, 2};
        return;
    }
    uint8_t step = (uint8_t)(entry->ttl - packet->ttl);
    if (!step) /* a copy of the capture */
        return;
    entry->ttl = packet->ttl;
    entry->passes += entry->passes < UINT8_MAX;
    if (entry->passes >= PASSES_LEAST)
        note_loop(log, entry, step, packet);
}
