/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the times, no packet is lost from the bins, bins stay in order and within their bound.
 */
#include "flow/time_bins.h"

#include "common/check.h"

static void add(struct series_bins *series, int64_t time_ns, uint64_t packets,
                struct allowance *allowance) {
    struct series_bin *bin = series_bins_at(series, time_ns, packets, allowance);
    CHECK(bin);
    int64_t start = series_bins_start_ns(series, bin->index);
    CHECK(time_ns >= start && time_ns < start + series_bins_width_ns(series));
    bin->packets++;
    bin->lost += 2;
    bin->wire_bytes += 3;
    bin->ip_bytes += 4;
    bin->payload_bytes += 5;
    bin->unique_bytes += 6;
    bin->retransmitted_bytes += 7;
}

/* Whatever was counted of a packet is in the bin that it was counted in. */
static void check_counts(const struct series_bin *bin) {
    CHECK_INT(bin->lost, bin->packets * 2u);
    CHECK_INT(bin->wire_bytes, bin->packets * 3u);
    CHECK_INT(bin->ip_bytes, bin->packets * 4u);
    CHECK_INT(bin->payload_bytes, bin->packets * 5u);
    CHECK_INT(bin->unique_bytes, bin->packets * 6u);
    CHECK_INT(bin->retransmitted_bytes, bin->packets * 7u);
}

static uint64_t check_order(const struct series_bins *series) {
    uint64_t packets = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        CHECK(!i || series->bins[i - 1].index < series->bins[i].index);
        CHECK(series->bins[i].index < BINS_MOST);
        check_counts(&series->bins[i]);
        packets += series->bins[i].packets;
    }
    return packets;
}

static void check_stream(int64_t start_ns, int64_t step_ns, uint64_t packets, int64_t width_most) {
    struct allowance allowance = {.most = 1 << 24};
    struct series_bins series = {0};
    for (uint64_t i = 0; i < packets; i++)
        add(&series, start_ns + (int64_t)i * step_ns, i + 1, &allowance);
    CHECK_INT(check_order(&series), packets);
    CHECK(series_bins_width_ns(&series) <= width_most);
    series_bins_free(&series, &allowance);
    CHECK_INT(allowance.used, 0);
}

static void check_disorder(void) {
    struct allowance allowance = {.most = 1 << 24};
    struct series_bins series = {0};
    uint32_t state = 3;
    for (uint64_t i = 0; i < 50000; i++) {
        state = state * 1664525u + 1013904223u;
        add(&series, (int64_t)(state >> 4) * 1000 - 100000000000, i + 1, &allowance);
    }
    CHECK_INT(check_order(&series), 50000);
    series_bins_free(&series, &allowance);
}

static void check_extremes(void) {
    struct allowance allowance = {.most = 1 << 24};
    struct series_bins series = {0};
    add(&series, INT64_C(1) << 62, 1, &allowance);
    add(&series, -(INT64_C(1) << 61), 2, &allowance);
    add(&series, 0, 3, &allowance);
    CHECK_INT(check_order(&series), 3);
    series_bins_free(&series, &allowance);
}

int main(void) {
    check_stream(0, 1000, 100000, BIN_WIDTH_LEAST_NS);           /* 100 ms */
    check_stream(1700000000123456789, 1000000, 100000, 1 << 27); /* 100 s in 2,000 bins: 64 ms */
    check_stream(-5000000000, 10000000, 1000, INT64_C(1) << 38); /* across the epoch */
    check_disorder();
    check_extremes();
    return 0;
}
