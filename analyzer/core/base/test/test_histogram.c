/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles against sorted samples. */
#include "base/histogram.h"

#include "common/test/check.h"

#define MOST 20000

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t expected_quantile(const int64_t *sorted, size_t count, unsigned per_mille) {
    size_t rank = (count * per_mille + 999) / 1000;
    return sorted[rank ? rank - 1 : 0];
}

static void check_quantiles(size_t count, double tolerance) {
    static int64_t samples[MOST];
    struct pool pool = {.own.most = 1 << 20};
    struct histogram set = {0};
    uint32_t state = 7;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        samples[i] = 1000 + (int64_t)(state >> 4) * (1 + i % 50);
        histogram_add(&set, samples[i], &pool);
        CHECK(i > 1 || !pool.own.used); /* two samples take no memory */
    }
    qsort(samples, count, sizeof *samples, compare);
    CHECK_INT(set.count, count);
    CHECK_INT(set.least, samples[0]);
    CHECK_INT(set.greatest, samples[count - 1]);
    for (unsigned per_mille = 10; per_mille <= 990; per_mille += 98) {
        double expected = (double)expected_quantile(samples, count, per_mille);
        double got = (double)histogram_quantile(&set, per_mille, &pool);
        CHECK(got >= expected * (1 - tolerance) && got <= expected * (1 + tolerance));
    }
    histogram_free(&set, &pool);
    CHECK_INT(pool.own.used, 0);
}

static void check_negative_is_zero(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct histogram set = {0};
    histogram_add(&set, -5, &pool);
    CHECK_INT(set.least, 0);
    CHECK_INT(histogram_quantile(&set, 500, &pool), 0);
    histogram_free(&set, &pool);
}

static void check_extremes(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct histogram set = {0};
    for (int i = 0; i < 200; i++)
        histogram_add(&set, i % 2 ? INT64_MAX : 0, &pool);
    CHECK_INT(histogram_quantile(&set, 100, &pool), 0);
    CHECK(histogram_quantile(&set, 990, &pool) > INT64_MAX / 100 * 98);
    histogram_free(&set, &pool);
}

int main(void) {
    for (size_t count = 1; count <= 10; count++)
        check_quantiles(count, 0);
    check_quantiles(SAMPLES_EXACT, 0);
    check_quantiles(MOST, 0.017);
    check_negative_is_zero();
    check_extremes();
    return 0;
}
