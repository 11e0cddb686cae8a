/* SPDX-License-Identifier: Apache-2.0 */
/* Writes any table as JSON by its schema. Integers are exact; a reader that stores numbers as
 * doubles loses up to 128 ns of a time, a reader with 64-bit integers (Python, jq 1.7) does not.
 *
 * Control characters of C1 and of bidirectional text are escaped, because a terminal or editor that
 * interprets them would display a different text. */
#include "export/export.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"

#define ESCAPED_MAX 6  /* largest expansion of one byte of text: \u001f, \udce9 */
#define VALUE_ROOM  64 /* bytes of any value but text */
#define DIGITS_MAX  20 /* digits of an integer */
#define KEY_ROOM    32 /* bytes of a key with punctuation, always copied as a whole */

/* The prefixes of the values: comma or brace, name, colon. */
struct keys {
    char text[COLUMNS_MAX][KEY_ROOM];
    uint8_t size[COLUMNS_MAX];
};

#define COLUMN(name, type, unit, meaning)                                                          \
    _Static_assert(sizeof #name + 3 <= KEY_ROOM, "the name of column " #name " is too long");
#define TABLE(name, columns, meaning) columns(COLUMN)
TABLES(TABLE)
#undef TABLE

static char *put(char *out, const char *text, size_t size) {
    memcpy(out, text, size);
    return out + size;
}

/* "00" to "99" */
static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Converts two digits at a time and copies a fixed number of bytes, so that no loop depends on the
 * length. */
static char *put_integer(char *out, int64_t value) {
    char digits[2 * DIGITS_MAX];
    size_t first = DIGITS_MAX;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (rest < 10 && value >= 0) { /* the common case */
        *out = (char)('0' + rest);
        return out + 1;
    }
    if (value < 0)
        *out++ = '-';
    for (; rest >= 10; rest /= 100)
        memcpy(&digits[first -= 2], &pairs[rest % 100 * 2], 2);
    if (rest)
        digits[--first] = (char)('0' + rest);
    memcpy(out, &digits[first], DIGITS_MAX);
    return out + (DIGITS_MAX - first);
}

/* 17 digits restore every double. JSON has no NaN or infinity, so they become null. sprintf()
 * follows LC_NUMERIC, which Python leaves at "C"; a program must not change it. */
static char *put_real(char *out, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return put(out, "null", 4);
    return out + sprintf(out, "%.17g", value);
}

static bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

static char *put_string(char *out, const char *text, size_t size) {
    const char *end = text + size;
    *out++ = '"';
    while (text < end) {
        if (is_plain((unsigned char)*text))
            *out++ = *text++;
        else
            out = json_put_special(out, &text, (size_t)(end - text));
    }
    *out++ = '"';
    return out;
}

static char *put_text(char *out, const struct table *table, unsigned type, int64_t value) {
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    const char *text = string_table_text(table->texts, type, value, address, &size);
    return put_string(out, text, size);
}

static char *put_value(char *out, const struct table *table, unsigned type, int64_t value) {
    switch (type) {
    case TYPE_INT:
    case TYPE_TIME:
    case TYPE_DURATION: return put_integer(out, value);
    case TYPE_REAL: return put_real(out, value);
    case TYPE_BOOL: return value ? put(out, "true", 4) : put(out, "false", 5);
    default: return put_text(out, table, type, value);
    }
}

static bool is_wanted(const struct json_form *form, size_t column) {
    return !form->wanted || form->wanted[column];
}

/* Prepares the keys once per piece, so that a value needs one copy of fixed size before it. */
static void make_keys(struct keys *keys, const struct schema *schema,
                      const struct json_form *form) {
    for (size_t c = 0; c < schema->column_count; c++) {
        char *end = keys->text[c];
        if (!is_wanted(form, c))
            continue;
        *end++ = ',';
        end = put_string(end, schema->columns[c].name, strlen(schema->columns[c].name));
        *end++ = ':';
        keys->size[c] = (uint8_t)(end - keys->text[c]);
    }
}

/* `out` must have table_json_room() bytes: nothing is checked per value. */
static char *put_row(char *out, const struct table *table, const struct keys *keys,
                     const struct row *row, bool with_null) {
    const struct schema *schema = table->schema;
    char *begin = out;
    *out = '{';
    for (unsigned c = 0; c < schema->column_count; c++) {
        bool known = row_known(row, c);
        if (!keys->size[c] || (!known && !with_null))
            continue;
        memcpy(out, keys->text[c], KEY_ROOM);
        out += keys->size[c];
        out = known ? put_value(out, table, schema->columns[c].type, row->value[c])
                    : put(out, "null", 4);
    }
    *begin = '{';
    out += out == begin;
    *out++ = '}';
    return out;
}

static bool is_long(unsigned type) {
    return type == TYPE_TEXT || type == TYPE_PATH;
}

/* The bound assumes that every text has its maximum length and is escaped throughout. */
size_t table_json_room(const struct schema *schema) {
    size_t room = 4;
    for (size_t c = 0; c < schema->column_count; c++)
        room += KEY_ROOM + VALUE_ROOM +
                (is_long(schema->columns[c].type) ? (size_t)TEXT_MAX * ESCAPED_MAX : 0);
    return room;
}

size_t table_json(const struct table *table, struct table_cursor *cursor,
                  const struct json_form *form, char *out, size_t room) {
    size_t widest = table_json_room(table->schema);
    char *begin = out;
    struct keys keys = {0};
    struct row row;
    make_keys(&keys, table->schema, form);
    while (room - (size_t)(out - begin) >= widest) {
        bool first = cursor->row == 0;
        if (!table_next(table, cursor, &row))
            break;
        if (!form->lines) {
            *out++ = first ? '[' : ',';
            *out++ = '\n';
        }
        out = put_row(out, table, &keys, &row, !form->lines);
        if (form->lines)
            *out++ = '\n';
    }
    return (size_t)(out - begin);
}
