/* SPDX-License-Identifier: Apache-2.0 */
/* An error as one line for a person: the operation, the place, and the expected value. */
#ifndef WIRETALE_ERROR_H
#define WIRETALE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum error_kind {
    ERROR_NONE,
    ERROR_USAGE,      /* an option or a filter that cannot be used */
    ERROR_UNREADABLE, /* an input that cannot be opened or is no capture */
    ERROR_MEMORY,     /* an allocation failed */
};

struct error {
    enum error_kind kind;
    char text[512];
};

/* Returns false, so that a failing function can end with `return error_set(...)`. */
__attribute__((format(printf, 3, 4))) static inline bool
error_set(struct error *error, enum error_kind kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    error->kind = kind;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

#endif
