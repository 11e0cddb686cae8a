/* SPDX-License-Identifier: Apache-2.0 */
/* The RTT estimate of a half-connection (RFC 6298 section 2), and its memory. */
#include "tcp/stream.h"

#include <stdio.h>

const struct tcp_recovery_state no_recovery;

int64_t min_rtt(const struct tcp_stream *stream) {
    int64_t sack_rtt = recovery_of(stream)->sack_rtt_ns;
    if (!stream->rtt.count)
        return sack_rtt ? sack_rtt : RTT_UNKNOWN;
    return sack_rtt ? min64(sack_rtt, stream->rtt.least) : stream->rtt.least;
}

void add_rtt_sample(struct tcp_stream *stream, int64_t rtt_ns, struct pool *pool) {
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

void stalls_to_text(const struct tcp_recovery_state *recovery, char text[STALLS_TEXT_SIZE]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < recovery->stall_count; i++) {
        const struct stall *stall = &recovery->stalls[i];
        used += (size_t)snprintf(text + used, STALLS_TEXT_SIZE - used, "%s%u-%u", i ? ", " : "",
                                 stall->from, stall->until);
    }
}

void stream_free(struct tcp_stream *stream, struct pool *pool) {
    struct tcp_recovery_state *recovery = stream->recovery;
    range_set_free(&stream->gaps, pool);
    unacked_free(&stream->unacked, pool);
    histogram_free(&stream->rtt, pool);
    pool_release(pool, stream->accounting, 1, sizeof *stream->accounting);
    pool_release(pool, stream->fingerprints, stream->fingerprint_capacity,
                 sizeof *stream->fingerprints);
    block_stream_free(stream->blocks, pool);
    if (recovery)
        pool_release(pool, recovery->records, recovery->record_capacity, sizeof *recovery->records);
    pool_release(pool, recovery, 1, sizeof *recovery);
}
