/* SPDX-License-Identifier: Apache-2.0 */
/* A test from its start to both reports: what the two ends say to each other meanwhile. Both ends
 * run the same code. */
#ifndef WIRETALE_EXCHANGE_H
#define WIRETALE_EXCHANGE_H

#include "transfer/transfer.h"

#define CONTROL_SILENCE_NS (10 * NS_PER_S) /* the other end says something every second */

/* Bounds of a receiver; 0: none. */
struct exchange_limits {
    uint64_t bytes, time_ns;
};

/* What is to be shown while it runs. */
typedef void interval_shown(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                            void *context);

struct exchange_view {
    uint64_t interval_ns; /* 0: nothing is shown */
    interval_shown *show;
    void *context;
};

/* Sockets are bound and aimed. Returns when the test is over, however it ended; then all of its
 * threads are. */
void exchange_run(struct transfer *transfer, const struct exchange_limits *limits,
                  const struct exchange_view *view);

/* The signal that asks all tests to end; 0: none. Written in its handler, read by all threads. */
extern _Atomic int exchange_interrupted;

/* Installs a handler for SIGINT, SIGTERM and SIGHUP that sets exchange_interrupted. A second signal
 * after 2 s ends the program at once. */
void exchange_watch_signals(void);

#endif
