/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON writer (RFC 8259). It inserts commas; the caller must close each bracket that it opens. */
#ifndef WIRETALE_COMMON_JSON_H
#define WIRETALE_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A writer; `out` is the caller's. Begins as {.out = stream}. */
struct json {
    FILE *out;
    bool comma; /* another member precedes the next one */
};

/* Each function writes one member. If `name` is NULL, it is an element of a list. */
void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);
void json_count(struct json *json, const char *name, int64_t value); /* null if negative */
/* Writes null unless `known` and finite. */
void json_decimal(struct json *json, const char *name, double value, bool known);
void json_bool(struct json *json, const char *name, bool value);
void json_text(struct json *json, const char *name, const char *value); /* null if NULL */

/* Writes the character at `*text`, of which `size` bytes remain, with the escape that it needs, and
 * moves `*text` past it. `out` must have JSON_SPECIAL_SIZE bytes. Returns the end of the output. */
#define JSON_SPECIAL_SIZE 7 /* \udce9 and a 0 */
char *json_put_special(char *out, const char **text, size_t size);

#endif
