/* SPDX-License-Identifier: Apache-2.0 */
/* Time is nanoseconds in 64 bits. */
#ifndef WIRETALE_CLOCK_H
#define WIRETALE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static inline uint64_t clock_ns(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* For durations: never set back. */
static inline uint64_t monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

/* Since the epoch, for what others compare. */
static inline uint64_t realtime_ns(void) {
    return clock_ns(CLOCK_REALTIME);
}

static inline struct timespec to_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

#endif
