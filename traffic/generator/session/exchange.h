/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer from its start to the reports of both ends. Both run the same code: each sends a sign
 * of life every second, the report of each direction once its threads have ended, and stops if the
 * peer stops or is silent. exchange_lines.h lists the lines. */
#ifndef WIRETALE_EXCHANGE_H
#define WIRETALE_EXCHANGE_H

#include "transfer/transfer.h"

/* The peer is gone if neither a line nor a block arrived for so long. */
#define CONTROL_SILENCE_NS (10 * NS_PER_S)

/* Limits that a receiver sets; 0 is no limit. */
struct exchange_limits {
    uint64_t bytes;   /* of all streams */
    uint64_t time_ns; /* from the first block that is due */
};

typedef void interval_shown(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                            void *context);

/* Called by the exchange's thread at the end of each interval, and once at the end of the transfer.
 * Times are since the start. */
struct exchange_view {
    uint64_t interval_ns; /* 0: never called */
    interval_shown *show;
    void *context;
};

/* Runs a transfer whose UDP sockets are open and for which "start" was sent. Returns when it is
 * over and all of its threads have ended; transfer->stopped_by is NULL if nothing cut it short. */
void exchange_run(struct transfer *transfer, const struct exchange_limits *limits,
                  const struct exchange_view *view);

/* The signal that asks all transfers to end; 0 if there was none. */
extern _Atomic int exchange_interrupted;

/* Installs a handler for SIGINT, SIGTERM and SIGHUP that sets exchange_interrupted. A second signal
 * after 2 s ends the program at once. */
void exchange_watch_signals(void);

#endif
