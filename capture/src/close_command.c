/* SPDX-License-Identifier: Apache-2.0 */
#include "close_command.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "close_runner.h"
#include "common/log.h"

void close_command_start(struct close_command *command, const char *text) {
    int ends[2];
    char *copy = text ? strdup(text) : NULL;
    if (text && (!copy || !text[strspn(text, " ")]))
        fail(EXIT_USAGE, "--on-close: expected a command");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        fail(EXIT_IO, "no socket for --on-close: %s", strerror(errno));
    command->pid = fork();
    if (command->pid < 0)
        fail(EXIT_IO, "no process for --on-close: %s", strerror(errno));
    if (!command->pid)
        close_runner_run(ends[1], copy);
    free(copy);
    close(ends[1]);
    command->fd = ends[0];
}

void close_command_become(struct close_command *command, const struct identity *identity,
                          const char *status) {
    struct runner_begin begin = {.identity = *identity};
    if (status && !lstat(status, &begin.status_is))
        snprintf(begin.status, sizeof begin.status, "%s", status);
    if (send(command->fd, &begin, sizeof begin, MSG_NOSIGNAL) != (ssize_t)sizeof begin)
        fail(EXIT_IO, "the process for --on-close is gone: %s", strerror(errno));
}

void close_command_run(struct close_command *command, const char *folder, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length >= (int)sizeof path)
        return;
    bool sent = send(command->fd, path, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
    if (!sent && !command->behind)
        log_warning("--on-close cannot keep up or is gone: it is not run for %s and maybe others",
                    name);
    command->behind = !sent;
}

/* A queue that is full has room within the time, or the runner counts as killed with the rest. */
static bool send_end(const struct close_command *command, int tries) {
    for (; tries; tries--) {
        if (send(command->fd, CLOSE_RUNNER_END, sizeof CLOSE_RUNNER_END,
                 MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            return true;
        if (errno != EAGAIN)
            return false;
        poll(NULL, 0, 50);
    }
    return false;
}

void close_command_end(struct close_command *command, int seconds) {
    int tries = seconds * 20;
    if (!send_end(command, tries))
        log_warning("--on-close cannot keep up or is gone: it is not run for all files");
    close(command->fd);
    for (; tries; tries--) {
        if (waitpid(command->pid, NULL, WNOHANG))
            return;
        poll(NULL, 0, 50);
    }
}
