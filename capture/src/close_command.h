/* SPDX-License-Identifier: Apache-2.0 */
/* --on-close: a process of its own that runs the command for each finished file. It is forked
 * before the capture opens anything, so that a command inherits no descriptor but 0, 1 and 2; it
 * has no privileges, but it is not confined as the capture is: commands need more. The same process
 * removes the status socket, which the confined capture may not reach any more. */
#ifndef WIRETALE_CLOSE_COMMAND_H
#define WIRETALE_CLOSE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct identity;

struct close_command {
    int fd; /* a socket; a message is the name of a file */
    pid_t pid;
    bool behind;
};

/* Begins the process, before any descriptor is open that a command must not have. `text` is the
 * command, NULL for none. Fails with one line. */
void close_command_start(struct close_command *command, const char *text);
/* From here on it is that user, and removes the socket `status` (or NULL) at the end. */
void close_command_become(struct close_command *command, const struct identity *identity,
                          const char *status);
void close_command_run(struct close_command *command, const char *folder, const char *name);
/* Lets it finish what was asked for, and waits for it up to `seconds`. */
void close_command_end(struct close_command *command, int seconds);

#endif
