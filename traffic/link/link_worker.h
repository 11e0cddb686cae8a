/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of one direction: frames in, frames out at their time. */
#ifndef WIRETALE_LINK_LINK_WORKER_H
#define WIRETALE_LINK_LINK_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "icmp_too_big.h"
#include "link_direction.h"
#include "link_port.h"
#include "truth_log.h"

struct link_worker {
    struct link_direction direction;
    struct direction_events events;
    struct link_port *from, *to;
    const struct link_spec *spec;
    const struct link_addresses *addresses;
    struct truth_pen pen;
    int64_t spin_ns;   /* closer than that, it does not sleep */
    int64_t late_ns;   /* what a timer wakes late, as a rule */
    int64_t offset_ns; /* time of day less monotonic time */
    uint64_t passed;   /* frames that are no packets: ARP and the like */
    uint64_t answers;  /* ICMP sent */
    int64_t flushed_ns;
    const atomic_bool *ending;
    pthread_t thread;
};

/* Runs until `ending`; to be started by pthread_create() with the worker. */
void *link_worker_run(void *worker);

#endif
