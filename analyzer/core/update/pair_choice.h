/* SPDX-License-Identifier: Apache-2.0 */
/* The packets that a second pass must process, if it is for the packets of a few flows.
 *
 * Flows of two pairs of addresses never influence each other (flow/shard.h), and the clock comes
 * from the reader, which sees all packets. So only packets of pairs that have a wanted flow are
 * processed, and their flows begin in the order of the first pass, whose numbers they get. That
 * holds only if the first pass was never near a limit that all flows share. */
#ifndef WIRETALE_PAIR_CHOICE_H
#define WIRETALE_PAIR_CHOICE_H

#include "flow/shard.h"
#include "table/table.h"

#define PAIRS (1u << 20) /* buckets; a pair that shares one with a wanted pair is processed too */

struct pair_choice {
    struct shard_key key;
    uint32_t *flows; /* numbers of all flows of the chosen pairs, ascending */
    size_t count, begun;
    uint8_t pairs[PAIRS / 8];
};

/* `flows` is the table of the first reading, and `wanted` has a bit for each flow number below
 * `bits`. Returns NULL without memory. */
struct pair_choice *pair_choice_open(const struct table *flows, const uint8_t *wanted,
                                     uint32_t bits);
void pair_choice_close(struct pair_choice *choice);

/* `pair` is the result of shard_of() or shard_of_quoted() with PAIRS. */
static inline bool pair_choice_has(const struct pair_choice *choice, uint32_t pair) {
    return pair != SHARD_NONE && choice->pairs[pair / 8] >> pair % 8 & 1;
}

/* Returns the number of the flow that begins next; `least` if the files have more flows than at the
 * first reading. */
static inline uint32_t pair_choice_number(struct pair_choice *choice, uint32_t least) {
    return choice->begun < choice->count ? choice->flows[choice->begun++] : least;
}

#endif
