/* SPDX-License-Identifier: Apache-2.0 */
/* JSON into a buffer of fixed size. What does not fit is left out, never written beyond. */
#ifndef WIRETALE_JSON_TEXT_H
#define WIRETALE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_text {
    char *text;
    size_t room, used;
    bool more; /* a comma comes before the next */
    bool full;
};

/* `name` is NULL within an array. */
void json_begin(struct json_text *json, const char *name, char bracket);
void json_end(struct json_text *json, char bracket);
void json_string(struct json_text *json, const char *name, const char *value);
void json_number(struct json_text *json, const char *name, int64_t value);
void json_bool(struct json_text *json, const char *name, bool value);
void json_null(struct json_text *json, const char *name);

#endif
