/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the queue: sends one packet after the other, at a constant rate or by a trace.
 * Times are those of an ideal link: a packet begins when the previous one has ended, not when a
 * thread woke up, so that errors do not add up. A stall only moves the begin: the packet
 * keeps its place, and the queue fills behind it. */
#ifndef WIRETALE_LINK_LINK_SERVER_H
#define WIRETALE_LINK_LINK_SERVER_H

#include "packet/link_spec.h"

#define OPPORTUNITY_BYTES 1500u
#define MAX_OPPORTUNITIES 20000000u

/* A rate that changes, in mahimahi's format: each line of the file is a time in whole milliseconds,
 * not less than the previous one, at which 1500 bytes may leave. The trace repeats from its last
 * time on. */
struct rate_trace {
    uint32_t *times_ms;
    uint32_t count; /* 0: no trace */
};

/* Returns NULL, or the reason for a failure in `error`. */
const char *rate_trace_read(struct rate_trace *trace, const char *path, char *error,
                            size_t error_size);
void rate_trace_free(struct rate_trace *trace);
/* Returns the time of opportunity `number`, which counts from 0 through all repetitions. */
int64_t rate_trace_time_ns(const struct rate_trace *trace, uint64_t number);

/* Returns the first opportunity at `time_ns` or later. */
uint64_t rate_trace_find(const struct rate_trace *trace, int64_t time_ns);
/* Returns the mean rate in bit/s, from which RED derives how fast an idle queue decays. */
double rate_trace_mean_bps(const struct rate_trace *trace);

struct link_server {
    const struct link_spec *spec;
    struct rate_trace trace;
    int64_t origin_ns;    /* of the link's first packet: traces and spans count from it */
    int64_t free_ns;      /* end of the packet that is being sent */
    double fraction_ns;   /* of free_ns */
    uint32_t bytes;       /* of that packet, with overhead */
    uint64_t opportunity; /* of the trace, in use */
    uint32_t left;        /* bytes of it */
};

/* Returns the time at which a packet that arrived at `arrival_ns` can begin. */
int64_t link_server_start(const struct link_server *server, int64_t arrival_ns);
/* Sends a packet that begins at `start_ns`. Returns the time at which its last bit is out. */
int64_t link_server_send(struct link_server *server, int64_t start_ns, uint32_t bytes);

#endif
