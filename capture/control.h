/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread while packets are captured: signals, steps of the clock, the status and systemd.
 */
#ifndef WIRETALE_CAPTURE_CONTROL_H
#define WIRETALE_CAPTURE_CONTROL_H

#include <stdint.h>

#include "keep/spans.h"
#include "output/file.h"
#include "status/status_socket.h"

struct control {
    struct capture *capture;
    struct output *output;
    struct writer *writer;
    struct service service;
    struct status_socket status;
    struct span_keeper spans;
    int signal_fd;
    int64_t stop_asked_ns; /* CLOCK_MONOTONIC of the first signal to stop; 0: none */
};

/* Blocks the signals, which control_run() then reads. To be called before threads start. */
void control_take_signals(struct control *control);

/* Runs until all packets are written. Returns the exit code. */
int control_run(struct control *control);

/* Detects that CLOCK_REALTIME is set: its distance from CLOCK_MONOTONIC jumps. Slewing by NTP
 * changes both clocks alike and is no step. */
struct clock_watch {
    int64_t distance_ns;
};

int64_t clock_watch_distance(void);

/* Returns the step since the last call, 0 if there is none. */
int64_t clock_watch_step(struct clock_watch *watch, int64_t distance_ns);

#endif
