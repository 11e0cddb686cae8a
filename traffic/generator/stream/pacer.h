/* SPDX-License-Identifier: Apache-2.0 */
/* When the next block is due. Times are absolute, so that nothing drifts: a sender that was held
 * up catches up. */
#ifndef WIRETALE_PACER_H
#define WIRETALE_PACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transfer/transfer_plan.h"

struct pacer {
    uint64_t start_ns;  /* monotonic */
    double due_ns;      /* of the next block, since the start */
    double ns_per_byte; /* one of the two is 0 */
    double ns_per_block;
    enum pacing pacing;
    uint64_t burst, in_burst;
    double burst_ns; /* of the blocks of this burst */
    uint64_t random;
};

void pacer_begin(struct pacer *pacer, const struct transfer_plan *plan, uint64_t stream,
                 uint64_t start_ns);

/* A block of so many bytes takes the time that is due: from it follows when the next one is. */
void pacer_advance(struct pacer *pacer, uint32_t bytes);

static inline uint64_t pacer_due_ns(const struct pacer *pacer) {
    return pacer->start_ns + (uint64_t)pacer->due_ns;
}

/* Sleeps until shortly before, then looks at the clock. Ends early, with false, when `*stop`. */
bool pacer_wait(uint64_t until_ns, const atomic_bool *stop);

/* So that this thread's sleeps end when they should. */
void pacer_wake_exactly(void);

#endif
