/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include <signal.h>
#include <stddef.h>

#include "clock.h"
#include "exchange.h"

/* timeout(1), sudo and terminals often send one wish to stop as two signals: to the process and to
 * its group. A second wish comes from a person, who waited. */
#define AGAIN_NS (2 * NS_PER_S)

static volatile uint64_t first_ns;

/* Calls only what signal-safety(7) allows. */
static void note(int number) {
    uint64_t now = monotonic_ns();
    if (!first_ns)
        first_ns = now;
    exchange_interrupted = number;
    if (now - first_ns < AGAIN_NS)
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
