/* SPDX-License-Identifier: Apache-2.0 */
/* Pacing. Gaps are constant, exponential (a Poisson process), or zero within a burst that is
 * followed by the sum of its gaps: all have the same mean. Gaps of a pattern are those of its
 * lines.
 *
 * Due times are doubles, in ns since the start: they resolve 1 ns up to 2^53 ns, which is 104 days.
 * A sleep ends early, by as much as the sleeps of its thread have ended late, and a loop covers the
 * rest at the cost of a CPU. */
#include "stream/pacer.h"

#include <math.h>

#include "common/block.h"
#include "common/clock.h"

#define SPIN_LEAST_NS 10000u /* by which a sleep ends early */
#define SPIN_MOST_NS  80000u
#define SPIN_USUAL_NS 40000u  /* of longer waits it is at most 7/8 */
#define SPIN_DECAY    1024u   /* sleeps after which a late one is forgotten by two thirds */
#define SHORT_NS      200000u /* waits that are mostly a loop anyway */
#define SLEEP_PART    12u     /* of the time that a thread of short waits must sleep */
#define DEBT_MOST_NS  NS_PER_MS
#define PIECE_NS      (50 * NS_PER_MS) /* longest sleep before `stop` is read again */

static _Thread_local uint64_t spin_ns = SPIN_MOST_NS;
static _Thread_local uint64_t debt_ns, seen_ns; /* sleep that is due, and when it was computed */

/* The state of xorshift must not be 0, hence the lowest bit. */
void pacer_begin(struct pacer *pacer, const struct transfer_plan *plan, uint64_t stream,
                 uint64_t start_ns) {
    *pacer = (struct pacer){
        .plan = plan,
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
    double gap = pacer_gap_ns(pacer, bytes);
    pacer->number++;
    if (pacer->pacing == PACING_POISSON) {
        pacer->due_ns -= log(random_part(pacer)) * gap;
    } else if (pacer->pacing == PACING_BURST) {
        pacer->burst_ns += gap;
        if (++pacer->in_burst < pacer->burst)
            return;
        pacer->due_ns += pacer->burst_ns;
        pacer->burst_ns = 0;
        pacer->in_burst = 0;
    } else if (pacer->pacing == PACING_PATTERN) {
        pacer->due_ns += (double)transfer_plan_line(pacer->plan, pacer->number - 1)->gap_ns;
    } else {
        pacer->due_ns += gap;
    }
}

void pacer_move(struct pacer *pacer, uint64_t due_ns) {
    uint64_t by_ns = due_ns - pacer_due_ns(pacer);
    pacer->start_ns += by_ns;
    pacer->moved_ns += by_ns;
}

static void learn_spin(uint64_t late_ns) {
    uint64_t needed = SPIN_LEAST_NS + late_ns + late_ns / 2;
    if (needed < spin_ns)
        spin_ns -= (spin_ns - needed) / SPIN_DECAY;
    else
        spin_ns = needed < SPIN_MOST_NS ? needed : SPIN_MOST_NS;
}

/* Returns by how much the sleep of a wait ends early. A real-time thread must leave some time to
 * others: the kernel stops one that takes 95% of a CPU. Others then evict the thread's memory from
 * the cache, so most of a series of short waits have no sleep. */
static uint64_t spin_of(uint64_t now_ns, uint64_t wait_ns) {
    uint64_t most = wait_ns / 8 * 7 > SPIN_USUAL_NS ? wait_ns / 8 * 7 : SPIN_USUAL_NS;
    uint64_t early = spin_ns < most ? spin_ns : most;
    debt_ns += (now_ns - seen_ns) / SLEEP_PART;
    debt_ns = debt_ns < DEBT_MOST_NS ? debt_ns : DEBT_MOST_NS;
    seen_ns = now_ns;
    if (early >= wait_ns || wait_ns >= SHORT_NS)
        return early;
    if (debt_ns < wait_ns - early)
        return wait_ns;
    debt_ns -= wait_ns - early;
    return early;
}

/* Sleeps until `early` before the time, and reads the clock in a loop for the rest. Long sleeps are
 * divided into pieces of PIECE_NS, because a stop must be noticed. */
static bool wait_until(uint64_t until_ns, uint64_t early, const atomic_bool *stop) {
    uint64_t now = monotonic_ns();
    for (; now < until_ns; now = monotonic_ns()) {
        if (*stop)
            return false;
        if (until_ns - now <= early)
            continue;
        uint64_t sleep = until_ns - now - early;
        uint64_t wake_ns = now + (sleep < PIECE_NS ? sleep : PIECE_NS);
        struct timespec wake = to_timespec(wake_ns);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, 0);
        uint64_t woken_ns = monotonic_ns();
        if (woken_ns > wake_ns)
            learn_spin(woken_ns - wake_ns);
    }
    return true;
}

bool pacer_wait(uint64_t until_ns, const atomic_bool *stop) {
    uint64_t now = monotonic_ns();
    return wait_until(until_ns, until_ns > now ? spin_of(now, until_ns - now) : 0, stop);
}

bool pacer_sleep(uint64_t until_ns, const atomic_bool *stop) {
    return wait_until(until_ns, 0, stop);
}
