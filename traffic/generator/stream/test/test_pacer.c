/* SPDX-License-Identifier: Apache-2.0 */
/* Due times of blocks, by arithmetic alone, without a clock. */
#include "stream/pacer.h"

#include <math.h>

#include "common/test/check.h"

static struct pacer after(struct transfer_plan plan, unsigned blocks, uint32_t bytes) {
    struct pacer pacer;
    pacer_begin(&pacer, &plan, 0, 1000);
    for (unsigned i = 0; i < blocks; i++)
        pacer_advance(&pacer, bytes);
    return pacer;
}

static void test_constant(void) {
    struct transfer_plan plan = {.pacing = PACING_CONSTANT, .rate_bps = 10e3};
    struct pacer pacer = after(plan, 1, 1250);
    CHECK_INT(pacer_due_ns(&pacer), UINT64_C(1000001000));
    pacer = after(plan, 1000000, 125); /* 27 hours without drift */
    CHECK(fabs(pacer.due_ns / 1e14 - 1) < 1e-9);
    plan = (struct transfer_plan){.pacing = PACING_CONSTANT, .rate_pps = 3};
    pacer = after(plan, 3000000, 9999);
    CHECK(fabs(pacer.due_ns / 1e15 - 1) < 1e-9);
}

static void test_burst(void) {
    struct transfer_plan plan = {.pacing = PACING_BURST, .rate_pps = 1000, .burst = 4};
    for (unsigned blocks = 0; blocks < 40; blocks++) {
        struct pacer pacer = after(plan, blocks, 100);
        CHECK_INT(llround(pacer.due_ns), blocks / 4 * 4 * 1000000);
    }
}

/* Mean and spread of an exponential distribution. */
static void test_poisson(void) {
    enum { COUNT = 200000 };
    struct transfer_plan plan = {.pacing = PACING_POISSON, .rate_pps = 1e6, .run = 5};
    struct pacer pacer;
    double sum = 0, squares = 0, before = 0;
    pacer_begin(&pacer, &plan, 2, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        pacer_advance(&pacer, 64);
        double gap = pacer.due_ns - before;
        CHECK(gap >= 0);
        before = pacer.due_ns;
        sum += gap;
        squares += gap * gap;
    }
    double mean = sum / COUNT;
    CHECK(fabs(mean - 1000) < 15);
    CHECK(fabs(sqrt(squares / COUNT - mean * mean) - 1000) < 20);
}

int main(void) {
    test_constant();
    test_burst();
    test_poisson();
    return 0;
}
