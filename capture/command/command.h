/* SPDX-License-Identifier: Apache-2.0 */
/* --on-close: a process that runs a command for each finished file. It is forked before the capture
 * opens anything, so that a command inherits no descriptor but 0, 1 and 2. It has no privileges,
 * but no sandbox either, which would forbid most commands. It also removes the status socket at the
 * end, because the sandboxed capture cannot reach it.
 *
 * The process only runs what it is asked to (runner.c). Which file is due, and what becomes of one
 * whose command fails, is decided in the capture (jobs.c). */
#ifndef WIRETALE_CAPTURE_COMMAND_H
#define WIRETALE_CAPTURE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "command/runner.h"

struct command {
    int fd; /* socket to the process */
    pid_t pid;
};

/* Forks the process. `text` is the command, or NULL. To be called before any descriptor is opened
 * that a command must not have. Exits with one line if it cannot. */
void command_start(struct command *command, const char *text);

/* Makes the process change to `identity`, and remove the socket `status` (or NULL) at the end. */
void command_become(const struct command *command, const struct identity *identity,
                    const char *status, int64_t limit_ns);

/* Asks for the command of a file; at most COMMAND_PLACES at a time. Returns false if the process
 * has ended. */
bool command_run(const struct command *command, uint32_t number, const char *directory,
                 const char *name);

/* Takes an answer. Returns 1, 0 if there is none, -1 if the process has ended. */
int command_take_answer(const struct command *command, struct command_answer *answer);

/* Ends the process with its commands, and waits for it. */
void command_end(const struct command *command);

#endif
