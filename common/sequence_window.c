/* SPDX-License-Identifier: Apache-2.0 */
/* The map is a ring: position p has bit p mod size. As the highest position advances, the ones that
 * fall out of the window are settled: their losses are added to `runs`, and their bits are cleared
 * for the positions that reuse them. Both go by words of 64 bits. */
#include "common/sequence_window.h"

#include <string.h>

void sequence_window_clear(struct sequence_window *window, uint64_t *map, uint32_t size) {
    *window = (struct sequence_window){.size = size};
    memset(map, 0, SEQUENCE_WINDOW_WORDS(size) * sizeof *map);
}

void sequence_window_expect(struct sequence_window *window, int64_t first) {
    window->begun = true;
    window->first = window->settled = first;
    window->highest = first - 1;
}

/* The size is a power of 2, so that a mask replaces a division, which would cost more than all
 * else. */
static uint64_t bit_of(const struct sequence_window *window, int64_t position) {
    return (uint64_t)position & (window->size - 1);
}

static void mark(struct sequence_window *window, uint64_t *map, int64_t position) {
    uint64_t bit = bit_of(window, position);
    map[bit / 64] |= (uint64_t)1 << bit % 64;
    window->unique++;
}

bool sequence_window_has(const struct sequence_window *window, const uint64_t *map,
                         int64_t position) {
    uint64_t bit = bit_of(window, position);
    bool is_within = window->begun && position >= window->first && position <= window->highest &&
                     window->highest - position < window->size;
    return is_within && map[bit / 64] >> bit % 64 & 1;
}

/* Extends the open run by `count` missing positions. */
static void add_missing(struct loss_runs *runs, uint64_t count) {
    runs->count += !runs->open && count;
    runs->open += count;
    if (runs->open > runs->longest)
        runs->longest = runs->open;
}

/* Returns how many positions from `start` to `end` share a word of the map. */
static uint64_t span_of(uint64_t bit, int64_t start, int64_t end) {
    uint64_t span = 64 - bit % 64;
    return span > (uint64_t)(end - start) ? (uint64_t)(end - start) : span;
}

/* Adds the missing ones of the positions from `start` to `end`, at most a window. */
static void count_runs(const struct sequence_window *window, const uint64_t *map,
                       struct loss_runs *runs, int64_t start, int64_t end) {
    while (start < end) {
        uint64_t bit = bit_of(window, start), span = span_of(bit, start, end);
        uint64_t word = map[bit / 64] >> bit % 64;
        uint64_t missing = word ? (uint64_t)__builtin_ctzll(word) : 64;
        if (missing > span)
            missing = span;
        add_missing(runs, missing);
        if (missing < span) {
            uint64_t rest = ~(word >> missing);
            uint64_t present = rest ? (uint64_t)__builtin_ctzll(rest) : 64;
            runs->open = 0;
            span = missing + present < span ? missing + present : span;
        }
        start += (int64_t)span;
    }
}

static void forget(const struct sequence_window *window, uint64_t *map, int64_t start,
                   int64_t end) {
    while (start < end) {
        uint64_t bit = bit_of(window, start), span = span_of(bit, start, end);
        map[bit / 64] &= ~((span < 64 ? ((uint64_t)1 << span) - 1 : ~(uint64_t)0) << bit % 64);
        start += (int64_t)span;
    }
}

/* Makes `position` the highest. */
static void advance(struct sequence_window *window, uint64_t *map, int64_t position) {
    int64_t end = position - (int64_t)window->size + 1; /* the lowest in the window */
    int64_t known = end < window->highest + 1 ? end : window->highest + 1;
    if (window->settled < known) {
        count_runs(window, map, &window->runs, window->settled, known);
        forget(window, map, window->settled, known);
        window->settled = known;
    }
    if (window->settled < end) { /* a jump over positions that have no bits */
        add_missing(&window->runs, (uint64_t)(end - window->settled));
        window->settled = end;
    }
    window->highest = position;
}

/* A position below the first moves `first` down, as a reordered packet may be the first of a
 * capture. */
enum sequence_arrival sequence_window_take(struct sequence_window *window, uint64_t *map,
                                           int64_t position) {
    if (!window->begun)
        sequence_window_expect(window, position);
    int64_t step = position - window->highest;
    if (step > 0) {
        advance(window, map, position);
        mark(window, map, position);
        return step == 1 ? ARRIVAL_NEXT : ARRIVAL_AHEAD;
    }
    if (-step >= window->size)
        return ARRIVAL_LATE;
    if (sequence_window_has(window, map, position))
        return ARRIVAL_DUPLICATE;
    if (position < window->first) /* no position has left the window, or this one were late */
        window->first = window->settled = position;
    mark(window, map, position);
    return ARRIVAL_BEHIND;
}

uint64_t sequence_window_expected(const struct sequence_window *window) {
    return window->begun ? (uint64_t)(window->highest - window->first) + 1 : 0;
}

struct loss_runs sequence_window_runs(const struct sequence_window *window, const uint64_t *map) {
    struct loss_runs runs = window->runs;
    if (window->begun)
        count_runs(window, map, &runs, window->settled, window->highest + 1);
    return runs;
}
