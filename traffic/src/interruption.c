/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include <signal.h>
#include <stddef.h>

#include "exchange.h"

static void note(int number) {
    exchange_interrupted = number;
}

void interruption_watch(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A terminal or an ssh session that goes; nohup(1) has it ignored. */
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}
