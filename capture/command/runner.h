/* SPDX-License-Identifier: Apache-2.0 */
/* The process that runs commands, and the messages to and from it. */
#ifndef WIRETALE_CAPTURE_RUNNER_H
#define WIRETALE_CAPTURE_RUNNER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "confine/confine.h"

#define COMMAND_PLACES 4 /* commands that run at the same time */

/* Messages to the process, in this order: a `command_begin`, one `command_request` for each command
 * (without the rest of `path` after its zero), and COMMAND_END at an orderly end. The process
 * answers each request, and ends its commands and itself after COMMAND_END or if the socket is
 * closed. */
struct command_begin {
    struct identity identity;
    char status[108];      /* socket to remove at the end, or "" */
    struct stat status_is; /* must be unchanged, or it is a later run's socket */
    int64_t limit_ns;      /* for each command; 0: none */
};

struct command_request {
    uint32_t number;
    char path[PATH_MAX];
};

#define COMMAND_END "" /* shorter than any request */

struct command_answer {
    uint32_t number;
    int status; /* of waitpid(); 0: success */
    bool is_late;
};

/* The main loop of the process. */
_Noreturn void runner_run(int fd, char *text);

#endif
