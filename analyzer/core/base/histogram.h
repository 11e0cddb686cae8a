/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of durations: least, median, 99th percentile and greatest.
 *
 * Up to SAMPLES_EXACT samples are stored as they are, so quantiles are exact. Above that they go
 * into a log-linear histogram with 32 steps per octave (as in HdrHistogram): a quantile is
 * within 1.6%, and memory does not grow with the number of samples. */
#ifndef WIRETALE_HISTOGRAM_H
#define WIRETALE_HISTOGRAM_H

#include "base/pool.h"

#define SAMPLES_EXACT 64 /* below 256 */

struct histogram_steps;

struct histogram {
    uint64_t count : 48;
    uint64_t exact_room : 8, pending : 8;
    int64_t least, greatest; /* ns; valid if count > 0 */
    int64_t *exact;          /* samples not yet in the histogram; NULL if they are the extremes */
    struct histogram_steps *steps;
};

/* Adds a duration in ns; a negative one counts as 0. Without memory the sample counts for least
 * and greatest only. */
void histogram_add(struct histogram *set, int64_t ns, struct pool *pool);

/* Returns the value in ns that a share `per_mille` of the samples does not exceed (nearest
 * rank). `count` must be > 0. Sorts the exact samples. */
int64_t histogram_quantile(struct histogram *set, unsigned per_mille, struct pool *pool);
void histogram_free(struct histogram *set, struct pool *pool);

#endif
