/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error. Each line is formatted in memory and written by one write(2), because
 * several threads and processes may share the descriptor. */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

#define NAME_SIZE    96
#define FAIL_WAIT_MS 1000 /* for the last message of a program */
#define LINE_SIZE    2048 /* below PIPE_BUF, so that a pipe takes all of a line or nothing */

static bool quiet;
static char base_name[NAME_SIZE] = WIRETALE_PROGRAM, full_name[NAME_SIZE] = WIRETALE_PROGRAM;

void prepare_stdio(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* open() gets the lowest one */
            (void)!open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    signal(SIGPIPE, SIG_IGN);
}

bool finish_output(FILE *out) {
    errno = 0;
    if ((!fflush(out) && !ferror(out)) || errno == EPIPE)
        return true;
    const char *name = out == stderr ? "error" : "output";
    if (errno == EBADF)
        log_warning("standard %s is closed", name);
    else
        log_warning("cannot write to standard %s: %s", name,
                    errno ? strerror(errno) : "the output failed before");
    return false;
}

/* Lengths are limited, so that base name and command always fit. */
void log_set_program(const char *argv0, const char *command) {
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL, *name = slash ? slash + 1 : argv0;
    if (name && *name)
        snprintf(base_name, sizeof base_name, "%.60s", name);
    snprintf(full_name, sizeof full_name, "%.60s%s%.30s", base_name, *command ? " " : "", command);
}

const char *program_name(void) {
    return full_name;
}

const char *program_base_name(void) {
    return base_name;
}

/* poll(2) reports a pipe as writable if PIPE_BUF bytes fit. */
static bool is_writable(int fd, int wait_ms) {
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, wait_ms) == 1 && out.revents & POLLOUT;
}

/* If the reader of standard error is stuck, the line is dropped after `wait_ms`: a message must not
 * stop a capture. All of it is made printable, because messages contain names of files and texts of
 * peers. */
static void write_line(const char *name, int wait_ms, const char *format, va_list arguments) {
    char text[LINE_SIZE] = "", line[LINE_SIZE];
    int start = name ? snprintf(text, sizeof text, "%s: ", name) : 0;
    vsnprintf(text + start, sizeof text - (size_t)start, format, arguments);
    size_t length = utf8_copy_printable(line, sizeof line - 1, text, sizeof text);
    line[length++] = '\n';
    if (is_writable(STDERR_FILENO, wait_ms) && write(STDERR_FILENO, line, length) < 0)
        return; /* there is no other place for it */
}

void set_quiet(void) {
    quiet = true;
}

void log_line(enum log_kind kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (kind != LINE_OF_INFO || !quiet)
        write_line(kind == LINE_WITHOUT_NAME ? NULL : full_name, 0, format, arguments);
    va_end(arguments);
}

void fail(enum exit_code code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(full_name, FAIL_WAIT_MS, format, arguments);
    va_end(arguments);
    exit(code);
}
