/* SPDX-License-Identifier: Apache-2.0 */
/* Octaves of the histogram are allocated when a sample falls into them: a path's round trips lie
 * within a few. */
#include "flow/histogram.h"

#include <string.h>

#define STEP_BITS 5 /* 32 steps an octave */
#define STEPS     (1u << STEP_BITS)
#define OCTAVES   (64 - STEP_BITS)

struct sample_histogram {
    uint32_t *octaves[OCTAVES]; /* octaves[0] holds the values below STEPS one by one */
    uint64_t counted;
};

static unsigned octave_of(uint64_t value) {
    return value < STEPS ? 0 : 64 - STEP_BITS - (unsigned)__builtin_clzll(value);
}

static unsigned step_of(uint64_t value, unsigned octave) {
    return octave ? (unsigned)(value >> (octave - 1)) & (STEPS - 1) : (unsigned)value;
}

/* The middle of the values that share a step. */
static int64_t middle_of(unsigned octave, unsigned step) {
    if (!octave)
        return step;
    uint64_t low = (uint64_t)(STEPS | step) << (octave - 1);
    return (int64_t)(low + ((UINT64_C(1) << (octave - 1)) >> 1));
}

static void *take_zeroed(struct allowance *allowance, size_t size) {
    void *block = allowance_take(allowance, size);
    return block ? memset(block, 0, size) : NULL;
}

static void count_sample(struct sample_histogram *histogram, int64_t ns,
                         struct allowance *allowance) {
    unsigned octave = octave_of((uint64_t)ns);
    uint32_t **steps = &histogram->octaves[octave];
    if (!*steps)
        *steps = take_zeroed(allowance, STEPS * sizeof **steps);
    if (!*steps)
        return;
    (*steps)[step_of((uint64_t)ns, octave)]++;
    histogram->counted++;
}

/* The samples at hand go into the histogram together: one by one, each would wait for its memory.
 */
static void flush(struct sample_set *set, struct allowance *allowance) {
    if (!set->histogram)
        set->histogram = take_zeroed(allowance, sizeof *set->histogram);
    for (uint32_t i = 0; set->histogram && i < set->pending; i++)
        count_sample(set->histogram, set->exact[i], allowance);
    set->pending = 0;
}

static bool has_room(struct sample_set *set, struct allowance *allowance) {
    return set->pending < set->exact_room ||
           allowance_grow(allowance, (void **)&set->exact, &set->exact_room, sizeof *set->exact, 4,
                          SAMPLES_EXACT);
}

void sample_set_add(struct sample_set *set, int64_t ns, struct allowance *allowance) {
    if (ns < 0)
        ns = 0;
    if (!set->count || ns < set->least)
        set->least = ns;
    if (!set->count || ns > set->greatest)
        set->greatest = ns;
    set->count++;
    if (!has_room(set, allowance))
        flush(set, allowance);
    if (set->pending < set->exact_room)
        set->exact[set->pending++] = ns;
}

/* Few are sorted where they lie, and at once when they are already. */
static void sort_samples(int64_t *samples, size_t count) {
    for (size_t i = 1; i < count; i++) {
        int64_t sample = samples[i];
        size_t place = i;
        for (; place && samples[place - 1] > sample; place--)
            samples[place] = samples[place - 1];
        samples[place] = sample;
    }
}

static uint64_t rank_of(uint64_t count, unsigned per_mille) {
    uint64_t rank = (count * per_mille + 999) / 1000;
    return rank ? rank : 1;
}

static uint64_t counted_in(const uint32_t *steps) {
    uint64_t count = 0;
    for (unsigned step = 0; step < STEPS; step++)
        count += steps[step];
    return count;
}

/* Where the sample of a rank, which is at most counted_in(), lies. */
static unsigned step_of_rank(const uint32_t *steps, uint64_t rank) {
    unsigned step = 0;
    for (; steps[step] < rank; step++)
        rank -= steps[step];
    return step;
}

static int64_t bounded(const struct sample_set *set, int64_t value) {
    if (value < set->least)
        return set->least;
    return value > set->greatest ? set->greatest : value;
}

/* No sample lies in an octave below the least one's. */
static int64_t histogram_quantile(const struct sample_set *set, unsigned per_mille) {
    uint64_t left = rank_of(set->histogram->counted, per_mille);
    for (unsigned octave = octave_of((uint64_t)set->least); octave < OCTAVES; octave++) {
        const uint32_t *steps = set->histogram->octaves[octave];
        uint64_t here = steps ? counted_in(steps) : 0;
        if (here >= left)
            return bounded(set, middle_of(octave, step_of_rank(steps, left)));
        left -= here;
    }
    return set->greatest;
}

int64_t sample_set_quantile(struct sample_set *set, unsigned per_mille,
                            struct allowance *allowance) {
    if (set->histogram)
        flush(set, allowance);
    if (set->histogram && set->histogram->counted)
        return histogram_quantile(set, per_mille);
    if (!set->pending)
        return set->greatest;
    sort_samples(set->exact, set->pending);
    return set->exact[rank_of(set->pending, per_mille) - 1];
}

void sample_set_free(struct sample_set *set, struct allowance *allowance) {
    allowance_release(allowance, set->exact, set->exact_room, sizeof *set->exact);
    for (unsigned octave = 0; set->histogram && octave < OCTAVES; octave++)
        if (set->histogram->octaves[octave])
            allowance_release(allowance, set->histogram->octaves[octave], STEPS, sizeof(uint32_t));
    if (set->histogram)
        allowance_release(allowance, set->histogram, 1, sizeof *set->histogram);
    *set = (struct sample_set){0};
}
