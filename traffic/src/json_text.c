/* SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"

#include <math.h>

static void begin(struct json *json, const char *name) {
    if (json->comma)
        fputc(',', json->out);
    json->comma = true;
    if (name)
        fprintf(json->out, "\"%s\":", name);
}

void json_open(struct json *json, const char *name, char bracket) {
    begin(json, name);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_close(struct json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
}

void json_count(struct json *json, const char *name, int64_t value) {
    begin(json, name);
    if (value < 0)
        fputs("null", json->out);
    else
        fprintf(json->out, "%lld", (long long)value);
}

void json_decimal(struct json *json, const char *name, double value, bool known) {
    begin(json, name);
    if (known && isfinite(value))
        fprintf(json->out, "%.12g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *name, bool value) {
    begin(json, name);
    fputs(value ? "true" : "false", json->out);
}

/* What is no ASCII is passed on when it is UTF-8 by its lead, and else replaced: names of files may
 * be anything. */
static size_t utf8_length(const unsigned char *at) {
    size_t length = *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return *at >= 0xf5 ? 0 : length;
}

static void put_text(FILE *out, const unsigned char *text) {
    for (; *text; text++) {
        size_t length = *text < 0x80 ? 1 : utf8_length(text);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text < ' ')
            fprintf(out, "\\u%04x", *text);
        else if (!length)
            fputs("\\ufffd", out);
        else
            fwrite(text, 1, length, out), text += length - 1;
    }
}

void json_text(struct json *json, const char *name, const char *value) {
    begin(json, name);
    if (!value) {
        fputs("null", json->out);
        return;
    }
    fputc('"', json->out);
    put_text(json->out, (const unsigned char *)value);
    fputc('"', json->out);
}
