/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a condition until a time of the monotonic clock, which nothing sets.
 * pthread_cond_clockwait() is newer than the oldest glibc that wheels run with. */
#ifndef WIRETALE_COMMON_WAIT_H
#define WIRETALE_COMMON_WAIT_H

#include <pthread.h>

#include "common/clock.h"

static inline void wait_init(pthread_cond_t *condition) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &clock);
    pthread_condattr_destroy(&clock);
}

static inline void wait_for(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ns) {
    struct timespec limit = to_timespec(monotonic_ns() + ns);
    pthread_cond_timedwait(condition, lock, &limit);
}

#endif
