/* SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"

#define END_TRIES 80 /* of 50 ms: longer than runner.c gives to commands after SIGTERM */

void command_start(struct command *command, const char *text) {
    char *copy = text ? strdup(text) : NULL;
    if (text && (!copy || !text[strspn(text, " ")]))
        fail(EXIT_USAGE, "--on-close: expected a command");
    command->pid = process_start("wiretale-close", &command->fd);
    if (!command->pid)
        runner_run(command->fd, copy);
    free(copy);
}

/* The socket's status is taken before the sandbox is entered, so that the process can recognize the
 * file at the end. */
void command_become(const struct command *command, const struct identity *identity,
                    const char *status, int64_t limit_ns) {
    struct command_begin begin = {.identity = *identity, .limit_ns = limit_ns};
    if (status && !lstat(status, &begin.status_is))
        snprintf(begin.status, sizeof begin.status, "%s", status);
    if (send(command->fd, &begin, sizeof begin, MSG_NOSIGNAL) != (ssize_t)sizeof begin)
        fail(EXIT_IO, "the --on-close process has ended: %s", strerror(errno));
}

bool command_run(const struct command *command, uint32_t number, const char *directory,
                 const char *name) {
    struct command_request request = {.number = number};
    int length = snprintf(request.path, sizeof request.path, "%s/%s", directory, name);
    size_t size = offsetof(struct command_request, path) + (size_t)length + 1;
    return length < (int)sizeof request.path &&
           send(command->fd, &request, size, MSG_NOSIGNAL) == (ssize_t)size;
}

int command_take_answer(const struct command *command, struct command_answer *answer) {
    ssize_t size = recv(command->fd, answer, sizeof *answer, MSG_DONTWAIT);
    if (size == (ssize_t)sizeof *answer)
        return 1;
    return size < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void command_end(const struct command *command) {
    send(command->fd, COMMAND_END, sizeof COMMAND_END, MSG_NOSIGNAL);
    close(command->fd);
    for (int tries = END_TRIES; tries && !waitpid(command->pid, NULL, WNOHANG); tries--)
        poll(NULL, 0, 50);
}
