/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of times in nanoseconds, with buckets of equal parts of a power of two: how late the
 * packets of a paced stream or of the emulated link were sent (parts of 1/32, so that a quantile is
 * at most 3% too high), and one-way delays (1/256, 0.4%). */
#ifndef WIRETALE_COMMON_LATENESS_H
#define WIRETALE_COMMON_LATENESS_H

#include <stdint.h>

#define LATE_NS UINT64_C(100000) /* a block is late after one gap, but not before this */

#define LATENESS_BITS    5u /* of the number of buckets in a power of two */
#define LATENESS_BUCKETS ((64u - LATENESS_BITS + 1) << LATENESS_BITS)
#define DELAY_BITS       8u
#define DELAY_BUCKETS    ((64u - DELAY_BITS + 1) << DELAY_BITS)

struct lateness {
    uint64_t count, max_ns;
    uint64_t buckets[LATENESS_BUCKETS];
};

void lateness_add(struct lateness *lateness, uint64_t ns);

/* Returns the time that `percent` of the packets did not exceed; 0 if there are none. */
uint64_t lateness_percentile(const struct lateness *lateness, unsigned percent);

struct delays {
    uint64_t count, max_ns;
    uint64_t buckets[DELAY_BUCKETS];
};

void delays_add(struct delays *delays, uint64_t ns);
uint64_t delays_percentile(const struct delays *delays, unsigned percent);

#endif
