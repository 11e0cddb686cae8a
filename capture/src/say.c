/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048 /* less than PIPE_BUF: written whole or not at all */

static bool less;
static const char *name = "wiretale-capture";

void say_as(const char *argument) {
    const char *slash = strrchr(argument, '/');
    if (!strcmp(argument, "wiretale"))
        name = "wiretale capture";
    else if (!strncmp(argument, "wiretale ", 9))
        name = argument;
    else if (slash ? slash[1] : *argument)
        name = slash ? slash + 1 : argument;
}

const char *say_name(void) {
    return name;
}

void say_less(void) {
    less = true;
}

/* poll(2) calls a pipe writable when PIPE_BUF bytes fit. */
static bool has_room(int fd) {
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && out.revents & POLLOUT;
}

static void put_line(bool named, const char *format, va_list arguments) {
    char line[LINE_MAX_BYTES];
    int start = named ? snprintf(line, sizeof line, "%.256s: ", name) : 0;
    int more = vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
    size_t length = (size_t)start + (more > 0 ? (size_t)more : 0);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (has_room(STDERR_FILENO) && write(STDERR_FILENO, line, length) < 0)
        return; /* there is nobody left to tell */
}

void say(const char *format, ...) {
    va_list arguments;
    if (less)
        return;
    va_start(arguments, format);
    put_line(true, format, arguments);
    va_end(arguments);
}

void warn_of(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(true, format, arguments);
    va_end(arguments);
}

void say_plain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(false, format, arguments);
    va_end(arguments);
}

void fail(enum exit_code code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(true, format, arguments);
    va_end(arguments);
    exit(code);
}
