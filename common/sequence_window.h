/* SPDX-License-Identifier: Apache-2.0 */
/* A window over the sequence numbers of one sender (RFC 4737, section 3.3): of each of the newest
 * `size` numbers it holds whether it arrived, older ones are only counted. Memory is constant, so
 * that neither a long test nor a forged number can exhaust it. The bitmap is the caller's: it may
 * be next to the window in a struct, and both may move. Positions are sequence numbers without
 * wraps. */
#ifndef WIRETALE_COMMON_SEQUENCE_WINDOW_H
#define WIRETALE_COMMON_SEQUENCE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW_WORDS(size) ((size) / 64)

/* Runs of missing numbers side by side. */
struct loss_runs {
    uint64_t open; /* numbers of the run that has not ended */
    uint64_t longest, count;
};

struct sequence_window {
    uint32_t size; /* bits of the map, a power of 2 */
    bool begun;
    int64_t first, highest; /* lowest and highest position that arrived */
    int64_t settled;        /* positions below are out of the window, and in `runs` */
    uint64_t unique;        /* positions that arrived */
    struct loss_runs runs;
};

enum sequence_arrival {
    ARRIVAL_NEXT,
    ARRIVAL_AHEAD,     /* leaves a gap */
    ARRIVAL_BEHIND,    /* below the highest: reordered */
    ARRIVAL_DUPLICATE, /* arrived before */
    ARRIVAL_LATE,      /* older than the window: reordered or duplicate cannot be determined */
};

/* Empties the window and its map of SEQUENCE_WINDOW_WORDS(size) words. */
void sequence_window_clear(struct sequence_window *window, uint64_t *map, uint32_t size);

/* Fixes the first position, which otherwise is the lowest that arrives. After
 * sequence_window_clear(). */
void sequence_window_expect(struct sequence_window *window, int64_t first);

/* Marks `position` as arrived, unless it is late. */
enum sequence_arrival sequence_window_take(struct sequence_window *window, uint64_t *map,
                                           int64_t position);

/* Returns whether `position` arrived; false if it is not in the window. */
bool sequence_window_has(const struct sequence_window *window, const uint64_t *map,
                         int64_t position);

/* Returns the number of positions from the first to the highest. */
uint64_t sequence_window_expected(const struct sequence_window *window);

/* Returns the runs if nothing arrives any more. */
struct loss_runs sequence_window_runs(const struct sequence_window *window, const uint64_t *map);

#endif
