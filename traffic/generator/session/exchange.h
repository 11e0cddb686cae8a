/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer from its start to the reports of both ends. Both run the same code: each sends a sign
 * of life every second, the report of each direction once its threads have ended, and stops if the
 * peer stops or is silent. */
#ifndef WIRETALE_EXCHANGE_H
#define WIRETALE_EXCHANGE_H

#include "report/report.h"
#include "transfer/transfer.h"

/* The peer is gone if neither a line nor a block arrived for so long. */
#define CONTROL_SILENCE_NS (10 * NS_PER_S)
/* After a sender asked for datagrams in the reverse direction and fell silent, none must reach its
 * address for longer than this, because the address may belong to another host by then. */
#define FLOW_SILENCE_NS (900 * NS_PER_MS)

/* For so long, a transfer may move less than its receiver's --min-rate. */
#define RATE_FLOOR_NS (60 * NS_PER_S)

struct exchange_options {
    uint64_t max_bytes;        /* of all streams, which transfer->max_bytes may lower */
    double max_bps;            /* of all streams of a direction; 0: no limit */
    double min_bps;            /* of all streams, in each RATE_FLOOR_NS; 0: no limit */
    uint64_t max_ns;           /* of the plan's own duration; 0: no limit */
    uint64_t interval_ns;      /* between lines while the transfer runs; 0: no lines */
    struct report_style style; /* of these lines and the report */
};

/* Runs a transfer whose UDP sockets are open and for which "start" was sent. Returns when it is
 * over and all of its threads have ended; transfer->stopped_by is NULL if nothing cut it short. */
void exchange_run(struct transfer *transfer, const struct exchange_options *options);

/* Returns whether at least `least_bps` moved since the last look, which lasts RATE_FLOOR_NS and may
 * begin later. Time in which this end works on what it got does not count. */
bool rate_floor_holds(struct rate_floor *floor, double least_bps, uint64_t bytes, uint64_t now_ns,
                      bool works);

/* The signal that asks all transfers to end; 0 if there was none. */
extern _Atomic int exchange_interrupted;

/* Installs a handler for SIGINT, SIGTERM and SIGHUP that sets exchange_interrupted. A second signal
 * after 2 s ends the program at once. */
void exchange_watch_signals(void);

#endif
