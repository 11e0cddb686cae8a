/* SPDX-License-Identifier: Apache-2.0 */
/* --on-close: a process of its own, begun before this one confines itself, that runs the command
 * for each file. It has no privileges, but it is not confined as the capture is: commands need
 * more. */
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

/* Splits the command at spaces and begins the process, as that user; fails with one line. */
void close_command_start(struct close_command *command, const char *text,
                         const struct identity *identity);
void close_command_run(struct close_command *command, const char *folder, const char *name);
/* Lets it finish what was asked for, and waits for it up to `seconds`. */
void close_command_end(struct close_command *command, int seconds);

#endif
