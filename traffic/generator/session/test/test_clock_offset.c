/* SPDX-License-Identifier: Apache-2.0 */
/* The offset of the clocks over a transfer lies between the bounds of the measurements at its begin
 * and end, for clocks that drift; a clock that was set is noticed. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "session/clock_offset.h"

static struct clock_offset measured(int64_t ns, uint64_t error_ns) {
    return (struct clock_offset){.is_known = true, .ns = ns, .error_ns = error_ns};
}

static struct clock_offset combined(struct clock_offset begin, struct clock_offset end,
                                    uint64_t elapsed_ns) {
    return clock_combine(&begin, &end, elapsed_ns);
}

static void test_bounds(void) {
    struct clock_offset same = combined(measured(1000, 100), measured(1000, 100), 0);
    CHECK(same.is_known && !same.is_same && same.ns == 1000 && same.error_ns == 100);
    struct clock_offset drifted = combined(measured(0, 100), measured(900, 100), NS_PER_S);
    CHECK_INT(drifted.ns, 450); /* from -100 to 1000 */
    CHECK_INT(drifted.error_ns, 550);
    /* A bad second measurement is bounded by the drift: 100 ppm of 1 s are 100 us. */
    struct clock_offset bad = combined(measured(0, 100), measured(0, 90000000), NS_PER_S);
    CHECK_INT(bad.ns, 0);
    CHECK_INT(bad.error_ns, 100100);
    struct clock_offset none = combined(measured(7, 100), (struct clock_offset){0}, NS_PER_S);
    CHECK(none.is_known && none.ns == 7 && none.error_ns == 100100);
}

static void test_a_clock_that_was_set(void) {
    CHECK(!combined(measured(0, 100), measured(NS_PER_S, 100), NS_PER_S).is_known);
    CHECK(!combined((struct clock_offset){0}, measured(0, 100), NS_PER_S).is_known);
}

static void test_one_clock(void) {
    struct clock_offset one = {.is_known = true, .is_same = true};
    struct clock_offset both = combined(one, (struct clock_offset){0}, 1000 * NS_PER_S);
    CHECK(both.is_known && both.is_same && !both.ns && !both.error_ns);
}

/* Offsets are drawn, the clocks drift evenly: at any time the true offset is within the error. */
static void test_drawn_clocks(void) {
    srand(3);
    for (int i = 0; i < 100000; i++) {
        int64_t begin = rand() % 2000001 - 1000000, elapsed = rand() % 1000 * NS_PER_MS;
        int64_t end = begin + (int64_t)((double)elapsed * 100e-6 * (rand() % 201 - 100) / 100);
        int64_t errors[] = {rand() % 50000 + 1, rand() % 500000 + 1};
        struct clock_offset all = combined(
            measured(begin + rand() % (2 * errors[0] + 1) - errors[0], (uint64_t)errors[0]),
            measured(end + rand() % (2 * errors[1] + 1) - errors[1], (uint64_t)errors[1]),
            (uint64_t)elapsed);
        CHECK(all.is_known);
        CHECK((uint64_t)llabs(all.ns - begin) <= all.error_ns + 1);
        CHECK((uint64_t)llabs(all.ns - end) <= all.error_ns + 1);
    }
}

/* Delays were collected with the first offset; at the initiator it counts the other way. */
static void test_delays_are_corrected(void) {
    struct transfer transfer = {.clock_begin = measured(1000, 10), .clock = measured(1300, 20)};
    struct stream_report report = {
        .delay_p50_ns_plus_1 = 501, .delay_p99_ns_plus_1 = 601, .delay_max_ns_plus_1 = 201};
    struct stream_report other = report;
    clock_correct(&transfer, &report);
    CHECK_INT(report.delay_p50_ns_plus_1, 201);
    CHECK_INT(report.delay_p99_ns_plus_1, 301);
    CHECK_INT(report.delay_max_ns_plus_1, 1);
    transfer.is_initiator = true;
    clock_correct(&transfer, &other);
    CHECK_INT(other.delay_p50_ns_plus_1, 801);
    transfer.clock.is_known = false;
    clock_correct(&transfer, &other);
    CHECK(!other.delay_p50_ns_plus_1 && !other.delay_p99_ns_plus_1 && !other.delay_max_ns_plus_1);
}

int main(void) {
    test_bounds();
    test_a_clock_that_was_set();
    test_one_clock();
    test_drawn_clocks();
    test_delays_are_corrected();
    return 0;
}
