/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of one direction: receives frames, runs the direction and sends packets on time. */
#ifndef WIRETALE_LINK_LINK_WORKER_H
#define WIRETALE_LINK_LINK_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/lateness.h"
#include "io/link_port.h"
#include "packet/packet_headers.h"
#include "path/link_direction.h"
#include "truth/truth_log.h"

/* Set by the main thread before the start; from then on the worker's, until it was joined. */
struct link_worker {
    struct link_direction direction;
    struct direction_events events;
    struct link_port *from, *to;
    const struct link_spec *spec;
    const struct link_addresses *addresses; /* of the link's ICMP messages */
    struct truth_pen pen;
    const atomic_bool *ending; /* set by the main thread */
    pthread_t thread;
    int64_t spin_ns;        /* the thread does not sleep for less */
    int64_t late_ns;        /* by which timers usually wake late */
    int64_t offset_ns;      /* time since the epoch minus monotonic time */
    int64_t flushed_ns;     /* monotonic: the latest flush of the pen */
    uint64_t passed;        /* frames that are not emulated: ARP and the like */
    uint64_t answers;       /* ICMP messages that were sent */
    uint64_t restamped;     /* packets that waited too long for the worker to keep their stamp */
    struct lateness errors; /* of each packet: when it left, minus when it was due */
};

/* Runs until `*ending`; for pthread_create() with the worker. */
void *link_worker_run(void *worker);

/* Prints packets by fate and the fidelity of the emulation, as lines or as one JSON object. Both
 * workers must have been joined. `real_time` is false if one ran without its priority. */
void link_summary_print(const struct link_worker workers[2], bool real_time, bool as_json);

#endif
