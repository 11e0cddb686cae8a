/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the control connection: a word, then fields NAME=VALUE, parted by single spaces.
 * In values, all but letters, digits and -_.,:/+ is written as %XX. */
#ifndef WIRETALE_LINE_FIELDS_H
#define WIRETALE_LINE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SIZE 4096u /* bytes with the line feed */

enum field_kind { FIELD_NUMBER, FIELD_DECIMAL, FIELD_WORD, FIELD_TEXT };

struct line_field {
    const char *name;
    size_t offset; /* in the struct that it is read into */
    enum field_kind kind;
    uint64_t max;             /* number: the highest; word: how many; text: bytes with the 0 */
    const char *const *words; /* of which the number is stored */
};

/* Whether the line begins with `word`, alone or before a space. */
bool line_is(const char *line, const char *word);

/* Reads all fields of `line` into `into`: NULL, or what is wrong. */
const char *line_read(const char *line, const struct line_field *fields, size_t count, void *into);

/* Writes the fields that are not 0. Returns the length. The room must be LINE_MOST. */
size_t line_write(char *line, const char *word, const struct line_field *fields, size_t count,
                  const void *from);

#endif
