/* SPDX-License-Identifier: Apache-2.0 */
/* The window against an array with a flag for each number, through random arrivals. */
#include "common/sequence_window.h"

#include <string.h>

#include "common/test/check.h"

#define SPAN        60000
#define SMALL       8192u
#define LARGE       (1u << 20)
#define ORDER_COUNT 50000u

static uint64_t bits[SEQUENCE_WINDOW_WORDS(LARGE)];

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

static struct loss_runs runs_in(const uint8_t *seen, int64_t first, int64_t highest) {
    struct loss_runs runs = {0};
    for (int64_t i = first; i <= highest; i++) {
        runs.open = seen[i] ? 0 : runs.open + 1;
        runs.count += runs.open == 1;
        runs.longest = runs.open > runs.longest ? runs.open : runs.longest;
    }
    return runs;
}

static void check_same(const struct sequence_window *window, const uint8_t *seen, int64_t first,
                       int64_t highest) {
    uint64_t unique = 0;
    for (int64_t i = first; i <= highest; i++)
        unique += seen[i];
    struct loss_runs expected = runs_in(seen, first, highest);
    struct loss_runs runs = sequence_window_runs(window, bits);
    CHECK_INT(window->unique, unique);
    CHECK_INT(sequence_window_expected(window), highest - first + 1);
    CHECK_INT(runs.count, expected.count);
    CHECK_INT(runs.longest, expected.longest);
}

/* Every number that came, and what that makes of the next. */
struct map {
    uint8_t seen[SPAN];
    int64_t first, highest;
    bool begun;
};

static enum sequence_arrival map_take(struct map *map, int64_t at) {
    enum sequence_arrival arrival = ARRIVAL_BEHIND;
    if (!map->begun || at == map->highest + 1)
        arrival = ARRIVAL_NEXT;
    else if (at > map->highest)
        arrival = ARRIVAL_AHEAD;
    else if (map->highest - at >= (int64_t)SMALL)
        return ARRIVAL_LATE;
    else if (map->seen[at])
        return ARRIVAL_DUPLICATE;
    map->first = !map->begun || at < map->first ? at : map->first;
    map->highest = !map->begun || at > map->highest ? at : map->highest;
    map->begun = true;
    map->seen[at] = 1;
    return arrival;
}

/* Positions begin below zero, as they can after a wrap. `ahead` and `behind` bound the steps. */
static void check_random_arrivals(uint32_t ahead, uint32_t behind) {
    static struct sequence_window window;
    static struct map map;
    int64_t shift = SPAN / 2, at = 9000;
    memset(&map, 0, sizeof map);
    sequence_window_clear(&window, bits, SMALL);
    for (uint64_t frame = 1; at < SPAN; frame++) {
        enum sequence_arrival expected = map_take(&map, at);
        CHECK_INT(sequence_window_take(&window, bits, at - shift), expected);
        CHECK(sequence_window_has(&window, bits, at - shift) == (expected != ARRIVAL_LATE));
        if (frame % 64 == 0)
            check_same(&window, map.seen, map.first, map.highest);
        if (random_below(3))
            at = map.highest + 1 + random_below(ahead);
        else
            at = map.highest - random_below(map.highest > 20000 ? behind : 200);
    }
    check_same(&window, map.seen, map.first, map.highest);
}

static void check_edge(void) {
    static struct sequence_window window;
    sequence_window_clear(&window, bits, SMALL);
    sequence_window_take(&window, bits, 1);
    sequence_window_take(&window, bits, 3 * SMALL);
    CHECK_INT(sequence_window_take(&window, bits, 2 * SMALL), ARRIVAL_LATE);
    CHECK_INT(sequence_window_take(&window, bits, 2 * SMALL + 1), ARRIVAL_BEHIND);
}

static void check_far_jump(void) {
    static struct sequence_window window;
    sequence_window_clear(&window, bits, SMALL);
    sequence_window_take(&window, bits, 5);
    CHECK_INT(sequence_window_take(&window, bits, 5 + ((int64_t)1 << 40)), ARRIVAL_AHEAD);
    struct loss_runs runs = sequence_window_runs(&window, bits);
    CHECK_INT(runs.count, 1);
    CHECK_INT(runs.longest, ((int64_t)1 << 40) - 1);
    CHECK_INT(window.unique, 2);
}

/* As a receiver counts, whose numbers begin with 0. */
static void check_expected_from_zero(void) {
    static struct sequence_window window;
    sequence_window_clear(&window, bits, LARGE);
    sequence_window_expect(&window, 0);
    CHECK_INT(sequence_window_expected(&window), 0);
    CHECK_INT(sequence_window_take(&window, bits, 3), ARRIVAL_AHEAD);
    CHECK_INT(sequence_window_take(&window, bits, 1), ARRIVAL_BEHIND);
    CHECK_INT(sequence_window_take(&window, bits, 1), ARRIVAL_DUPLICATE);
    CHECK_INT(sequence_window_take(&window, bits, 3), ARRIVAL_DUPLICATE);
    CHECK_INT(sequence_window_expected(&window), 4);
    CHECK_INT(window.unique, 2);
    CHECK_INT(sequence_window_runs(&window, bits).count, 2);
}

static void check_large_window(void) {
    static struct sequence_window window;
    sequence_window_clear(&window, bits, LARGE);
    sequence_window_expect(&window, 0);
    for (int64_t i = 0; i < 100; i++)
        CHECK_INT(sequence_window_take(&window, bits, i), ARRIVAL_NEXT);
    CHECK_INT(sequence_window_take(&window, bits, LARGE + 49), ARRIVAL_AHEAD);
    CHECK_INT(sequence_window_take(&window, bits, 49), ARRIVAL_LATE);
    CHECK_INT(sequence_window_take(&window, bits, 50), ARRIVAL_DUPLICATE);
    CHECK_INT(sequence_window_take(&window, bits, 100), ARRIVAL_BEHIND);
    CHECK_INT(sequence_window_take(&window, bits, (int64_t)1 << 40), ARRIVAL_AHEAD);
    for (int64_t i = 1; i < (int64_t)LARGE; i += 4097) /* no bit is left of before */
        CHECK_INT(sequence_window_take(&window, bits, ((int64_t)1 << 40) - i), ARRIVAL_BEHIND);
}

/* Each number of any order within the window counts once. */
static void check_shuffled(void) {
    static struct sequence_window window;
    static uint8_t seen[ORDER_COUNT];
    int64_t highest = -1;
    uint64_t unique = 0;
    sequence_window_clear(&window, bits, LARGE);
    sequence_window_expect(&window, 0);
    for (unsigned i = 0; i < 4 * ORDER_COUNT; i++) {
        int64_t number = random_below(ORDER_COUNT);
        CHECK_INT(sequence_window_take(&window, bits, number), seen[number] ? ARRIVAL_DUPLICATE
                                                               : number < highest ? ARRIVAL_BEHIND
                                                               : number == highest + 1
                                                                   ? ARRIVAL_NEXT
                                                                   : ARRIVAL_AHEAD);
        unique += !seen[number];
        seen[number] = 1;
        highest = number > highest ? number : highest;
    }
    CHECK_INT(window.unique, unique);
}

int main(void) {
    check_random_arrivals(2, 100);
    check_random_arrivals(40, 9000);
    check_random_arrivals(9000, 9000);
    check_edge();
    check_far_jump();
    check_expected_from_zero();
    check_large_window();
    check_shuffled();
    return 0;
}
