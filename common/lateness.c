/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers below 2^bits have a bucket each; above, the leading bits after the first choose one of
 * the buckets of their power of two. */
#include "common/lateness.h"

static unsigned bucket_of(uint64_t ns, unsigned bits) {
    if (ns < 1u << bits)
        return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - bits;
    return (shift << bits) + (unsigned)(ns >> shift);
}

/* Returns the largest number of a bucket. */
static uint64_t bucket_end(unsigned bucket, unsigned bits) {
    if (bucket < 1u << bits)
        return bucket;
    unsigned shift = (bucket >> bits) - 1;
    uint64_t leading = bucket - (shift << bits);
    return (leading << shift) + ((UINT64_C(1) << shift) - 1);
}

/* Returns the end of the bucket with number `wanted` of all, counted from 1. There must be one. */
static uint64_t find_end(const uint64_t *buckets, unsigned bits, uint64_t wanted) {
    unsigned at = 0;
    for (uint64_t seen = buckets[0]; seen < wanted; seen += buckets[at])
        at++;
    return bucket_end(at, bits);
}

/* The maximum is known exactly, so no quantile exceeds it. */
static uint64_t percentile(const uint64_t *buckets, unsigned bits, uint64_t count, uint64_t max_ns,
                           unsigned percent) {
    uint64_t wanted = (count * percent + 99) / 100;
    uint64_t end = wanted ? find_end(buckets, bits, wanted) : 0;
    return end < max_ns ? end : max_ns;
}

void lateness_add(struct lateness *lateness, uint64_t ns) {
    lateness->buckets[bucket_of(ns, LATENESS_BITS)]++;
    lateness->count++;
    if (ns > lateness->max_ns)
        lateness->max_ns = ns;
}

uint64_t lateness_percentile(const struct lateness *lateness, unsigned percent) {
    return percentile(lateness->buckets, LATENESS_BITS, lateness->count, lateness->max_ns, percent);
}

void delays_add(struct delays *delays, uint64_t ns) {
    delays->buckets[bucket_of(ns, DELAY_BITS)]++;
    delays->count++;
    if (ns > delays->max_ns)
        delays->max_ns = ns;
}

uint64_t delays_percentile(const struct delays *delays, unsigned percent) {
    return percentile(delays->buckets, DELAY_BITS, delays->count, delays->max_ns, percent);
}
