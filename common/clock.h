/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations are signed 64-bit nanoseconds, which suffice until the year 2262. A double
 * would have steps of 238 ns for a time of today. */
#ifndef WIRETALE_COMMON_CLOCK_H
#define WIRETALE_COMMON_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

static inline int64_t timespec_ns(struct timespec time) {
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return timespec_ns(now);
}

/* For durations and deadlines: nothing sets this clock. */
static inline int64_t monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

/* Since the epoch, for times that other programs and hosts compare. */
static inline int64_t realtime_ns(void) {
    return clock_ns(CLOCK_REALTIME);
}

/* The same moment on both clocks. */
struct instant {
    uint64_t monotonic_ns, realtime_ns;
};

/* A thread that is held up between the readings would see two moments. Of up to four pairs, the one
 * that took least time counts, or the first of less than 10 us. */
static inline struct instant read_instant(void) {
    struct instant best = {0};
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < 4 && least > 10000; i++) {
        int64_t before = monotonic_ns(), now = realtime_ns(), took = monotonic_ns() - before;
        if (took < least)
            best = (struct instant){(uint64_t)before, (uint64_t)now};
        least = took < least ? took : least;
    }
    return best;
}

static inline uint64_t timeval_ns(struct timeval time) {
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static inline struct timespec to_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

#endif
