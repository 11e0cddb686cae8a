/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in one line for a person: what, where, what was expected. */
#ifndef WIRETALE_PROBLEM_H
#define WIRETALE_PROBLEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum problem_kind {
    PROBLEM_NONE,
    PROBLEM_USAGE,      /* an option or a filter that cannot be used */
    PROBLEM_UNREADABLE, /* an input that cannot be opened or is no capture */
    PROBLEM_MEMORY,     /* an allocation failed */
};

struct problem {
    enum problem_kind kind;
    char text[512];
};

/* Returns false, so that a failing function can end with `return problem_set(...)`. */
__attribute__((format(printf, 3, 4))) static inline bool
problem_set(struct problem *problem, enum problem_kind kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    problem->kind = kind;
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return false;
}

#endif
