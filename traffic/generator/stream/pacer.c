/* SPDX-License-Identifier: Apache-2.0 */
/* Pacing. Gaps are constant, exponential (a Poisson process), or zero within a burst that is
 * followed by the sum of its gaps: all have the same mean.
 *
 * Due times are doubles, in ns since the start: they resolve 1 ns up to 2^53 ns, which is 104 days.
 * The sleep ends SPIN_NS early and a loop covers the rest, at the cost of a CPU. */
#include "stream/pacer.h"

#include <math.h>

#include "common/block.h"
#include "common/clock.h"

#define SPIN_NS  40000u           /* by which a sleep may end late */
#define PIECE_NS (50 * NS_PER_MS) /* longest sleep before `stop` is read again */

/* The state of xorshift must not be 0, hence the lowest bit. */
void pacer_begin(struct pacer *pacer, const struct transfer_plan *plan, uint64_t stream,
                 uint64_t start_ns) {
    *pacer = (struct pacer){
        .start_ns = start_ns,
        .ns_per_byte = plan->rate_bps > 0 ? 8e9 / plan->rate_bps : 0,
        .ns_per_block = plan->rate_pps > 0 ? 1e9 / plan->rate_pps : 0,
        .pacing = (enum pacing)plan->pacing,
        .burst = plan->burst,
        .random = block_mix(plan->run << 16 | stream) | 1,
    };
}

/* Returns a number in (0, 1], so that its logarithm exists: xorshift64*, S. Vigna, "An experimental
 * exploration of Marsaglia's xorshift generators". */
static double random_part(struct pacer *pacer) {
    pacer->random ^= pacer->random >> 12;
    pacer->random ^= pacer->random << 25;
    pacer->random ^= pacer->random >> 27;
    return (double)((pacer->random * UINT64_C(2685821657736338717) >> 11) + 1) * 0x1p-53;
}

/* An exponential gap is -ln(U) times the mean, with U uniform in (0, 1]. Within a burst the due
 * time stays, so all of its blocks are due at once. */
void pacer_advance(struct pacer *pacer, uint32_t bytes) {
    double gap = pacer->ns_per_byte * bytes + pacer->ns_per_block;
    if (pacer->pacing == PACING_POISSON) {
        pacer->due_ns -= log(random_part(pacer)) * gap;
    } else if (pacer->pacing == PACING_BURST) {
        pacer->burst_ns += gap;
        if (++pacer->in_burst < pacer->burst)
            return;
        pacer->due_ns += pacer->burst_ns;
        pacer->burst_ns = 0;
        pacer->in_burst = 0;
    } else {
        pacer->due_ns += gap;
    }
}

/* Long sleeps are divided into pieces of PIECE_NS, because a stop must be noticed. */
bool pacer_wait(uint64_t until_ns, const atomic_bool *stop) {
    for (;;) {
        uint64_t now = monotonic_ns();
        if (now >= until_ns)
            return true;
        if (*stop)
            return false;
        if (until_ns - now <= SPIN_NS)
            continue;
        uint64_t sleep = until_ns - now - SPIN_NS;
        struct timespec wake = to_timespec(now + (sleep < PIECE_NS ? sleep : PIECE_NS));
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, 0);
    }
}
