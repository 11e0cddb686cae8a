/* SPDX-License-Identifier: Apache-2.0 */
/* The window against a map of one flag a number, through random arrivals. */
#include "sequence/sequence_window.h"

#include <string.h>

#include "common/check.h"

#define SPAN 60000

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
    struct loss_runs runs = sequence_window_runs(window);
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
    else if (map->highest - at >= (int64_t)SEQUENCE_WINDOW)
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
    sequence_window_clear(&window);
    for (uint64_t frame = 1; at < SPAN; frame++) {
        enum sequence_arrival expected = map_take(&map, at);
        CHECK_INT(sequence_window_take(&window, at - shift, frame), expected);
        if (expected < ARRIVAL_DUPLICATE && map.highest - at < (int64_t)SEQUENCE_FRAMES)
            CHECK_INT(sequence_window_frame(&window, at - shift), frame);
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
    sequence_window_clear(&window);
    sequence_window_take(&window, 1, 1);
    sequence_window_take(&window, 3 * SEQUENCE_WINDOW, 2);
    CHECK_INT(sequence_window_take(&window, 2 * SEQUENCE_WINDOW, 3), ARRIVAL_LATE);
    CHECK_INT(sequence_window_take(&window, 2 * SEQUENCE_WINDOW + 1, 4), ARRIVAL_BEHIND);
}

static void check_far_jump(void) {
    static struct sequence_window window;
    sequence_window_clear(&window);
    sequence_window_take(&window, 5, 1);
    CHECK_INT(sequence_window_take(&window, 5 + ((int64_t)1 << 40), 2), ARRIVAL_AHEAD);
    struct loss_runs runs = sequence_window_runs(&window);
    CHECK_INT(runs.count, 1);
    CHECK_INT(runs.longest, ((int64_t)1 << 40) - 1);
    CHECK_INT(window.unique, 2);
}

static void check_frames(void) {
    static struct sequence_window window;
    sequence_window_clear(&window);
    sequence_window_take(&window, 1, 11);
    sequence_window_take(&window, 4, 12);
    sequence_window_take(&window, 3, 13);
    CHECK_INT(sequence_window_overtaker(&window, 2), 12);
    CHECK_INT(sequence_window_frame(&window, 2), 0);
    CHECK_INT(sequence_window_frame(&window, 1), 11);
    sequence_window_take(&window, 1 + SEQUENCE_FRAMES, 14);
    CHECK_INT(sequence_window_frame(&window, 1), 0); /* its place is taken */
    CHECK_INT(sequence_window_overtaker(&window, 1), 0);
}

int main(void) {
    check_random_arrivals(2, 100);
    check_random_arrivals(40, 9000);
    check_random_arrivals(9000, 9000);
    check_edge();
    check_far_jump();
    check_frames();
    return 0;
}
