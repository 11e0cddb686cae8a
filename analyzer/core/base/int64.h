/* SPDX-License-Identifier: Apache-2.0 */
/* Times and stream positions, which are int64_t. */
#ifndef WIRETALE_INT64_H
#define WIRETALE_INT64_H

#include <stdint.h>

static inline int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Sums two durations. It saturates because a capture's clock may step by decades, repeatedly. */
static inline int64_t add_ns(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
