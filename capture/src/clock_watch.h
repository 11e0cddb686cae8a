/* SPDX-License-Identifier: Apache-2.0 */
/* Sees when somebody sets the clock: the distance of CLOCK_REALTIME from CLOCK_MONOTONIC jumps.
 * Slewing changes both alike and is no step. */
#ifndef WIRETALE_CLOCK_WATCH_H
#define WIRETALE_CLOCK_WATCH_H

#include <stdint.h>

#include "common/clock.h"

#define CLOCK_STEP_LEAST_NS NS_PER_MS
#define CLOCK_READS_MOST    50

struct clock_watch {
    int64_t distance_ns;
};

/* A thread that is held up between two reads shall see no step: it reads again. */
static inline int64_t clock_watch_distance(void) {
    int64_t best_span = INT64_MAX, distance = 0;
    for (int i = 0; i < CLOCK_READS_MOST && best_span > CLOCK_STEP_LEAST_NS / 10; i++) {
        int64_t before = monotonic_ns(), wall = realtime_ns(), span = monotonic_ns() - before;
        if (span < best_span) {
            best_span = span;
            distance = wall - before - span / 2;
        }
    }
    return distance;
}

static inline void clock_watch_begin(struct clock_watch *watch) {
    watch->distance_ns = clock_watch_distance();
}

/* The step since the last call, 0 for none. */
static inline int64_t clock_watch_step(struct clock_watch *watch, int64_t distance_ns) {
    int64_t step = distance_ns - watch->distance_ns;
    if (step < CLOCK_STEP_LEAST_NS && step > -CLOCK_STEP_LEAST_NS)
        return 0;
    watch->distance_ns = distance_ns;
    return step;
}

#endif
