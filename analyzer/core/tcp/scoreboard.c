/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp/scoreboard.h"

#include <string.h>

#define ROOM_AT_FIRST 4u

/* Returns the index of the first range that ends at `position` or above, `count` if there is none.
 */
static uint32_t first_reaching(const struct scoreboard *board, int64_t position) {
    uint32_t low = 0, high = board->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (board->ranges[middle].end < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_ranges(struct scoreboard *board, uint32_t from, uint32_t count) {
    if (!count)
        return;
    struct sacked_range *ranges = board->ranges + from;
    memmove(ranges, ranges + count, (board->count - from - count) * sizeof *ranges);
    board->count -= count;
}

/* Returns false if there is no room: without memory, or below all ranges of a full scoreboard. */
static bool make_room(struct scoreboard *board, uint32_t *at, struct pool *pool) {
    if (board->count < board->room ||
        pool_grow(pool, (void **)&board->ranges, &board->room, sizeof *board->ranges, ROOM_AT_FIRST,
                  SCOREBOARD_MOST))
        return true;
    if (!*at)
        return false;
    remove_ranges(board, 0, 1);
    --*at;
    return true;
}

void scoreboard_add(struct scoreboard *board, int64_t start, int64_t end, struct pool *pool) {
    uint32_t at = first_reaching(board, start), after = at;
    while (after < board->count && board->ranges[after].start <= end)
        after++;
    if (after > at) { /* it touches these: they become one */
        struct sacked_range *range = &board->ranges[at];
        if (start < range->start)
            range->start = start;
        if (board->ranges[after - 1].end > end)
            end = board->ranges[after - 1].end;
        range->end = end;
        remove_ranges(board, at + 1, after - at - 1);
        return;
    }
    if (!make_room(board, &at, pool))
        return;
    memmove(board->ranges + at + 1, board->ranges + at,
            (board->count - at) * sizeof *board->ranges);
    board->ranges[at] = (struct sacked_range){start, end};
    board->count++;
}

bool scoreboard_covers(const struct scoreboard *board, int64_t start, int64_t end) {
    uint32_t at = first_reaching(board, end);
    return at < board->count && board->ranges[at].start <= start;
}

bool scoreboard_open_part(const struct scoreboard *board, int64_t *start, int64_t end,
                          int64_t *until) {
    uint32_t at = first_reaching(board, *start + 1);
    if (at < board->count && board->ranges[at].start <= *start)
        *start = board->ranges[at++].end;
    *until = at < board->count && board->ranges[at].start < end ? board->ranges[at].start : end;
    return *start < end;
}

void scoreboard_acknowledge(struct scoreboard *board, int64_t position) {
    remove_ranges(board, 0, first_reaching(board, position + 1));
    if (board->count && board->ranges[0].start < position)
        board->ranges[0].start = position;
}

void scoreboard_free(struct scoreboard *board, struct pool *pool) {
    pool_release(pool, board->ranges, board->room, sizeof *board->ranges);
    *board = (struct scoreboard){0};
}
