/* SPDX-License-Identifier: Apache-2.0 */
/* The process behind close_command.h. Messages on its socket, in this order: one `struct
 * runner_begin`, the path of each finished file, CLOSE_RUNNER_END at an orderly end.
 *
 * An orderly end leaves it running until all commands are done. When the socket ends without that
 * message, the capture was killed: the process ends at once. Commands that run are left to finish,
 * since they hold nothing of the capture; the files whose command has not begun are named on
 * stderr. */
#ifndef WIRETALE_CLOSE_RUNNER_H
#define WIRETALE_CLOSE_RUNNER_H

#include <sys/stat.h>

#include "privilege.h"

#define CLOSE_RUNNER_END "" /* with its terminating zero: no path begins with one */

struct runner_begin {
    struct identity identity;
    char status[108];      /* the socket to remove at the end, or "" */
    struct stat status_is; /* so that the socket of a later run stays */
};

/* `text` is the command, or NULL. */
_Noreturn void close_runner_run(int fd, char *text);

#endif
