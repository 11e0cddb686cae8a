/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread while packets are captured: signals, steps of the clock, the status and systemd.
 */
#ifndef WIRETALE_CAPTURE_CONTROL_H
#define WIRETALE_CAPTURE_CONTROL_H

#include <stdint.h>

#include "keep/spans.h"
#include "output/file.h"
#include "status/status_socket.h"
#include "status/trend.h"
#include "watch/clock_watch.h"
#include "watch/link_watch.h"
#include "watch/mirror_watch.h"

struct control {
    struct capture *capture;
    struct output *output;
    struct writer *writer;
    struct service service;
    struct status_socket status;
    struct span_keeper spans;
    struct clock_watch clock;
    struct link_watch links;
    struct trend trend;
    struct mirror_watch mirror;
    int signal_fd;
    int64_t stop_asked_ns; /* CLOCK_MONOTONIC of the first signal to stop; 0: none */
};

/* Blocks the signals, which control_run() then reads. To be called before threads start. */
void control_take_signals(struct control *control);

/* Runs until all packets are written. Returns the exit code. */
int control_run(struct control *control);

#endif
