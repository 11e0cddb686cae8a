/* SPDX-License-Identifier: Apache-2.0 */
/* A step of the clock is seen once, with its size; a clock that runs is none. */
#include "common/clock.h"
#include "common/test/check.h"
#include "control.h"

int main(void) {
    struct clock_watch watch = {.distance_ns = 1000 * NS_PER_S};
    CHECK_INT(clock_watch_step(&watch, 1000 * NS_PER_S + 300000), 0);
    CHECK_INT(clock_watch_step(&watch, 1000 * NS_PER_S - 300000), 0);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S), -10 * NS_PER_S);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S), 0);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S + 2 * NS_PER_MS), 2 * NS_PER_MS);
    watch.distance_ns = clock_watch_distance();
    for (int i = 0; i < 100000; i++)
        CHECK_INT(clock_watch_step(&watch, clock_watch_distance()), 0);
    return 0;
}
