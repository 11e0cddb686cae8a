/* SPDX-License-Identifier: Apache-2.0 */
/* The RTT estimate of a half-connection (RFC 6298 section 2), its timestamp clock, and its memory.
 */
#include "tcp/stream.h"

const struct tcp_recovery_state no_recovery;

#define TICKS_LEAST 4u /* of the endpoint's clock, before its tick is known */

int64_t min_rtt(const struct tcp_stream *stream) {
    int64_t sack_rtt = recovery_of(stream)->sack_rtt_ns;
    if (!stream->rtt.count)
        return sack_rtt ? sack_rtt : RTT_UNKNOWN;
    return sack_rtt ? min64(sack_rtt, least_sample(stream)) : least_sample(stream);
}

void add_rtt_sample(struct tcp_stream *stream, int64_t rtt_ns, int64_t step_ns, struct pool *pool) {
    stream->clock_step_ns = (int32_t)step_ns;
    rtt_ns = max64(rtt_ns, step_ns);
    int64_t rtt_us = rtt_ns / 1000 < INT32_MAX ? rtt_ns / 1000 : INT32_MAX;
    if (!stream->rtt.count) {
        stream->srtt_us = (uint32_t)rtt_us;
        stream->rttvar_us = (uint32_t)rtt_us / 2;
    } else {
        int64_t error = rtt_us - stream->srtt_us, size = error < 0 ? -error : error;
        stream->rttvar_us = (uint32_t)(stream->rttvar_us + (size - stream->rttvar_us) / 4);
        stream->srtt_us = (uint32_t)(stream->srtt_us + error / 8);
    }
    histogram_add(&stream->rtt, rtt_ns, pool);
}

/* Times at the capture point include the delay of queues, so the measured tick is replaced by the
 * usual one near it. */
int64_t tsval_tick_ns(const struct tcp_stream *stream) {
    static const int64_t usual_ns[] = {1000, 1000000, 4000000, 10000000, 100000000, 500000000};
    uint32_t ticks = stream->max_tsval - stream->first_tsval;
    int64_t span_ns = stream->tsval_ns - stream->first_tsval_ns;
    if (ticks < TICKS_LEAST || ticks > INT32_MAX || span_ns <= 0)
        return 0;
    int64_t tick_ns = span_ns / ticks;
    for (unsigned i = 0; i < sizeof usual_ns / sizeof *usual_ns; i++)
        if (tick_ns > usual_ns[i] * 3 / 4 && tick_ns < usual_ns[i] * 2)
            return usual_ns[i];
    return 0;
}

void note_clock_jump(struct tcp_stream *stream, uint32_t tsval, int64_t time_ns, uint32_t frame) {
    int64_t tick_ns = stream->accounting ? tsval_tick_ns(stream) : 0;
    int64_t gap_ns = time_ns - stream->tsval_ns;
    int64_t more_ns = gap_ns - (int64_t)(tsval - stream->max_tsval) * tick_ns;
    if (tick_ns && more_ns >= CLOCK_JUMP_MIN_NS && more_ns >= gap_ns / 2 &&
        more_ns > stream->accounting->jump.ns)
        stream->accounting->jump = (struct clock_jump){more_ns, stream->tsval_ns, time_ns, frame};
}

/* The clocks did not come together again behind the jump, as behind packets that were late, and
 * were together before: the tick is right. */
static bool stays_apart(const struct tcp_stream *stream) {
    int64_t ticks = stream->max_tsval - stream->first_tsval, tick_ns = tsval_tick_ns(stream);
    int64_t apart_ns = stream->tsval_ns - stream->first_tsval_ns - ticks * tick_ns;
    int64_t jump_ns = stream->accounting->jump.ns;
    return tick_ns && stream->tsval_ns > stream->accounting->jump.until_ns &&
           apart_ns > jump_ns - jump_ns / 4 && apart_ns < jump_ns + jump_ns / 4;
}

struct clock_jump find_clock_jump(const struct tcp_stream streams[2]) {
    if (!streams[0].accounting || !streams[1].accounting)
        return (struct clock_jump){0};
    struct clock_jump a = streams[0].accounting->jump, b = streams[1].accounting->jump;
    struct clock_jump first = a.until_ns < b.until_ns ? a : b;
    first.ns = min64(a.ns, b.ns);
    first.after_ns = max64(a.after_ns, b.after_ns);
    bool at_once = first.ns && first.after_ns < first.until_ns;
    bool alike = max64(a.ns, b.ns) - first.ns <= first.ns / 4;
    if (!at_once || !alike || !stays_apart(&streams[0]) || !stays_apart(&streams[1]))
        return (struct clock_jump){0};
    return first;
}

void stream_free(struct tcp_stream *stream, struct pool *pool) {
    struct tcp_recovery_state *recovery = stream->recovery;
    range_set_free(&stream->gaps, pool);
    unacked_free(&stream->unacked, pool);
    histogram_free(&stream->rtt, pool);
    pool_release(pool, stream->ack_history, ACKS_KEPT, sizeof *stream->ack_history);
    if (stream->accounting) {
        pool_release(pool, stream->accounting->view.passing, stream->accounting->view.room,
                     sizeof *stream->accounting->view.passing);
        pool_release(pool, stream->accounting->steady, 1, sizeof *stream->accounting->steady);
    }
    pool_release(pool, stream->accounting, 1, sizeof *stream->accounting);
    pool_release(pool, stream->fingerprints, stream->fingerprint_capacity,
                 sizeof *stream->fingerprints);
    pool_release(pool, stream->super_segments, 1, sizeof *stream->super_segments);
    block_stream_free(stream->blocks, pool);
    if (!recovery)
        return;
    scoreboard_free(&recovery->scoreboard, pool);
    pool_release(pool, recovery->records, recovery->record_capacity, sizeof *recovery->records);
    pool_release(pool, recovery->damaged, recovery->damaged_room, sizeof *recovery->damaged);
    pool_release(pool, recovery->stalls, MAX_STALLS, sizeof *recovery->stalls);
    pool_free(pool, recovery, sizeof *recovery);
}
