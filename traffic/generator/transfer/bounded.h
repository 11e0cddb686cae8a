/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of figures that the other end reports: each may be anything up to INT64_MAX, and so may be
 * their sum, which stays there. */
#ifndef WIRETALE_BOUNDED_H
#define WIRETALE_BOUNDED_H

#include <stdint.h>

static inline uint64_t bounded_add(uint64_t one, uint64_t other) {
    uint64_t sum;
    return __builtin_add_overflow(one, other, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

static inline uint64_t bounded_subtract(uint64_t more, uint64_t less) {
    return more > less ? more - less : 0;
}

#endif
