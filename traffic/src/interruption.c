/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include <signal.h>
#include <stddef.h>

#include "exchange.h"

static void note(int number) {
    exchange_interrupted = number;
}

void interruption_watch(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}
