/* SPDX-License-Identifier: Apache-2.0 */
#include "sequence/sequence_window.h"

#include <string.h>

static bool is_seen(const struct sequence_window *window, int64_t position) {
    uint64_t bit = (uint64_t)position % SEQUENCE_WINDOW;
    return window->seen[bit / 64] >> bit % 64 & 1;
}

static void mark(struct sequence_window *window, int64_t position, uint64_t frame) {
    uint64_t bit = (uint64_t)position % SEQUENCE_WINDOW;
    window->seen[bit / 64] |= (uint64_t)1 << bit % 64;
    window->unique++;
    if (window->highest - position < SEQUENCE_FRAMES)
        window->frames[(uint64_t)position % SEQUENCE_FRAMES] = frame;
}

void sequence_window_clear(struct sequence_window *window) {
    window->begun = false;
    window->unique = 0;
    window->runs = (struct loss_runs){0};
    memset(window->seen, 0, sizeof window->seen);
}

static void add_missing(struct loss_runs *runs, uint64_t count) {
    runs->count += !runs->open && count;
    runs->open += count;
    if (runs->open > runs->longest)
        runs->longest = runs->open;
}

/* The positions from `start` to `end`, at most a window, in words of the map. */
static void count_runs(const struct sequence_window *window, struct loss_runs *runs, int64_t start,
                       int64_t end) {
    while (start < end) {
        uint64_t bit = (uint64_t)start % SEQUENCE_WINDOW;
        uint64_t span = 64 - bit % 64;
        if (span > (uint64_t)(end - start))
            span = (uint64_t)(end - start);
        uint64_t word = window->seen[bit / 64] >> bit % 64;
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

static void forget(struct sequence_window *window, int64_t start, int64_t end) {
    while (start < end) {
        uint64_t bit = (uint64_t)start % SEQUENCE_WINDOW;
        uint64_t span = 64 - bit % 64;
        if (span > (uint64_t)(end - start))
            span = (uint64_t)(end - start);
        window->seen[bit / 64] &=
            ~((span < 64 ? ((uint64_t)1 << span) - 1 : ~(uint64_t)0) << bit % 64);
        start += (int64_t)span;
    }
}

/* Moves the window up, so that its highest is `position`. */
static void advance(struct sequence_window *window, int64_t position) {
    int64_t end = position - (int64_t)SEQUENCE_WINDOW + 1; /* below this it can't be changed */
    int64_t known = end < window->highest + 1 ? end : window->highest + 1;
    if (window->settled < known) {
        count_runs(window, &window->runs, window->settled, known);
        forget(window, window->settled, known);
        window->settled = known;
    }
    if (window->settled < end) {
        add_missing(&window->runs, (uint64_t)(end - window->settled));
        window->settled = end;
    }
    window->highest = position;
}

enum sequence_arrival sequence_window_take(struct sequence_window *window, int64_t position,
                                           uint64_t frame) {
    if (!window->begun) {
        window->begun = true;
        window->first = window->highest = window->settled = position;
        mark(window, position, frame);
        return ARRIVAL_NEXT;
    }
    int64_t step = position - window->highest;
    if (step > 0) {
        advance(window, position);
        mark(window, position, frame);
        return step == 1 ? ARRIVAL_NEXT : ARRIVAL_AHEAD;
    }
    if (-step >= SEQUENCE_WINDOW)
        return ARRIVAL_LATE;
    if (is_seen(window, position))
        return ARRIVAL_DUPLICATE;
    if (position < window->first) /* nothing has left the window yet: it would be too late */
        window->first = window->settled = position;
    mark(window, position, frame);
    return ARRIVAL_BEHIND;
}

uint64_t sequence_window_expected(const struct sequence_window *window) {
    return window->begun ? (uint64_t)(window->highest - window->first) + 1 : 0;
}

struct loss_runs sequence_window_runs(const struct sequence_window *window) {
    struct loss_runs runs = window->runs;
    if (window->begun)
        count_runs(window, &runs, window->settled, window->highest + 1);
    return runs;
}

uint64_t sequence_window_frame(const struct sequence_window *window, int64_t position) {
    bool kept = window->begun && position <= window->highest && position >= window->first &&
                window->highest - position < SEQUENCE_FRAMES;
    return kept && is_seen(window, position) ? window->frames[(uint64_t)position % SEQUENCE_FRAMES]
                                             : 0;
}

uint64_t sequence_window_overtaker(const struct sequence_window *window, int64_t position) {
    uint64_t least = 0;
    if (window->highest - position >= SEQUENCE_FRAMES)
        return 0;
    for (int64_t above = position + 1; above <= window->highest; above++) {
        uint64_t frame = sequence_window_frame(window, above);
        if (frame && (!least || frame < least))
            least = frame;
    }
    return least;
}
