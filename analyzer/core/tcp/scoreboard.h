/* SPDX-License-Identifier: Apache-2.0 */
/* The data above snd_una that the receiver reported by SACK, remembered until it is acknowledged:
 * an ACK has room for three or four blocks, so it repeats only the newest (RFC 2018 section 4). */
#ifndef WIRETALE_SCOREBOARD_H
#define WIRETALE_SCOREBOARD_H

#include "base/pool.h"

#define SCOREBOARD_MOST 512u /* ranges: the lowest is dropped if more are reported */

struct scoreboard {
    struct sacked_range {
        int64_t start, end; /* stream positions, [start, end) */
    } * ranges;             /* ascending, neither overlapping nor touching */
    uint32_t count, room;
};

/* Adds [start, end), which must not be empty. */
void scoreboard_add(struct scoreboard *board, int64_t start, int64_t end, struct pool *pool);

/* Returns whether all of [start, end) was reported. */
bool scoreboard_covers(const struct scoreboard *board, int64_t start, int64_t end);

/* Moves *start to the first byte of [*start, end) that was not reported, and *until to the next one
 * that was, or to `end`. Returns false if all was reported. */
bool scoreboard_open_part(const struct scoreboard *board, int64_t *start, int64_t end,
                          int64_t *until);

/* Removes what is below `position`. */
void scoreboard_acknowledge(struct scoreboard *board, int64_t position);

/* Frees the ranges; the scoreboard is empty afterwards. */
void scoreboard_free(struct scoreboard *board, struct pool *pool);

#endif
