/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the links of the interfaces while packets are captured: carrier, MTU, speed, offloads. */
#ifndef WIRETALE_CAPTURE_LINK_WATCH_H
#define WIRETALE_CAPTURE_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "status/status.h"

struct link_seen {
    bool is_known;       /* the kernel has told its state */
    bool has_carrier;    /* and it is up */
    bool is_promiscuous; /* for any program */
    uint32_t mtu;        /* bytes */
    uint32_t downs;      /* that the kernel has counted since the interface was made */
    uint64_t losses;     /* of the carrier since the capture began */
    int64_t lost_ns;     /* CLOCK_MONOTONIC */
    struct description described;
};

struct link_watch {
    int fd; /* rtnetlink; -1: nothing is watched */
    struct capture *capture;
    struct output *output;
    struct link_seen seen[DEVICES_MAX];
};

/* Subscribes to changes and asks for the present state. */
void link_watch_open(struct link_watch *watch, struct capture *capture, struct output *output);

/* Takes what the kernel has told, without waiting. */
void link_watch_round(struct link_watch *watch);

void link_watch_tell(const struct link_watch *watch, struct status *status);

/* Takes messages of rtnetlink. */
void link_watch_take(struct link_watch *watch, const void *messages, size_t size);

#endif
