/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that is believed and then goes wrong in any way: every packet must be counted once. */
#include <stdlib.h>
#include <string.h>

#include "base/packet.h"
#include "common/block.h"
#include "sequence/tracker.h"

#define PAYLOAD_BYTES 40u
#define RECORD_BYTES  8u /* of the input, for each packet */

static const char *const beginnings[] = {
    "WTB1\0\0\0\1\0\1\0\0\0\0\0\x28\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", /* a block */
    "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0",                               /* iperf3 */
    "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0",                               /* iperf2 */
    "\x80\0\0\0\0\0\0\0\0\0\0\1",                                     /* RTP */
};
static const struct {
    uint8_t bytes, sequence_at, low_byte_at, time_at;
} places[] = {{32, 16, 23, 28}, {16, 8, 15, 4}, {16, 0, 3, 8}, {12, 2, 3, 4}};

struct flow {
    struct sequence_track track;
    struct pool pool;
    uint64_t events, frames;
    int64_t time_ns;
};

static void count(void *context, const struct sequence_event *event) {
    uint64_t *events = context;
    *events += event->count;
}

static void take(struct flow *flow, const uint8_t *payload, uint32_t captured) {
    struct sequence_listener listener = {count, &flow->events};
    struct sequence_packet packet = {.time_ns = flow->time_ns,
                                     .frame = ++flow->frames,
                                     .payload.length = PAYLOAD_BYTES,
                                     .time_known = flow->time_ns != INT64_MIN};
    packet.payload.captured =
        (uint8_t)(captured < SEQUENCE_BYTES_MOST ? captured : SEQUENCE_BYTES_MOST);
    memcpy(packet.payload.bytes, payload, packet.payload.captured);
    sequence_take(&flow->track, &packet, &flow->pool, &listener);
}

static void check(struct flow *flow) {
    struct sequence_summary sums;
    sequence_summary(&flow->track, NULL, &sums);
    if (sums.application == WORD_NONE)
        return;
    if (sums.received + sums.other_packets + sums.end_markers != flow->frames ||
        sums.unique + sums.duplicates + sums.late != sums.received || sums.unique > sums.expected ||
        sums.longest_loss_run > sums.lost || sums.loss_runs > sums.lost)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct flow flow = {.pool.own.most = 1 << 16, .time_ns = 1000000000};
    uint8_t payload[PAYLOAD_BYTES] = {0};
    unsigned form = size ? data[0] % 4 : 0;
    memcpy(payload, beginnings[form], places[form].bytes);
    for (unsigned i = 0; i < 6; i++, flow.time_ns += 100000) {
        payload[places[form].low_byte_at]++;
        block_store(payload + places[form].time_at, 100 * (i + 1), 4);
        take(&flow, payload, PAYLOAD_BYTES);
    }
    for (size_t at = 1; at + RECORD_BYTES <= size; at += RECORD_BYTES) {
        const uint8_t *record = data + at;
        for (unsigned i = 0; i < 4; i++)
            payload[(record[0] + i) % PAYLOAD_BYTES] ^= record[1 + i];
        int64_t gap_ns = (int64_t)((uint64_t)block_load(record + 5, 2) << record[7] % 40);
        flow.time_ns += gap_ns < TIME_MOST_NS - flow.time_ns ? gap_ns : 0; /* as readers bound it */
        take(&flow, payload, record[7] < 240 ? PAYLOAD_BYTES : record[7] - 240u);
    }
    check(&flow);
    sequence_free(&flow.track, &flow.pool);
    if (flow.pool.own.used)
        abort();
    pool_close(&flow.pool);
    return 0;
}
