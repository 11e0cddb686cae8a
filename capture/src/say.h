/* SPDX-License-Identifier: Apache-2.0 */
/* One line on stderr for a person. A stderr that nobody reads never holds anybody up: the line is
 * lost. */
#ifndef WIRETALE_SAY_H
#define WIRETALE_SAY_H

#include <stdbool.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,
    EXIT_DAMAGED = 3,
    EXIT_UNREADABLE = 4,
    EXIT_MISSING = 5, /* a tool or a permission */
    EXIT_INTERRUPTED = 130,
};

/* The name that lines begin with, from argv[0]: "wiretale capture" where the front door began it.
 */
void say_as(const char *argument);
const char *say_name(void);
void say_less(void); /* only what went wrong from now on */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...); /* progress */
__attribute__((format(printf, 1, 2))) void warn_of(const char *format, ...);
/* A line without the program's name in front. */
__attribute__((format(printf, 1, 2))) void say_plain(const char *format, ...);
__attribute__((format(printf, 2, 3), noreturn)) void fail(enum exit_code code, const char *format,
                                                          ...);

#endif
