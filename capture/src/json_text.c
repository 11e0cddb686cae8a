/* SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"

#include <stdio.h>
#include <string.h>

static void put(struct json_text *json, const char *text, size_t length) {
    if (json->full || json->used + length > json->room) {
        json->full = true;
        return;
    }
    memcpy(json->text + json->used, text, length);
    json->used += length;
}

static void put_text(struct json_text *json, const char *text) {
    put(json, text, strlen(text));
}

/* Names of interfaces may be any bytes: what is not ASCII is written as U+FFFD. */
static void put_quoted(struct json_text *json, const char *value) {
    put_text(json, "\"");
    for (; *value; value++) {
        char escaped[8];
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c >= 0x80)
            snprintf(escaped, sizeof escaped, "\\ufffd");
        else if (c < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        else
            snprintf(escaped, sizeof escaped, "%c", c);
        put_text(json, escaped);
    }
    put_text(json, "\"");
}

static void put_name(struct json_text *json, const char *name) {
    if (json->more)
        put_text(json, ",");
    json->more = true;
    if (!name)
        return;
    put_quoted(json, name);
    put_text(json, ":");
}

void json_begin(struct json_text *json, const char *name, char bracket) {
    put_name(json, name);
    put(json, &bracket, 1);
    json->more = false;
}

void json_end(struct json_text *json, char bracket) {
    put(json, &bracket, 1);
    json->more = true;
}

void json_string(struct json_text *json, const char *name, const char *value) {
    put_name(json, name);
    put_quoted(json, value);
}

void json_number(struct json_text *json, const char *name, int64_t value) {
    char text[24];
    put_name(json, name);
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_text(json, text);
}

void json_bool(struct json_text *json, const char *name, bool value) {
    put_name(json, name);
    put_text(json, value ? "true" : "false");
}

void json_null(struct json_text *json, const char *name) {
    put_name(json, name);
    put_text(json, "null");
}
