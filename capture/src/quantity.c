/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar, which all programs share, is that of tests/unit_spellings.toml. */
#include "quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS      "0123456789"
#define BLANKS      " \t"
#define TEXT_MOST   40
#define VALUE_BOUND 0x1p63L
#define NEAR        1e-9L /* what a decimal fraction loses as a binary one */

struct unit {
    const char *name;
    long double factor;
};

static const struct unit prefixes[] = {
    {"", 1},           {"k", 1e3},           {"m", 1e6},
    {"g", 1e9},        {"t", 1e12},          {"ki", 1024},
    {"mi", 1048576.0}, {"gi", 1073741824.0}, {"ti", 1099511627776.0},
};
static const char *const size_units[] = {"", "b", "byte", "bytes", NULL};
static const char *const count_units[] = {"", NULL};

static const struct unit time_units[] = {
    {"ns", 1},    {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3}, {"ms", 1e6},    {"s", 1e9},
    {"sec", 1e9}, {"m", 60e9}, {"min", 60e9},      {"h", 3600e9},      {"d", 86400e9},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The length of "e6" or "e-3" at the beginning; 0 for none. */
static size_t exponent_length(const char *text) {
    if (*text != 'e' && *text != 'E')
        return 0;
    size_t sign = text[1] == '+' || text[1] == '-', digits = strspn(text + 1 + sign, DIGITS);
    return digits ? 1 + sign + digits : 0;
}

/* The length of a decimal number: no sign, no hexadecimal, no "inf"; 0 for none. */
static size_t number_length(const char *text) {
    size_t whole = strspn(text, DIGITS), length = whole, digits = whole;
    if (text[length] == '.') {
        size_t fraction = strspn(text + length + 1, DIGITS);
        digits += fraction;
        length += 1 + fraction;
    }
    return digits ? length + exponent_length(text + length) : 0;
}

/* Number and unit, with blanks before, between and behind them; `bare` is the unit of a number that
 * has none. */
static bool split(const char *text, const char *bare, long double *number,
                  char unit[TEXT_MOST + 1]) {
    char digits[TEXT_MOST + 1] = "";
    text += strspn(text, BLANKS);
    size_t length = number_length(text);
    if (!length || strlen(text) > TEXT_MOST)
        return false;
    memcpy(digits, text, length);
    *number = strtold(digits, NULL);
    text += length + strspn(text + length, BLANKS);
    length = strcspn(text, BLANKS);
    if (text[length + strspn(text + length, BLANKS)])
        return false; /* more than one word behind the number */
    memcpy(unit, text, length);
    unit[length] = '\0';
    if (!length)
        strcpy(unit, bare);
    return isfinite(*number);
}

static bool is_one_of(const char *const *units, const char *name) {
    for (; *units; units++)
        if (!strcasecmp(*units, name))
            return true;
    return false;
}

/* A whole number with a prefix and one of the units. */
static bool read_whole(const char *text, const char *bare, const char *const *units,
                       uint64_t *whole) {
    char unit[TEXT_MOST + 1];
    long double number;
    if (!split(text, bare, &number, unit))
        return false;
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        size_t length = strlen(prefixes[i].name);
        if (strncasecmp(unit, prefixes[i].name, length) || !is_one_of(units, unit + length))
            continue;
        long double value = number * prefixes[i].factor, nearest = roundl(value);
        if (nearest >= VALUE_BOUND || fabsl(value - nearest) > NEAR)
            return false;
        *whole = (uint64_t)nearest;
        return true;
    }
    return false;
}

bool quantity_bytes(const char *text, const char *bare, uint64_t *bytes) {
    return read_whole(text, bare, size_units, bytes);
}

bool quantity_count(const char *text, uint64_t *count) {
    return read_whole(text, "", count_units, count);
}

bool quantity_ns(const char *text, const char *bare, int64_t *ns) {
    char unit[TEXT_MOST + 1];
    long double number;
    if (!split(text, bare, &number, unit))
        return false;
    for (size_t i = 0; i < COUNT_OF(time_units); i++) {
        if (strcasecmp(unit, time_units[i].name))
            continue;
        long double value = roundl(number * time_units[i].factor);
        *ns = value < VALUE_BOUND ? (int64_t)value : 0;
        return value < VALUE_BOUND;
    }
    return false;
}
