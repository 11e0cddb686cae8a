/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for every table by its schema. Integers are written whole: a reader that keeps numbers as
 * doubles is off by up to 128 ns in a time, which int64-keeping readers (Python, jq 1.7) are not.
 */
#include "table_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vocabulary.h"

#define ESCAPED_MAX 6 /* bytes that one byte of a text becomes at most: \u001f */

static char *put(char *out, const char *text, size_t size) {
    memcpy(out, text, size);
    return out + size;
}

static char *put_integer(char *out, int64_t value) {
    char digits[20];
    size_t count = 0;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (value < 0)
        *out++ = '-';
    do
        digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (count)
        *out++ = digits[--count];
    return out;
}

static char *put_real(char *out, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return put(out, "null", 4);
    return out + sprintf(out, "%.17g", value);
}

static char *put_string(char *out, const char *text, size_t size) {
    *out++ = '"';
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F) {
            out += sprintf(out, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            *out++ = '\\';
        *out++ = (char)c;
    }
    *out++ = '"';
    return out;
}

static char *put_text(char *out, const struct table *table, unsigned type, int64_t value) {
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    if (type == TYPE_WORD)
        return put_string(out, word_text((enum word)value), strlen(word_text((enum word)value)));
    if (type == TYPE_ADDRESS) {
        size = text_store_address(table->texts, value, address);
        return put_string(out, address, size);
    }
    const char *text = text_store_get(table->texts, value, &size);
    return put_string(out, text, size);
}

static char *put_value(char *out, const struct table *table, unsigned type, int64_t value) {
    switch (type) {
    case TYPE_INT: return put_integer(out, value);
    case TYPE_REAL: return put_real(out, value);
    case TYPE_BOOL: return value ? put(out, "true", 4) : put(out, "false", 5);
    default: return put_text(out, table, type, value);
    }
}

static char *put_row(char *out, const struct table *table, const struct row *row) {
    const struct schema *schema = table->schema;
    for (unsigned c = 0; c < schema->column_count; c++) {
        const struct column *column = &schema->columns[c];
        *out++ = c ? ',' : '{';
        out = put_string(out, column->name, strlen(column->name));
        *out++ = ':';
        out = row_known(row, c) ? put_value(out, table, column->type, row->value[c])
                                : put(out, "null", 4);
    }
    *out++ = '}';
    return out;
}

/* The room that the widest row could take: every text of the greatest length, all of it escaped. */
size_t table_json_room(const struct schema *schema) {
    size_t room = 4;
    for (size_t c = 0; c < schema->column_count; c++)
        room += strlen(schema->columns[c].name) + 40 +
                (schema->columns[c].type == TYPE_TEXT ? (size_t)TEXT_MAX * ESCAPED_MAX : 64);
    return room;
}

size_t table_json(const struct table *table, struct table_cursor *cursor, char *out, size_t room) {
    size_t widest = table_json_room(table->schema);
    char *begin = out;
    struct row row;
    while (room - (size_t)(out - begin) >= widest) {
        bool first = cursor->row == 0;
        if (!table_next(table, cursor, &row))
            break;
        *out++ = first ? '[' : ',';
        *out++ = '\n';
        out = put_row(out, table, &row);
    }
    return (size_t)(out - begin);
}
