/* SPDX-License-Identifier: Apache-2.0 */
/* The control connection: lines of text over TCP, in both directions (docs/traffic.md).
 *
 *     line  = word *( " " name "=" value ) LF
 *     value = *( letter / digit / "-" / "_" / "." / "," / ":" / "/" / "+" / "%" 2HEXDIG )
 *
 * A line has at most LINE_SIZE bytes of printable ASCII. A field that is absent is 0 or empty. A
 * peer is not trusted: an unknown field, a value outside its bounds or a line that is too long is
 * an error, and every wait has a deadline. */
#ifndef WIRETALE_CONTROL_H
#define WIRETALE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SIZE 4096u /* bytes with the line feed */

struct control {
    int fd;
    size_t have; /* bytes in `in` that are not read yet */
    char in[LINE_SIZE];
};

enum control_result {
    CONTROL_LINE,
    CONTROL_INCOMPLETE, /* no complete line has arrived */
    CONTROL_CLOSED,     /* closed by the peer, or broken */
    CONTROL_INVALID,    /* too long, or not printable ASCII */
};

void control_begin(struct control *control, int fd);

/* Stores the next line without its line feed. Never waits. */
enum control_result control_read(struct control *control, char line[LINE_SIZE]);
/* Waits for it until `deadline_ns` of the monotonic clock; after that it reads nothing, so that a
 * peer that sends lines without a pause cannot hold up a loop of the caller. */
enum control_result control_wait(struct control *control, char line[LINE_SIZE],
                                 uint64_t deadline_ns);
/* Sends a line. Returns false if it was not handed to the kernel within a second. */
bool control_send(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends a line. Returns false if it was not handed to the kernel until the deadline. */
bool control_send_until(struct control *control, const char *line, uint64_t deadline_ns);
/* Waits until the peer's host has acknowledged all lines. Returns false if that does not happen
 * until the deadline, or if the peer sends anything or closes the connection meanwhile. */
bool control_flush(struct control *control, uint64_t deadline_ns);

enum field_kind {
    FIELD_NUMBER,  /* uint64_t, 0 to `max` */
    FIELD_DECIMAL, /* double, 0 to 1e15 */
    FIELD_WORD,    /* uint64_t: an index of `words`, which has `max` elements */
    FIELD_TEXT,    /* char[max], with the terminating 0 */
};

struct line_field {
    const char *name;
    size_t offset; /* of the member in the struct */
    enum field_kind kind;
    uint64_t max;
    const char *const *words;
};

/* Returns whether the line begins with `word`, alone or before a space. */
bool line_is(const char *line, const char *word);
/* Stores the fields of `line` in the struct `into`. Returns NULL, or the reason for a failure. */
const char *line_read(const char *line, const struct line_field *fields, size_t count, void *into);
/* Writes the word and the fields of the struct `from` that are not 0 or empty. */
void line_write(char line[LINE_SIZE], const char *word, const struct line_field *fields,
                size_t count, const void *from);

#endif
