/* SPDX-License-Identifier: Apache-2.0 */
/* A packet is told from those of another run by its time. Clocks of two files may differ, so times
 * up to the latest one at the begin of a run may be of both. */
#include "tcp/capture_runs.h"

/* Begins the runs of both directions with packets of a capture, CAPTURE_UNKNOWN if memory had run
 * out before. The last one of them had time `last_ns`. */
static struct capture_runs *begin_runs(uint32_t capture, int64_t last_ns, struct pool *pool) {
    struct capture_runs *runs = pool_zeroed(pool, sizeof *runs);
    for (unsigned i = 0; runs && i < 2; i++)
        runs->of[i] = (struct capture_run){.capture = capture,
                                           .before = CAPTURE_UNKNOWN,
                                           .first_ns = INT64_MIN,
                                           .last_ns = last_ns,
                                           .sure_ns = INT64_MIN,
                                           .before_last_ns = INT64_MIN};
    return runs;
}

void note_capture(struct tcp_connection *connection, unsigned direction,
                  const struct packet_info *packet, uint32_t first_capture, int64_t last_ns,
                  struct pool *pool) {
    if (!connection->captures)
        connection->captures =
            begin_runs(connection->captures_vary ? CAPTURE_UNKNOWN : first_capture, last_ns, pool);
    connection->captures_vary = true;
    if (!connection->captures)
        return;
    struct capture_run *run = &connection->captures->of[direction];
    if (run->capture != packet->capture)
        *run = (struct capture_run){.capture = packet->capture,
                                    .before = run->capture,
                                    .first_frame = (uint32_t)packet->frame,
                                    .first_ns = packet->time_ns,
                                    .last_ns = run->last_ns,
                                    .sure_ns = max64(packet->time_ns, last_ns),
                                    .before_sure_ns = run->sure_ns,
                                    .before_last_ns = run->last_ns};
    run->last_ns = max64(run->last_ns, packet->time_ns);
}

uint32_t capture_of(const struct tcp_connection *connection, unsigned direction, int64_t time_ns,
                    uint32_t frame, const struct packet_info *packet) {
    if (!connection->captures_vary)
        return packet->capture;
    if (!connection->captures)
        return CAPTURE_UNKNOWN;
    const struct capture_run *run = &connection->captures->of[direction];
    if (time_ns > run->sure_ns || (time_ns == run->first_ns && frame == run->first_frame))
        return run->capture;
    return time_ns < run->first_ns && time_ns > run->before_sure_ns ? run->before : CAPTURE_UNKNOWN;
}

/* Returns whether the direction may have a packet of this time: it is not between two runs, nor
 * after the last one. */
static bool may_have(const struct capture_run *run, int64_t time_ns) {
    return time_ns <= run->last_ns && (time_ns <= run->before_last_ns || time_ns >= run->first_ns);
}

uint32_t capture_of_any(const struct tcp_connection *connection, int64_t time_ns, uint32_t frame,
                        const struct packet_info *packet) {
    uint32_t sent = capture_of(connection, 0, time_ns, frame, packet);
    uint32_t returned = capture_of(connection, 1, time_ns, frame, packet);
    if (!connection->captures || sent == returned)
        return sent;
    bool may_be_sent = may_have(&connection->captures->of[0], time_ns);
    bool may_be_returned = may_have(&connection->captures->of[1], time_ns);
    if (may_be_sent == may_be_returned)
        return CAPTURE_UNKNOWN;
    return may_be_sent ? sent : returned;
}
