/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"

#define RTO_MAX_MS_OPTION 44 /* TCP_RTO_MAX_MS, since Linux 6.15 */
#define RTO_MAX_MS        1000

/* Blocks may fill the path: lines are tried again every second and not ever more rarely. A kernel
 * that cannot is as good as the path lets it. */
void control_begin(struct control *control, int fd) {
    int max = RTO_MAX_MS;
    control->fd = fd;
    control->have = 0;
    (void)setsockopt(fd, IPPROTO_TCP, RTO_MAX_MS_OPTION, &max, sizeof max);
}

static bool is_text(const char *line) {
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || (unsigned char)*line > '~')
            return false;
    return true;
}

/* Out of what has been read. */
static enum control_result cut_line(struct control *control, char *line) {
    char *end = memchr(control->in, '\n', control->have);
    if (!end)
        return control->have == sizeof control->in ? CONTROL_INVALID : CONTROL_INCOMPLETE;
    size_t length = (size_t)(end - control->in);
    memcpy(line, control->in, length);
    line[length] = 0;
    control->have -= length + 1;
    memmove(control->in, end + 1, control->have);
    return strlen(line) == length && is_text(line) ? CONTROL_LINE : CONTROL_INVALID;
}

enum control_result control_read(struct control *control, char line[LINE_SIZE]) {
    enum control_result answer = cut_line(control, line);
    while (answer == CONTROL_INCOMPLETE) {
        ssize_t got = recv(control->fd, control->in + control->have,
                           sizeof control->in - control->have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return CONTROL_INCOMPLETE;
        if (got <= 0)
            return CONTROL_CLOSED;
        control->have += (size_t)got;
        answer = cut_line(control, line);
    }
    return answer;
}

static bool wait_for(int fd, short events, uint64_t deadline_ns) {
    uint64_t now = monotonic_ns();
    if (now >= deadline_ns)
        return false;
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1) > 0;
}

enum control_result control_wait(struct control *control, char line[LINE_SIZE],
                                 uint64_t deadline_ns) {
    enum control_result answer = control_read(control, line);
    while (answer == CONTROL_INCOMPLETE && wait_for(control->fd, POLLIN, deadline_ns))
        answer = control_read(control, line);
    return answer;
}

static bool send_all(int fd, const char *bytes, size_t count) {
    uint64_t deadline = monotonic_ns() + NS_PER_S;
    while (count) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        } else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
            return false;
        } else if (!wait_for(fd, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

bool control_send(struct control *control, const char *format, ...) {
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line - 1)
        return false;
    line[length] = '\n';
    return send_all(control->fd, line, (size_t)length + 1);
}
