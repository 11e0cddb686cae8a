/* SPDX-License-Identifier: Apache-2.0 */
#include "session/interruption.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "session/exchange.h"
#include "transfer/clock.h"

/* timeout(1), sudo and terminals often send one wish to stop as two signals: to the process and to
 * its group. A second wish comes from a person, who waited. */
#define AGAIN_NS (2 * NS_PER_S)

static _Atomic uint64_t first_ns; /* any thread may get the signal */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler writes it");

/* Calls only what signal-safety(7) allows. */
static void note(int number) {
    uint64_t now = monotonic_ns();
    uint64_t first = 0;
    if (atomic_compare_exchange_strong(&first_ns, &first, now))
        first = now;
    exchange_interrupted = number;
    if (now - first < AGAIN_NS)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

void interruption_watch(void) {
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A terminal or an ssh session that goes; nohup(1) has it ignored. */
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}
