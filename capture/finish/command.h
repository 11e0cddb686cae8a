/* SPDX-License-Identifier: Apache-2.0 */
/* --on-close: a process that runs a command for each finished file. It is forked before the capture
 * opens anything, so that a command inherits no descriptor but 0, 1 and 2. It has no privileges,
 * but no sandbox either, which would forbid most commands. It also removes the status socket at the
 * end, because the sandboxed capture cannot reach it. */
#ifndef WIRETALE_CAPTURE_COMMAND_H
#define WIRETALE_CAPTURE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "confine/confine.h"

struct command {
    int fd; /* socket to the process */
    pid_t pid;
    bool behind; /* the last message was dropped, because the socket was full */
};

/* Forks the process. `text` is the command, or NULL. To be called before any descriptor is opened
 * that a command must not have. Exits with one line if it cannot. */
void command_start(struct command *command, const char *text);

/* Makes the process change to `identity`, and remove the socket `status` (or NULL) at the end. */
void command_become(struct command *command, const struct identity *identity, const char *status);

/* Runs the command for a file. Never waits: if the process is too far behind, the file is skipped,
 * with a warning. */
void command_run(struct command *command, const char *directory, const char *name);

/* Lets the process finish its queue and waits for it up to `seconds`. */
void command_end(struct command *command, int seconds);

#endif
