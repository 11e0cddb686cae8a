/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread while packets are captured: signals, the clock, the status, the service manager.
 */
#ifndef WIRETALE_CONTROL_H
#define WIRETALE_CONTROL_H

#include "service_notify.h"
#include "status_socket.h"
#include "writer.h"

struct control {
    struct capture *capture;
    struct output *output;
    struct writer *writer;
    struct service service;
    struct status_socket status;
    int signal_fd;
    int64_t stop_asked_ns; /* of the first signal to stop; 0: none came */
};

/* Blocks the signals, to be read in control_run(); before any thread begins. */
void control_take_signals(struct control *control);
/* Returns when all is written; the exit code. */
int control_run(struct control *control);

#endif
