/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/program_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char base[PROGRAM_NAME_ROOM] = "wiretale-traffic",
            full[PROGRAM_NAME_ROOM] = "wiretale-traffic";

void program_name_set(const char *argv0, const char *command) {
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
    if (argv0)
        snprintf(base, sizeof base, "%.40s", slash ? slash + 1 : argv0);
    snprintf(full, sizeof full, "%.40s%s%.20s", base, *command ? " " : "", command);
}

const char *program_name(void) {
    return full;
}

const char *program_base(void) {
    return base;
}

void program_say(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", full, text); /* in one call: other threads write, too */
}
