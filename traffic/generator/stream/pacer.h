/* SPDX-License-Identifier: Apache-2.0 */
/* Due times of blocks. They are computed from the start and never from the previous send, so that
 * errors do not add up: a sender that was held up sends the missed blocks at once. With a rate of R
 * bit/s, a block is due at start + 8 * (bytes before it) / R. */
#ifndef WIRETALE_PACER_H
#define WIRETALE_PACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transfer/transfer_plan.h"

struct pacer {
    const struct transfer_plan *plan;
    uint64_t number;     /* of the next block */
    uint64_t start_ns;   /* monotonic */
    double due_ns;       /* of the next block, since the start */
    double ns_per_byte;  /* 0 if the rate is in blocks */
    double ns_per_block; /* 0 if the rate is in bits */
    uint64_t moved_ns;   /* by which pacer_move() has moved the schedule */
    enum pacing pacing;
    uint64_t burst, in_burst; /* blocks; of the current burst */
    double burst_ns;          /* gaps of the blocks in the current burst */
    uint64_t random;          /* state of xorshift64*, never 0 */
};

/* The seed is derived from run and stream, so that a run can be repeated. */
void pacer_begin(struct pacer *pacer, const struct transfer_plan *plan, uint64_t stream,
                 uint64_t start_ns);

/* Advances the due time after a block of `bytes`. */
void pacer_advance(struct pacer *pacer, uint32_t bytes);

/* Returns the mean gap before or after a block of `bytes`. */
static inline double pacer_gap_ns(const struct pacer *pacer, uint32_t bytes) {
    return pacer->ns_per_byte * bytes + pacer->ns_per_block;
}

/* Moves the schedule so that the next block is due at `due_ns`, which must be later than it was. */
void pacer_move(struct pacer *pacer, uint64_t due_ns);

/* Returns the monotonic time at which the next block is due. */
static inline uint64_t pacer_due_ns(const struct pacer *pacer) {
    return pacer->start_ns + (uint64_t)pacer->due_ns;
}

/* Waits until `until_ns` of the monotonic clock: sleeps until shortly before, then reads the clock
 * in a loop, because a sleep ends late. Returns false early if `*stop` becomes true. */
bool pacer_wait(uint64_t until_ns, const atomic_bool *stop);
/* The same, but may end late, and uses no CPU meanwhile. */
bool pacer_sleep(uint64_t until_ns, const atomic_bool *stop);

#endif
