/* SPDX-License-Identifier: Apache-2.0 */
/* What sends one packet after the other. Its times are those of an ideal link: a packet begins when
 * the one before has ended, not when somebody woke up to look, so nothing adds up. */
#ifndef WIRETALE_LINK_LINK_SERVER_H
#define WIRETALE_LINK_LINK_SERVER_H

#include "link_spec.h"
#include "rate_trace.h"

struct link_server {
    const struct link_spec *spec;
    struct rate_trace trace; /* count 0: by rate */
    int64_t origin_ns;       /* the link's first packet: what traces and spans count from */
    int64_t free_ns;         /* the packet being sent is out then */
    uint32_t bytes;          /* of that packet, on the link */
    double fraction_ns;      /* of free_ns */
    uint64_t opportunity;    /* of the trace: the one being used */
    uint32_t left;           /* bytes of it */
};

/* When a packet that came at `arrival_ns` can begin. */
int64_t link_server_start(const struct link_server *server, int64_t arrival_ns);

/* Sends a packet from `start_ns` on; returns when it is out. */
int64_t link_server_send(struct link_server *server, int64_t start_ns, uint32_t bytes);

#endif
