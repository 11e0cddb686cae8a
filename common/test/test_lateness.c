/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles beside the exact ones of the same numbers. */
#include "common/lateness.h"

#include "common/test/check.h"

static struct lateness lateness;

static void test_none(void) {
    lateness = (struct lateness){0};
    CHECK_INT(lateness_percentile(&lateness, 50), 0);
    CHECK_INT(lateness.max_ns, 0);
}

/* 1 to 100,000: the p-th percentile is 1000 p. */
static void test_percentiles(void) {
    lateness = (struct lateness){0};
    for (uint64_t ns = 1; ns <= 100000; ns++)
        lateness_add(&lateness, ns);
    for (unsigned percent = 1; percent <= 100; percent++) {
        uint64_t found = lateness_percentile(&lateness, percent);
        CHECK(found >= 1000 * percent && found <= 1000 * percent * 33 / 32 + 1);
    }
    CHECK_INT(lateness_percentile(&lateness, 100), 100000);
    CHECK_INT(lateness.count, 100000);
}

/* Each power of two, and the largest number, have buckets inside of the array. */
static void test_bounds(void) {
    for (unsigned bit = 0; bit < 64; bit++) {
        lateness = (struct lateness){0};
        lateness_add(&lateness, UINT64_C(1) << bit);
        lateness_add(&lateness, (UINT64_C(1) << bit) - 1);
        CHECK_INT(lateness_percentile(&lateness, 100), UINT64_C(1) << bit);
    }
    lateness = (struct lateness){0};
    lateness_add(&lateness, UINT64_MAX);
    CHECK(lateness_percentile(&lateness, 50) == UINT64_MAX);
}

static void test_delays(void) {
    static struct delays delays;
    CHECK_INT(delays_percentile(&delays, 50), 0);
    for (uint64_t ns = 1; ns <= 100000; ns++)
        delays_add(&delays, 1000 * ns);
    for (unsigned percent = 1; percent <= 100; percent++) {
        uint64_t found = delays_percentile(&delays, percent);
        CHECK(found >= UINT64_C(1000000) * percent &&
              found <= UINT64_C(1000000) * percent * 257 / 256 + 1);
    }
    delays_add(&delays, UINT64_MAX);
    delays_add(&delays, 0);
    CHECK(delays_percentile(&delays, 100) == UINT64_MAX);
}

int main(void) {
    test_delays();
    test_none();
    test_percentiles();
    test_bounds();
    return 0;
}
