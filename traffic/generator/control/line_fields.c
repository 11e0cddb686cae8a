/* SPDX-License-Identifier: Apache-2.0 */
#include "control/line_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.,:/+"

bool line_is(const char *line, const char *word) {
    size_t length = strlen(word);
    return !strncmp(line, word, length) && (line[length] == ' ' || !line[length]);
}

static bool read_number(const char *value, uint64_t max, uint64_t *number) {
    size_t digits = strspn(value, "0123456789");
    if (!digits || digits > 19 || value[digits])
        return false;
    *number = strtoull(value, NULL, 10);
    return *number <= max;
}

static bool read_decimal(const char *value, double *number) {
    char *end;
    if (!value[0] || !strchr("0123456789", value[0]) ||
        strspn(value, "0123456789.e+-") != strlen(value))
        return false;
    *number = strtod(value, &end);
    return !*end && isfinite(*number) && *number >= 0 && *number < 1e15;
}

static bool read_word(const char *value, const struct line_field *field, uint64_t *number) {
    for (uint64_t i = 0; i < field->max; i++)
        if (!strcmp(field->words[i], value)) {
            *number = i;
            return true;
        }
    return false;
}

static int hex_digit(char c) {
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_text(const char *value, uint64_t room, char *text) {
    size_t used = 0;
    for (; *value; value++) {
        int c = (unsigned char)*value;
        if (c == '%') {
            int high = hex_digit(value[1]), low = high < 0 ? -1 : hex_digit(value[2]);
            c = low < 0 ? 0 : high * 16 + low;
            value += 2;
        } else if (!strchr(PLAIN, c)) {
            return false;
        }
        if (!c || used + 1 >= room)
            return false;
        text[used++] = (char)c;
    }
    text[used] = 0;
    return true;
}

static bool read_value(const char *value, const struct line_field *field, void *into) {
    void *at = (char *)into + field->offset;
    switch (field->kind) {
    case FIELD_NUMBER: return read_number(value, field->max, at);
    case FIELD_DECIMAL: return read_decimal(value, at);
    case FIELD_WORD: return read_word(value, field, at);
    case FIELD_TEXT: return read_text(value, field->max, at);
    }
    return false;
}

static const struct line_field *find_field(const char *name, const struct line_field *fields,
                                           size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(fields[i].name, name))
            return &fields[i];
    return NULL;
}

const char *line_read(const char *line, const struct line_field *fields, size_t count, void *into) {
    char copy[LINE_SIZE];
    if (strlen(line) >= sizeof copy)
        return "a line of more than 4096 bytes";
    strcpy(copy, line);
    char *rest = copy, *item = strsep(&rest, " ");
    while ((item = strsep(&rest, " "))) {
        char *value = strchr(item, '=');
        if (!value)
            return "a field without a value";
        *value++ = 0;
        const struct line_field *field = find_field(item, fields, count);
        if (!field)
            return "an unknown field";
        if (!read_value(value, field, into))
            return "a value out of its bounds";
    }
    return NULL;
}

static size_t write_text(char *to, size_t room, const char *text) {
    size_t used = 0;
    for (; *text && used + 4 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr(PLAIN, c))
            to[used++] = (char)c;
        else
            used += (size_t)sprintf(to + used, "%%%02X", c);
    }
    to[used] = 0;
    return used;
}

static size_t write_value(char *to, size_t room, const struct line_field *field, const void *at) {
    switch (field->kind) {
    case FIELD_NUMBER: return (size_t)snprintf(to, room, "%llu", *(const unsigned long long *)at);
    case FIELD_DECIMAL: return (size_t)snprintf(to, room, "%.17g", *(const double *)at);
    case FIELD_WORD: return write_text(to, room, field->words[*(const uint64_t *)at]);
    case FIELD_TEXT: return write_text(to, room, at);
    }
    return 0;
}

/* Whether it is what a line without the field means. */
static bool is_nothing(const struct line_field *field, const void *at) {
    switch (field->kind) {
    case FIELD_DECIMAL: return *(const double *)at == 0;
    case FIELD_TEXT: return !*(const char *)at;
    default: return *(const uint64_t *)at == 0;
    }
}

size_t line_write(char *line, const char *word, const struct line_field *fields, size_t count,
                  const void *from) {
    size_t used = (size_t)snprintf(line, LINE_SIZE, "%s", word);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)from + fields[i].offset;
        if (is_nothing(&fields[i], at) || used + strlen(fields[i].name) + 3 >= LINE_SIZE)
            continue;
        used += (size_t)sprintf(line + used, " %s=", fields[i].name);
        used += write_value(line + used, LINE_SIZE - used, &fields[i], at);
    }
    return used;
}
