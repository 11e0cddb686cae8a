/* SPDX-License-Identifier: Apache-2.0 */
/* A log-linear histogram. Octave 0 holds the values below 32 one by one; octave o > 0 holds those
 * whose highest bit is number 4 + o, in 32 steps by the 5 bits below it. The middle of a step is
 * within 1/64 of any value in it. Octaves are allocated when the first sample falls into them,
 * because the RTTs of a path are within a few octaves. */
#include "base/histogram.h"

#include <string.h>

#define STEP_BITS 5 /* 32 steps an octave */
#define STEPS     (1u << STEP_BITS)
#define OCTAVES   (64 - STEP_BITS)

struct histogram_steps {
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

/* Without memory for its octave a sample is left out of the quantiles, because `counted` is the
 * number of those that the steps hold. */
static void count_sample(struct histogram_steps *histogram, int64_t ns, struct pool *pool) {
    unsigned octave = octave_of((uint64_t)ns);
    uint32_t **steps = &histogram->octaves[octave];
    if (!*steps)
        *steps = pool_zeroed(pool, STEPS * sizeof **steps);
    if (!*steps)
        return;
    (*steps)[step_of((uint64_t)ns, octave)]++;
    histogram->counted++;
}

/* Adds the pending samples together, so that their cache misses overlap. */
static void flush(struct histogram *set, struct pool *pool) {
    if (!set->steps)
        set->steps = pool_zeroed(pool, sizeof *set->steps);
    for (uint32_t i = 0; set->steps && i < set->pending; i++)
        count_sample(set->steps, set->exact[i], pool);
    set->pending = 0;
}

/* Returns whether a sample can be stored exactly. Past SAMPLES_EXACT, or without memory, the stored
 * ones must go into the steps first. */
static bool has_room(struct histogram *set, struct pool *pool) {
    uint32_t room = set->exact_room;
    if (set->pending == room &&
        !pool_grow(pool, (void **)&set->exact, &room, sizeof *set->exact, 4, SAMPLES_EXACT))
        return false;
    set->exact_room = (uint8_t)room;
    return true;
}

/* The first two samples are the extremes, so memory is allocated for the third. */
void histogram_add(struct histogram *set, int64_t ns, struct pool *pool) {
    int64_t least = set->least, greatest = set->greatest;
    if (ns < 0)
        ns = 0;
    if (!set->count || ns < set->least)
        set->least = ns;
    if (!set->count || ns > set->greatest)
        set->greatest = ns;
    if (++set->count <= 2)
        return;
    if (!has_room(set, pool))
        flush(set, pool);
    if (set->count == 3 && set->exact_room) {
        set->exact[0] = least;
        set->exact[1] = greatest;
        set->pending = 2;
    }
    if (set->pending < set->exact_room)
        set->exact[set->pending++] = ns;
}

/* Samples are few here, and often already in order. */
static void sort_samples(int64_t *samples, size_t count) {
    for (size_t i = 1; i < count; i++) {
        int64_t sample = samples[i];
        size_t place = i;
        for (; place && samples[place - 1] > sample; place--)
            samples[place] = samples[place - 1];
        samples[place] = sample;
    }
}

/* The nearest rank, from 1: the least sample that `per_mille` of the samples do not exceed. */
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

/* Returns the index of the sample of a rank, which must not exceed counted_in(). */
static unsigned step_of_rank(const uint32_t *steps, uint64_t rank) {
    unsigned step = 0;
    for (; steps[step] < rank; step++)
        rank -= steps[step];
    return step;
}

static int64_t bounded(const struct histogram *set, int64_t value) {
    if (value < set->least)
        return set->least;
    return value > set->greatest ? set->greatest : value;
}

/* Finds the step that holds the rank. Octaves below that of the least sample are empty. The result
 * is bounded by the extremes, which are exact. */
static int64_t steps_quantile(const struct histogram *set, unsigned per_mille) {
    uint64_t left = rank_of(set->steps->counted, per_mille);
    for (unsigned octave = octave_of((uint64_t)set->least); octave < OCTAVES; octave++) {
        const uint32_t *steps = set->steps->octaves[octave];
        uint64_t here = steps ? counted_in(steps) : 0;
        if (here >= left)
            return bounded(set, middle_of(octave, step_of_rank(steps, left)));
        left -= here;
    }
    return set->greatest;
}

int64_t histogram_quantile(struct histogram *set, unsigned per_mille, struct pool *pool) {
    if (set->count <= 2)
        return rank_of(set->count, per_mille) == 1 ? set->least : set->greatest;
    if (set->steps)
        flush(set, pool);
    if (set->steps && set->steps->counted)
        return steps_quantile(set, per_mille);
    if (!set->pending)
        return set->greatest;
    sort_samples(set->exact, set->pending);
    return set->exact[rank_of(set->pending, per_mille) - 1];
}

void histogram_free(struct histogram *set, struct pool *pool) {
    pool_release(pool, set->exact, set->exact_room, sizeof *set->exact);
    for (unsigned octave = 0; set->steps && octave < OCTAVES; octave++)
        if (set->steps->octaves[octave])
            pool_release(pool, set->steps->octaves[octave], STEPS, sizeof(uint32_t));
    if (set->steps)
        pool_release(pool, set->steps, 1, sizeof *set->steps);
    *set = (struct histogram){0};
}
