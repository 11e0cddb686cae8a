/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the status, which begin with a brace, come between the lines of an answer. An answer is
 * one line, or many up to METRICS_END. */
#include "monitor/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_S 5

/* Returns the socket, or -1 with errno. */
static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = PATIENCE_S};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!connect(fd, (struct sockaddr *)&address, sizeof address))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Reads up to the end of the answer. Returns whether it came. */
static bool read_answer(FILE *in, bool is_status, char answer[METRICS_SIZE]) {
    static char line[METRICS_SIZE];
    int64_t until = monotonic_ns() + PATIENCE_S * NS_PER_S;
    size_t used = 0;
    while (monotonic_ns() < until && fgets(line, sizeof line, in)) {
        size_t length = strlen(line);
        if (!is_status && *line == '{')
            continue;
        if (!strcmp(line, METRICS_END))
            return true;
        if (used + length >= METRICS_SIZE)
            return false;
        memcpy(answer + used, line, length + 1);
        used += length;
        if (*answer != '#')
            return line[length - 1] == '\n';
    }
    return false;
}

enum ask_result ask(const char *path, const char *command, char answer[METRICS_SIZE],
                    char reason[256]) {
    int fd = connect_to(path);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    if (!in) {
        snprintf(reason, 256, "%s", strerror(errno));
        return errno == EACCES || errno == EPERM ? ASK_DENIED : ASK_ABSENT;
    }
    errno = 0;
    bool asked = !command || dprintf(fd, "%s\n", command) > 0;
    bool answered = asked && read_answer(in, !command, answer);
    bool is_closed = feof(in) || errno == ECONNRESET || errno == EPIPE;
    if (!answered)
        snprintf(reason, 256, is_closed ? "it closes the connection" : "no answer within %d s",
                 PATIENCE_S);
    fclose(in);
    return answered ? ASK_DONE : ASK_SILENT;
}
