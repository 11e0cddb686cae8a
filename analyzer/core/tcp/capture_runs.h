/* SPDX-License-Identifier: Apache-2.0 */
/* Which capture the earlier packets of a connection came from, because frames are numbered in each
 * file anew. Most connections are in one capture: state is allocated at the first packet of
 * another, and holds the present run of packets of each direction and the run before. */
#ifndef WIRETALE_CAPTURE_RUNS_H
#define WIRETALE_CAPTURE_RUNS_H

#include "base/packet.h"
#include "tcp/connection.h"

#define CAPTURE_UNKNOWN UINT32_MAX

/* Packets of one direction in a row that came from the same capture. */
struct capture_run {
    uint32_t capture, before; /* `before`: that of the run before, CAPTURE_UNKNOWN without one */
    uint32_t first_frame;
    int64_t first_ns, last_ns; /* `last_ns`: of the direction so far */
    /* A packet after this time is of this run, whatever the clocks of both files. */
    int64_t sure_ns;
    int64_t before_sure_ns, before_last_ns; /* the same of the run before */
};

struct capture_runs {
    struct capture_run of[2]; /* by direction */
};

/* Takes a packet of a connection whose first packet came from `first_capture`, and whose last one
 * had time `last_ns`; it must be called for each packet once there are several captures. */
void note_capture(struct tcp_connection *connection, unsigned direction,
                  const struct packet_info *packet, uint32_t first_capture, int64_t last_ns,
                  struct pool *pool);

/* Returns the capture of an earlier packet of a direction, or of the present one, which is
 * `packet`; CAPTURE_UNKNOWN if it may be of another. */
uint32_t capture_of(const struct tcp_connection *connection, unsigned direction, int64_t time_ns,
                    uint32_t frame, const struct packet_info *packet);

/* The same of a packet whose direction is not known. */
uint32_t capture_of_any(const struct tcp_connection *connection, int64_t time_ns, uint32_t frame,
                        const struct packet_info *packet);

#endif
