/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json_text.h"

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

/* Bytes of the character; 0: no well-formed one (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *at) {
    size_t length = *at >= 0xf5 ? 0 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool is_beyond = (*at == 0xed && at[1] >= 0xa0) || (*at == 0xf4 && at[1] >= 0x90);
    return is_overlong || is_beyond ? 0 : length;
}

/* C1 controls and the controls of bidirectional text, which show another text than is there. */
static bool is_steering(uint32_t code) {
    return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Of a character of two or three bytes. */
static uint32_t code_of(const unsigned char *at, size_t length) {
    uint32_t code = at[0] & (length == 2 ? 0x1f : 0x0f);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

/* A byte of a file's name that is no part of UTF-8 becomes a lone surrogate, as with Python's
 * surrogateescape, so that the name can be read back. */
static void put_text(FILE *out, const unsigned char *text) {
    for (; *text; text++) {
        size_t length = *text < 0x80 ? 1 : utf8_length(text);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text < ' ' || *text == 0x7f)
            fprintf(out, "\\u%04x", *text);
        else if (!length)
            fprintf(out, "\\udc%02x", *text);
        else if ((length == 2 || length == 3) && is_steering(code_of(text, length)))
            fprintf(out, "\\u%04x", code_of(text, length)), text += length - 1;
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
