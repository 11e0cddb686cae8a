/* SPDX-License-Identifier: Apache-2.0 */
/* Loss-recovery state of the segment's connection, allocated if a rule writes it, and the longest
 * RTO stalls, which are evidence for the sum in rto_idle_ns: at most MAX_STALLS, each as the frames
 * around it. */
#include "tcp/segment.h"

#include <string.h>

struct tcp_recovery_state *recovery_state(const struct segment_context *seg,
                                          struct tcp_stream *stream) {
    if (!stream->recovery)
        stream->recovery = pool_zeroed(seg->pool, sizeof *stream->recovery);
    stream->counts_missing |= !stream->recovery;
    return stream->recovery ? stream->recovery : seg->spare;
}

/* Returns the last frame that the sender sent at least `ns` before the current segment, 0 if its
 * fingerprint is gone. */
static uint32_t frame_before(const struct segment_context *seg, int64_t ns) {
    const struct tcp_stream *stream = seg->sender;
    uint32_t since = fingerprint_time(seg->packet->time_ns - ns);
    for (unsigned i = 1; i <= stream->fingerprint_capacity; i++) {
        const struct packet_fingerprint *entry = fingerprint_at(stream, i);
        if (entry->frame && (int32_t)(since - entry->time) >= 0)
            return entry->frame;
    }
    return 0;
}

void record_stall(const struct segment_context *seg, struct tcp_recovery_state *recovery,
                  int64_t ns, uint32_t from) {
    const struct packet_info *packet = seg->packet;
    int64_t since_ns = recovery->rto_ns;               /* of the RTO before this one */
    if (since_ns && packet->time_ns - since_ns < ns) { /* a SYN and data waited at once */
        ns = packet->time_ns - since_ns;
        from = 0;
    }
    if (ns <= 0)
        return;
    struct stall stall = {.ns = ns,
                          .until_ns = packet->time_known ? packet->time_ns : TIME_UNKNOWN,
                          .from = from ? from : frame_before(seg, ns),
                          .until = seg->frame,
                          .until_capture = packet->capture};
    stall.from_capture = capture_of_any(seg->connection, packet->time_ns - ns, stall.from, packet);
    if (!from)
        stall.from_capture = capture_of(seg->connection, segment_direction(seg),
                                        packet->time_ns - ns, stall.from, packet);
    uint32_t at = recovery->stall_count;
    recovery->rto_idle_ns = add_ns(recovery->rto_idle_ns, ns);
    while (at && recovery->stalls[at - 1].ns < ns)
        at--;
    if (at == MAX_STALLS || !stall.from || !stall.until)
        return;
    if (!recovery->stalls)
        recovery->stalls = pool_zeroed(seg->pool, MAX_STALLS * sizeof stall);
    if (!recovery->stalls)
        return;
    recovery->stall_count += recovery->stall_count < MAX_STALLS;
    memmove(&recovery->stalls[at + 1], &recovery->stalls[at],
            (recovery->stall_count - 1 - at) * sizeof stall);
    recovery->stalls[at] = stall;
}
