/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, in nanoseconds. */
#ifndef WIRETALE_MOMENT_H
#define WIRETALE_MOMENT_H

#include <stdint.h>
#include <time.h>

#define SECOND_NS      INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static inline int64_t wall_ns(void) {
    return clock_ns(CLOCK_REALTIME);
}

static inline int64_t steady_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
