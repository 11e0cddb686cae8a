/* SPDX-License-Identifier: Apache-2.0 */
/* JSON onto a stream: members part themselves by commas. */
#ifndef WIRETALE_JSON_TEXT_H
#define WIRETALE_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool comma; /* before the next member */
};

/* `name` NULL: an element of a list. */
void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);
void json_count(struct json *json, const char *name, int64_t value); /* below 0: null */
void json_decimal(struct json *json, const char *name, double value, bool known);
void json_bool(struct json *json, const char *name, bool value);
void json_text(struct json *json, const char *name, const char *value); /* NULL: null */

#endif
