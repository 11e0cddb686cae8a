/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a half-connection, its RTT estimate (RFC 6298) and its longest RTO stalls. The stalls
 * are evidence for the sum in rto_idle_ns: at most MAX_STALLS, each as the frames around it. */
#include "tcp/stream.h"

#include <stdio.h>
#include <string.h>

#include "tcp/segment.h"

struct stall {
    int64_t ns;
    uint32_t from, until; /* frames */
};

struct stall_list {
    uint32_t count;
    struct stall stalls[MAX_STALLS]; /* longest first */
};

const struct tcp_recovery_state no_recovery;

struct tcp_recovery_state *recovery_state(const struct segment_context *seg,
                                          struct tcp_stream *stream) {
    if (!stream->recovery) {
        stream->recovery = pool_alloc(seg->pool, sizeof *stream->recovery);
        if (stream->recovery)
            memset(stream->recovery, 0, sizeof *stream->recovery);
    }
    stream->counts_missing |= !stream->recovery;
    return stream->recovery ? stream->recovery : seg->sink->spare(seg);
}

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

/* Returns the last frame that the sender sent at least `ns` before the current segment, 0 if its
 * fingerprint is gone. */
static uint32_t frame_before(const struct segment_context *seg, int64_t ns) {
    const struct tcp_stream *stream = seg->sender;
    uint32_t since = fingerprint_time(seg->packet->time_ns - ns);
    for (unsigned i = 1; i <= stream->fingerprint_capacity; i++) {
        const struct packet_fingerprint *entry =
            &stream->fingerprints[(stream->next_fingerprint - i) &
                                  (stream->fingerprint_capacity - 1)];
        if (entry->frame && (int32_t)(since - entry->time) >= 0)
            return entry->frame;
    }
    return 0;
}

static struct stall_list *stalls_of(const struct segment_context *seg,
                                    struct tcp_recovery_state *recovery) {
    if (!recovery->stalls && recovery != seg->sink->spare(seg)) {
        recovery->stalls = pool_alloc(seg->pool, sizeof *recovery->stalls);
        if (recovery->stalls)
            memset(recovery->stalls, 0, sizeof *recovery->stalls);
    }
    return recovery->stalls;
}

void record_stall(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                  int64_t ns, uint32_t from) {
    recovery->rto_idle_ns = add_ns(recovery->rto_idle_ns, max64(ns, 0));
    struct stall_list *list = stalls_of(seg, recovery);
    struct stall stall = {ns, from ? from : frame_before(seg, ns), seg->frame};
    if (!list || !stall.from || !stall.until)
        return;
    uint32_t at = list->count;
    while (at && list->stalls[at - 1].ns < ns)
        at--;
    if (at == MAX_STALLS)
        return;
    list->count += list->count < MAX_STALLS;
    memmove(&list->stalls[at + 1], &list->stalls[at],
            (list->count - 1 - at) * sizeof *list->stalls);
    list->stalls[at] = stall;
}

void stalls_to_text(const struct tcp_recovery_state *recovery, char text[STALLS_TEXT_SIZE]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; recovery->stalls && i < recovery->stalls->count; i++) {
        const struct stall *stall = &recovery->stalls->stalls[i];
        used += (size_t)snprintf(text + used, STALLS_TEXT_SIZE - used, "%s%u-%u", i ? ", " : "",
                                 stall->from, stall->until);
    }
}

static void free_recovery(struct tcp_recovery_state *recovery, struct pool *pool) {
    pool_release(pool, recovery->records, recovery->record_capacity, sizeof *recovery->records);
    pool_release(pool, recovery->stalls, 1, sizeof *recovery->stalls);
    pool_free(pool, recovery, sizeof *recovery);
}

void stream_free(struct tcp_stream *stream, struct pool *pool) {
    range_set_free(&stream->gaps, pool);
    unacked_free(&stream->unacked, pool);
    histogram_free(&stream->rtt, pool);
    pool_release(pool, stream->accounting, 1, sizeof *stream->accounting);
    stream->accounting = NULL;
    pool_release(pool, stream->fingerprints, stream->fingerprint_capacity,
                 sizeof *stream->fingerprints);
    stream->fingerprints = NULL;
    stream->fingerprint_capacity = 0;
    block_stream_free(stream->blocks, pool);
    stream->blocks = NULL;
    if (stream->recovery)
        free_recovery(stream->recovery, pool);
    stream->recovery = NULL;
}
