/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the control connection, and their fields. A table of fields describes each kind of line:
 * it is the parser, the bounds and the formatter in one, so that both ends agree. Reading copies
 * the line once and cuts it in place; it allocates nothing.
 *
 * A hostile line can occupy LINE_SIZE bytes and no more. It is refused if it has no line feed by
 * then, a byte outside printable ASCII, an unknown field or a value out of bounds. */
#include "control/control.h"

#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/clock.h"

#define RTO_MAX_MS_OPTION 44 /* TCP_RTO_MAX_MS, since Linux 6.15; older kernels refuse it */
#define RTO_MAX_MS        1000

/* Blocks may fill the path and drop lines. The RTO doubles with each timeout (RFC 6298 5.5), so it
 * is bounded: otherwise the peer hears nothing for longer than CONTROL_SILENCE_NS. */
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

/* Takes a line out of the bytes that were read. The rest moves to the front, where the next line
 * must begin. A zero byte in the line makes strlen() differ, so it is refused. */
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

/* Rounds up to whole milliseconds, so that the deadline has passed if it returns false. */
static bool wait_for(int fd, short events, uint64_t deadline_ns) {
    uint64_t now = monotonic_ns();
    if (now >= deadline_ns)
        return false;
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1) > 0;
}

enum control_result control_wait(struct control *control, char line[LINE_SIZE],
                                 uint64_t deadline_ns) {
    if ((uint64_t)monotonic_ns() >= deadline_ns)
        return CONTROL_INCOMPLETE;
    enum control_result answer = control_read(control, line);
    while (answer == CONTROL_INCOMPLETE && wait_for(control->fd, POLLIN, deadline_ns))
        answer = control_read(control, line);
    return answer;
}

/* The connection may be blocked by a full path, so the wait is bounded; then the peer counts as
 * gone. */
static bool send_all(int fd, const char *bytes, size_t count, uint64_t deadline) {
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
    return send_all(control->fd, line, (size_t)length + 1, (uint64_t)monotonic_ns() + NS_PER_S);
}

bool control_send_until(struct control *control, const char *line, uint64_t deadline_ns) {
    return send_all(control->fd, line, strlen(line), deadline_ns) &&
           send_all(control->fd, "\n", 1, deadline_ns);
}

/* Nothing announces an acknowledgment, so the queue is read every millisecond. */
bool control_flush(struct control *control, uint64_t deadline_ns) {
    struct pollfd one = {.fd = control->fd, .events = POLLIN};
    int waiting = 0;
    while (!ioctl(control->fd, SIOCOUTQ, &waiting) && waiting)
        if ((uint64_t)monotonic_ns() >= deadline_ns || poll(&one, 1, 1))
            return false;
    return true;
}

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.,:/+"

bool line_is(const char *line, const char *word) {
    size_t length = strlen(word);
    return !strncmp(line, word, length) && (line[length] == ' ' || !line[length]);
}

/* At most 19 digits, so that the number cannot wrap. */
static bool read_number(const char *value, uint64_t max, uint64_t *number) {
    size_t digits = strspn(value, "0123456789");
    if (!digits || digits > 19 || value[digits])
        return false;
    *number = strtoull(value, NULL, 10);
    return *number <= max;
}

/* Excludes signs, hexadecimal, "inf" and "nan", which strtod() accepts. */
static bool read_decimal(const char *value, double *number) {
    char *end;
    if (!value[0] || !strchr("0123456789", value[0]) ||
        strspn(value, "0123456789.e+-") != strlen(value))
        return false;
    *number = strtod(value, &end);
    return !*end && isfinite(*number) && *number >= 0 && *number < 1e15;
}

static bool read_word(const char *value, const struct line_field *field, uint64_t *number) {
    for (uint64_t i = 0; i < field->max; i++)
        if (!strcmp(field->words[i], value)) {
            *number = i;
            return true;
        }
    return false;
}

/* Upper case only, as write_text() writes it. strchr() also finds the terminating 0, so that must
 * be excluded first. */
static int hex_digit(char c) {
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Undoes %XX. A zero byte would end the text early, so it is refused. */
static bool read_text(const char *value, uint64_t room, char *text) {
    size_t used = 0;
    for (; *value; value++) {
        int c = (unsigned char)*value;
        if (c == '%') {
            int high = hex_digit(value[1]), low = high < 0 ? -1 : hex_digit(value[2]);
            c = low < 0 ? 0 : high * 16 + low;
            value += 2;
        } else if (!strchr(PLAIN, c)) {
            return false;
        }
        if (!c || used + 1 >= room)
            return false;
        text[used++] = (char)c;
    }
    text[used] = 0;
    return true;
}

static bool read_value(const char *value, const struct line_field *field, void *into) {
    void *at = (char *)into + field->offset;
    switch (field->kind) {
    case FIELD_NUMBER: return read_number(value, field->max, at);
    case FIELD_DECIMAL: return read_decimal(value, at);
    case FIELD_WORD: return read_word(value, field, at);
    case FIELD_TEXT: return read_text(value, field->max, at);
    }
    return false;
}

/* Fields may be in any order. If a field appears twice, its last value counts. */
static const struct line_field *find_field(const char *name, const struct line_field *fields,
                                           size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(fields[i].name, name))
            return &fields[i];
    return NULL;
}

/* The caller has compared the first word by line_is(). All items after it must be name=value. */
const char *line_read(const char *line, const struct line_field *fields, size_t count, void *into) {
    char copy[LINE_SIZE];
    if (strlen(line) >= sizeof copy)
        return "a line of more than 4096 bytes";
    strcpy(copy, line);
    char *rest = copy, *item = strsep(&rest, " ");
    while ((item = strsep(&rest, " "))) {
        char *value = strchr(item, '=');
        if (!value)
            return "a field without a value";
        *value++ = 0;
        const struct line_field *field = find_field(item, fields, count);
        if (!field)
            return "an unknown field";
        if (!read_value(value, field, into))
            return "a value out of its bounds";
    }
    return NULL;
}

/* Escapes bytes outside PLAIN as %XX. */
static size_t write_text(char *to, size_t room, const char *text) {
    size_t used = 0;
    for (; *text && used + 4 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr(PLAIN, c))
            to[used++] = (char)c;
        else
            used += (size_t)sprintf(to + used, "%%%02X", c);
    }
    to[used] = 0;
    return used;
}

static size_t write_value(char *to, size_t room, const struct line_field *field, const void *at) {
    switch (field->kind) {
    case FIELD_NUMBER: return (size_t)snprintf(to, room, "%llu", *(const unsigned long long *)at);
    case FIELD_DECIMAL: return (size_t)snprintf(to, room, "%.17g", *(const double *)at);
    case FIELD_WORD: return write_text(to, room, field->words[*(const uint64_t *)at]);
    case FIELD_TEXT: return write_text(to, room, at);
    }
    return 0;
}

/* Such a field is left out of the line. */
static bool is_nothing(const struct line_field *field, const void *at) {
    switch (field->kind) {
    case FIELD_DECIMAL: return *(const double *)at == 0;
    case FIELD_TEXT: return !*(const char *)at;
    default: return *(const uint64_t *)at == 0;
    }
}

void line_write(char line[LINE_SIZE], const char *word, const struct line_field *fields,
                size_t count, const void *from) {
    size_t used = (size_t)snprintf(line, LINE_SIZE, "%s", word);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)from + fields[i].offset;
        if (is_nothing(&fields[i], at) || used + strlen(fields[i].name) + 3 >= LINE_SIZE)
            continue;
        used += (size_t)sprintf(line + used, " %s=", fields[i].name);
        used += write_value(line + used, LINE_SIZE - used, &fields[i], at);
    }
}
