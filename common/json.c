/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259) to a stream, which can be memory (fmemopen). Texts are bytes of file names
 * and interfaces, so they need not be UTF-8: a byte that belongs to no character becomes a lone
 * surrogate, as with Python's surrogateescape, and the name can be restored. The core has a writer
 * of its own, which writes whole tables into buffers (table/). */
#include "common/json.h"

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

/* Length of the character in bytes; 0 if it is not well-formed (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *at) {
    size_t length = *at >= 0xf5 ? 0 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool is_out_of_range = (*at == 0xed && at[1] >= 0xa0) || (*at == 0xf4 && at[1] >= 0x90);
    return is_overlong || is_out_of_range ? 0 : length;
}

/* C1 controls and controls of bidirectional text: a terminal that obeys them shows another text. */
static bool is_control(uint32_t code) {
    return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Code point of a character of two or three bytes. */
static uint32_t code_point(const unsigned char *at, size_t length) {
    uint32_t code = at[0] & (length == 2 ? 0x1f : 0x0f);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

/* Writes a text without its quotes. Text that is not plain must be escaped, because names come from
 * the network and from other users. */
static void put_escaped(FILE *out, const unsigned char *text) {
    while (*text) {
        size_t length = *text < 0x80 ? 1 : utf8_length(text);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text < ' ' || *text == 0x7f)
            fprintf(out, "\\u%04x", *text);
        else if (!length)
            fprintf(out, "\\udc%02x", *text);
        else if ((length == 2 || length == 3) && is_control(code_point(text, length)))
            fprintf(out, "\\u%04x", code_point(text, length));
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
}

void json_text(struct json *json, const char *name, const char *value) {
    begin(json, name);
    if (!value) {
        fputs("null", json->out);
        return;
    }
    fputc('"', json->out);
    put_escaped(json->out, (const unsigned char *)value);
    fputc('"', json->out);
}
