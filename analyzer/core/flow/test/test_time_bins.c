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
    struct time_bin small[BINS_SMALL_MOST];
    const struct time_bin *bins = time_bins_list(series, small);
    uint64_t packets = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        CHECK(!i || bins[i - 1].index < bins[i].index);
        CHECK(bins[i].index < BINS_MOST);
        check_counts(&bins[i]);
        packets += bins[i].packets;
    }
    return packets;
}

/* With a step of 0 the times are random, within 268 s of `start_ns`. */
static void check_stream(int64_t start_ns, int64_t step_ns, uint64_t packets, int64_t width_most) {
    struct pool pool = {.own.most = 1 << 24};
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
    CHECK_INT(pool.own.used, 0);
}

static void check_extremes(void) {
    struct pool pool = {.own.most = 1 << 24};
    struct time_bins series = {0};
    add(&series, INT64_C(1) << 62, 1, &pool);
    add(&series, -(INT64_C(1) << 61), 2, &pool);
    add(&series, 0, 3, &pool);
    CHECK_INT(check_order(&series), 3);
    time_bins_free(&series, &pool);
}

#define LARGE (UINT64_C(1) << 20) /* no small series has a sum of this */

static void check_equal(const struct time_bins *few, const struct time_bins *many) {
    struct time_bin few_small[BINS_SMALL_MOST], many_small[BINS_SMALL_MOST];
    const struct time_bin *a = time_bins_list(few, few_small);
    const struct time_bin *b = time_bins_list(many, many_small);
    CHECK_INT(few->count, many->count);
    CHECK_INT(few->doublings, many->doublings);
    for (uint32_t i = 0; i < few->count; i++) {
        CHECK_INT(time_bins_start_ns(few, a[i].index), time_bins_start_ns(many, b[i].index));
        CHECK_INT(a[i].packets, b[i].packets);
        CHECK_INT(a[i].wire_bytes * LARGE, b[i].wire_bytes);
        CHECK_INT(a[i].rtt_us, b[i].rtt_us);
        CHECK_INT(a[i].flight, b[i].flight);
        CHECK_INT(a[i].window, b[i].window);
    }
}

/* Packets of a few bytes have the same bins as those of many, which are never in a small series;
 * one in `late_each` is late. */
static void check_small(int64_t step_ns, unsigned late_each) {
    struct pool pool = {.own.most = 1 << 24};
    struct time_bins few = {0}, many = {0};
    for (unsigned i = 0; i < 200; i++) {
        int64_t time_ns = (int64_t)i * step_ns - (i % late_each ? 0 : 5 * step_ns);
        struct time_bin *a = time_bins_at(&few, time_ns, i + 1, &pool);
        struct time_bin *b = time_bins_at(&many, time_ns, i + 1, &pool);
        a->packets++;
        b->packets++;
        a->wire_bytes += i;
        b->wire_bytes += i * LARGE;
        a->rtt_us = a->flight = a->window = b->rtt_us = b->flight = b->window = UINT32_MAX - i;
        check_equal(&few, &many);
    }
    time_bins_free(&few, &pool);
    time_bins_free(&many, &pool);
    CHECK_INT(pool.own.used, 0);
}

/* A direction of few packets takes 64 bytes, and 64 more for two further bins. */
static void check_memory(void) {
    struct pool pool = {.own.most = 1 << 24};
    struct time_bins series = {0};
    for (unsigned i = 0; i < BINS_SMALL_MOST; i++) { /* the width doubles at the last */
        int64_t time_ns = i < BINS_SMALL_MOST - 1 ? i * INT64_C(3000000) : INT64_C(3000000000);
        add(&series, time_ns, i + 1, &pool);
        CHECK_INT(pool.own.used, 64 + 64 * ((i + 1) / 2));
    }
    CHECK(series.doublings);
    CHECK_INT(check_order(&series), BINS_SMALL_MOST);
    time_bins_free(&series, &pool);
    CHECK_INT(pool.own.used, 0);
}

/* Near the limit of memory bins become coarser, and no packet is lost. */
static void check_limit(void) {
    for (size_t most = 64; most < 3000; most += 32) {
        struct pool pool = {.own.most = most};
        struct time_bins series = {0};
        for (unsigned i = 0; i < 100; i++)
            add(&series, (int64_t)(i % 10 ? i : i - i / 2) * 7000000, i + 1, &pool);
        CHECK_INT(check_order(&series), 100);
        time_bins_free(&series, &pool);
        CHECK_INT(pool.own.used, 0);
    }
}

int main(void) {
    check_small(100000, 1000);
    check_small(1000000, 1000);
    check_small(1000000, 7);
    check_small(150000000, 1000);
    check_small(150000000, 50);
    check_memory();
    check_limit();
    check_stream(0, 1000, 100000, BIN_WIDTH_LEAST_NS);           /* 100 ms */
    check_stream(1700000000123456789, 1000000, 100000, 1 << 27); /* 100 s in 2,000 bins: 64 ms */
    check_stream(-5000000000, 10000000, 1000, INT64_C(1) << 38); /* across the epoch */
    check_stream(-100000000000, 0, 50000, INT64_MAX);
    check_extremes();
    return 0;
}
