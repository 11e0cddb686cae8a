/* SPDX-License-Identifier: Apache-2.0 */
/* The control connection: lines of at most LINE_MOST bytes, each read and write with a time limit.
 * docs/traffic.md specifies what is said. */
#ifndef WIRETALE_CONTROL_H
#define WIRETALE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/line_fields.h"

enum control_result {
    CONTROL_LINE,       /* here it is */
    CONTROL_INCOMPLETE, /* no whole line yet */
    CONTROL_CLOSED,     /* closed or broken */
    CONTROL_INVALID,    /* too long, or not text */
};

struct control {
    int fd; /* non-blocking */
    size_t have;
    char in[LINE_SIZE];
};

void control_begin(struct control *control, int fd);

/* The next line without its end. Never waits. */
enum control_result control_read(struct control *control, char line[LINE_SIZE]);
/* Waits for it until `deadline_ns` of the monotonic clock. */
enum control_result control_wait(struct control *control, char line[LINE_SIZE],
                                 uint64_t deadline_ns);

/* Writes a line; whether it could be handed over within a second. */
bool control_send(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
