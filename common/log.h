/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_COMMON_LOG_H
#define WIRETALE_COMMON_LOG_H

#include <stdbool.h>
#include <stdio.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_THRESHOLD = 1, /* the result exceeds a limit that the user set */
    EXIT_USAGE = 2,
    EXIT_TRUNCATED =
        3,            /* the input is damaged, a test was cut short, or packets were not written */
    EXIT_IO = 4,      /* a file, a peer or the output failed */
    EXIT_MISSING = 5, /* a permission, interface or resource is missing */
    EXIT_INTERRUPTED = 130,
    EXIT_TERMINATED = 143,
};

/* To be called first. Opens /dev/null on closed standard streams, so that no other file gets
 * descriptors 0 to 2: output to it fails, messages to it are dropped. A pipe without a reader is an
 * error of write(2) from then on, not the end of the program. */
void prepare_stdio(void);

/* Flushes, because a full disk often shows only then. If not all output was written, writes a line
 * and returns false. A reader that closes a pipe early, as head(1) does, is no error. */
bool finish_output(FILE *out);

/* Sets the name that lines begin with: the last part of the path argv[0], and `command` if it is
 * not "". wiretale starts the programs with an argv[0] of its own ("wiretale link"). */
void log_set_program(const char *argv0, const char *command);
const char *program_name(void);      /* with the command: "wiretale send" */
const char *program_base_name(void); /* without it: "wiretale" */

enum log_kind { LINE_OF_INFO, LINE_OF_WARNING, LINE_WITHOUT_NAME };

/* Writes one line to standard error, with one write(2). If a pipe there is full, the line is
 * dropped: no program waits for the reader of its messages. Lines are cut at 2 KiB, and characters
 * that could steer a terminal are replaced (utf8_copy_printable()). */
void log_line(enum log_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_info(...)    log_line(LINE_OF_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LINE_OF_WARNING, __VA_ARGS__)
#define log_plain(...)   log_line(LINE_WITHOUT_NAME, __VA_ARGS__)
void set_quiet(void); /* drops lines of log_info() from then on */

/* Writes the line and exits. For errors that end the program; a function that a caller can recover
 * from must return an error instead. */
void fail(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#endif
