/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259) to a stream, which can be memory (fmemopen). Texts are bytes of file names
 * and interfaces, so they need not be UTF-8: a byte that belongs to no character becomes a lone
 * surrogate, as with Python's surrogateescape, and the name can be restored. The core has a writer
 * of its own, which writes whole tables into buffers with the same escapes (export/table_json.c).
 */
#include "common/json.h"

#include <math.h>
#include <string.h>

#include "common/utf8.h"

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

/* C1 controls and controls of bidirectional text: a terminal that obeys them shows another text. */
static bool is_control(uint32_t code) {
    return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

char *json_put_special(char *out, const char **text, size_t size) {
    const char *character = *text;
    unsigned char first = (unsigned char)*character;
    size_t length = utf8_character(character, size);
    *text += length ? length : 1;
    if (!length)
        return out + sprintf(out, "\\udc%02x", first);
    if (length == 1 && (first < ' ' || first == 0x7f))
        return out + sprintf(out, "\\u%04x", first);
    if (length > 1 && is_control(utf8_code_point(character, length)))
        return out + sprintf(out, "\\u%04x", utf8_code_point(character, length));
    if (first == '"' || first == '\\')
        *out++ = '\\';
    memcpy(out, character, length);
    return out + length;
}

void json_text(struct json *json, const char *name, const char *value) {
    begin(json, name);
    if (!value) {
        fputs("null", json->out);
        return;
    }
    fputc('"', json->out);
    for (const char *end = value + strlen(value); value < end;) {
        char character[JSON_SPECIAL_SIZE];
        char *after = json_put_special(character, &value, (size_t)(end - value));
        fwrite(character, 1, (size_t)(after - character), json->out);
    }
    fputc('"', json->out);
}
