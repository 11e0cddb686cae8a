/* SPDX-License-Identifier: Apache-2.0 */
/* At any times no packet is lost from the bins, and bins stay in order and within their bound.
 */
#include "flow/time_bins.h"

#include "common/test/check.h"

static void add(struct time_bins *series, int64_t time_ns, uint64_t packets, struct pool *pool) {
    struct time_bin *bin = time_bins_at(series, time_ns, packets, pool);
    CHECK(bin);
    int64_t start = time_bins_start_ns(series, bin->index);
    CHECK(time_ns >= start && time_ns < start + time_bins_width_ns(series));
    bin->packets++;
    bin->lost += 2;
    bin->wire_bytes += 3;
    bin->ip_bytes += 4;
    bin->payload_bytes += 5;
    bin->unique_bytes += 6;
    bin->retransmitted_bytes += 7;
}

/* All counts of a packet are in one bin. */
static void check_counts(const struct time_bin *bin) {
    CHECK_INT(bin->lost, bin->packets * 2u);
    CHECK_INT(bin->wire_bytes, bin->packets * 3u);
    CHECK_INT(bin->ip_bytes, bin->packets * 4u);
    CHECK_INT(bin->payload_bytes, bin->packets * 5u);
    CHECK_INT(bin->unique_bytes, bin->packets * 6u);
    CHECK_INT(bin->retransmitted_bytes, bin->packets * 7u);
}

static uint64_t check_order(const struct time_bins *series) {
    uint64_t packets = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        CHECK(!i || series->bins[i - 1].index < series->bins[i].index);
        CHECK(series->bins[i].index < BINS_MOST);
        check_counts(&series->bins[i]);
        packets += series->bins[i].packets;
    }
    return packets;
}

/* With a step of 0 the times are random, within 268 s of `start_ns`. */
static void check_stream(int64_t start_ns, int64_t step_ns, uint64_t packets, int64_t width_most) {
    struct pool pool = {.most = 1 << 24};
    struct time_bins series = {0};
    uint32_t state = 3;
    for (uint64_t i = 0; i < packets; i++) {
        state = state * 1664525u + 1013904223u;
        int64_t after_ns = step_ns ? (int64_t)i * step_ns : (int64_t)(state >> 4) * 1000;
        add(&series, start_ns + after_ns, i + 1, &pool);
    }
    CHECK_INT(check_order(&series), packets);
    CHECK(time_bins_width_ns(&series) <= width_most);
    time_bins_free(&series, &pool);
    CHECK_INT(pool.used, 0);
}

static void check_extremes(void) {
    struct pool pool = {.most = 1 << 24};
    struct time_bins series = {0};
    add(&series, INT64_C(1) << 62, 1, &pool);
    add(&series, -(INT64_C(1) << 61), 2, &pool);
    add(&series, 0, 3, &pool);
    CHECK_INT(check_order(&series), 3);
    time_bins_free(&series, &pool);
}

int main(void) {
    check_stream(0, 1000, 100000, BIN_WIDTH_LEAST_NS);           /* 100 ms */
    check_stream(1700000000123456789, 1000000, 100000, 1 << 27); /* 100 s in 2,000 bins: 64 ms */
    check_stream(-5000000000, 10000000, 1000, INT64_C(1) << 38); /* across the epoch */
    check_stream(-100000000000, 0, 50000, INT64_MAX);
    check_extremes();
    return 0;
}
