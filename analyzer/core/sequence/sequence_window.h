/* SPDX-License-Identifier: Apache-2.0 */
/* Which sequence numbers came, exactly for the newest SEQUENCE_WINDOW below the highest, and as
 * counts for those before. Positions are sequence numbers with their wraps undone. */
#ifndef WIRETALE_SEQUENCE_WINDOW_H
#define WIRETALE_SEQUENCE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW 8192u /* a power of 2 */
#define SEQUENCE_FRAMES 128u  /* a power of 2: as many frame numbers are kept */

/* Missing sequence numbers side by side. */
struct loss_runs {
    uint64_t open; /* length of the one that has not ended */
    uint64_t longest, count;
};

struct sequence_window {
    bool begun;
    int64_t first, highest;
    int64_t settled; /* below this nothing changes any more: it is in `runs` */
    uint64_t unique;
    struct loss_runs runs;
    uint64_t seen[SEQUENCE_WINDOW / 64]; /* bit position % SEQUENCE_WINDOW */
    uint64_t frames[SEQUENCE_FRAMES];    /* of position % SEQUENCE_FRAMES */
};

enum sequence_arrival {
    ARRIVAL_NEXT,
    ARRIVAL_AHEAD,     /* and leaves a gap */
    ARRIVAL_BEHIND,    /* below the next expected: reordered (RFC 4737 section 3.3) */
    ARRIVAL_DUPLICATE, /* it came before */
    ARRIVAL_LATE       /* older than the window: behind or a duplicate, nobody can say */
};

/* Empties the window; what it held is gone. */
void sequence_window_clear(struct sequence_window *window);
enum sequence_arrival sequence_window_take(struct sequence_window *window, int64_t position,
                                           uint64_t frame);

/* All from the lowest that came to the highest. */
uint64_t sequence_window_expected(const struct sequence_window *window);
/* The runs, as they would be if nothing came any more. */
struct loss_runs sequence_window_runs(const struct sequence_window *window);

/* The frame that brought `position`, 0 when it is not known (any more). */
uint64_t sequence_window_frame(const struct sequence_window *window, int64_t position);
/* The first frame that came ahead of `position`, of those that are known; else 0. */
uint64_t sequence_window_overtaker(const struct sequence_window *window, int64_t position);

#endif
