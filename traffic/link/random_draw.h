/* SPDX-License-Identifier: Apache-2.0 */
/* Chance by number, not by turn: a draw is a function of seed, direction, purpose and packet index,
 * so that a packet's fate is the same in every run, whatever the timing and whatever else is
 * switched on. */
#ifndef WIRETALE_LINK_RANDOM_DRAW_H
#define WIRETALE_LINK_RANDOM_DRAW_H

#include <stdint.h>

#include "common/block.h"

enum draw_purpose {
    DRAW_LOSS,
    DRAW_GILBERT_STATE,
    DRAW_GILBERT_LOSS,
    DRAW_SPAN,
    DRAW_RED,
    DRAW_REORDER,
    DRAW_DUPLICATE,
    DRAW_CORRUPT,
    DRAW_JITTER,
    DRAW_JITTER_SECOND,
    DRAW_BIT, /* and those above it: one for each bit */
};

/* SplitMix64's mixing (common/block.h) over a counter: the generator with random access. */
static inline uint64_t random_draw(uint64_t seed, uint32_t purpose, uint64_t index) {
    return block_mix(block_mix(seed + purpose * UINT64_C(0x9e3779b97f4a7c15)) + index);
}

/* In [0, 1), of 53 bits. */
static inline double random_share(uint64_t seed, uint32_t purpose, uint64_t index) {
    return (double)(random_draw(seed, purpose, index) >> 11) * 0x1p-53;
}

#endif
