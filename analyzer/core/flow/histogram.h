/* SPDX-License-Identifier: Apache-2.0 */
/* Durations collected one by one, for their least, median, 99th percentile and greatest.
 *
 * Up to SAMPLES_EXACT of them are kept as they are. More go into a log-linear histogram (32 steps
 * an octave, as HdrHistogram's), so that a quantile is within 1.6% and memory does not grow.
 */
#ifndef WIRETALE_SAMPLE_SET_H
#define WIRETALE_SAMPLE_SET_H

#include "base/pool.h"

#define SAMPLES_EXACT 64

struct sample_histogram;

struct sample_set {
    uint64_t count;
    int64_t least, greatest; /* ns; meaningful with count > 0 */
    int64_t *exact;          /* samples not yet in the histogram */
    uint32_t exact_room, pending;
    struct sample_histogram *histogram;
};

/* Negative durations are taken as 0. Without memory the sample counts for least and greatest only.
 */
void sample_set_add(struct sample_set *set, int64_t ns, struct allowance *allowance);

/* The value that a share `per_mille` of the samples does not exceed (nearest rank). `count` > 0.
 * Sorts the exact samples. */
int64_t sample_set_quantile(struct sample_set *set, unsigned per_mille,
                            struct allowance *allowance);
void sample_set_free(struct sample_set *set, struct allowance *allowance);

#endif
