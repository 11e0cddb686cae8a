/* SPDX-License-Identifier: Apache-2.0 */
/* Rates, sizes, times and counts as people write them: 10M, 1.5Gbit/s, 64KiB, 200 ms, 10k. All
 * programs accept the same spellings: tests/analyzer/unit_spellings.toml has the list and the
 * grammar. */
#ifndef WIRETALE_QUANTITY_H
#define WIRETALE_QUANTITY_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUANTITY_TEXT_MOST 64

enum quantity_kind {
    QUANTITY_RATE,  /* bit/s */
    QUANTITY_SIZE,  /* bytes */
    QUANTITY_TIME,  /* ns */
    QUANTITY_COUNT, /* of anything */
    QUANTITY_PPS,   /* packets a second */
};

static inline size_t quantity_digits(const char *text) {
    return strspn(text, "0123456789");
}

/* The length of a number of digits with at most one point, and perhaps an exponent; 0: there is
 * none. strtod() alone would also take signs, hexadecimal, "inf" and "nan". */
static inline size_t quantity_number_length(const char *text) {
    size_t whole = quantity_digits(text), length = whole, fraction = 0;
    if (text[length] == '.')
        length += 1 + (fraction = quantity_digits(text + length + 1));
    if (!whole && !fraction)
        return 0;
    size_t sign = length + 1;
    if (text[length] != 'e' && text[length] != 'E')
        return length;
    sign += text[sign] == '+' || text[sign] == '-';
    size_t digits = quantity_digits(text + sign);
    return digits ? sign + digits : length;
}

/* 1000 for k, 1024 for ki; `*unit` is behind it. */
static inline double quantity_prefix(const char **unit) {
    static const char letters[] = "kmgt";
    const char *at = **unit ? strchr(letters, **unit | 0x20) : NULL;
    if (!at)
        return 1;
    ++*unit;
    bool binary = (**unit | 0x20) == 'i';
    *unit += binary;
    return pow(binary ? 1024 : 1000, (double)(at - letters + 1));
}

static inline bool quantity_is_one_of(const char *unit, const char *const *names) {
    for (; *names; names++)
        if (!strcasecmp(unit, *names))
            return true;
    return false;
}

/* Nanoseconds in the unit; 0: no unit of time. */
static inline double quantity_time_unit(const char *unit) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {
        {"", 1e9},   {"s", 1e9},         {"sec", 1e9},       {"ms", 1e6},
        {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3}, {"ns", 1},
        {"m", 60e9}, {"min", 60e9},      {"h", 3600e9},      {"d", 86400e9},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(unit, units[i].name))
            return units[i].ns;
    return 0;
}

/* What the number is to be multiplied by; 0: no unit of that kind. A rate is in bits: a B that
 * stands for bytes is refused. */
static inline double quantity_factor(const char *unit, enum quantity_kind kind) {
    static const char *const rates[] = {"",    "bit", "bits", "bit/s", "bits/s",
                                        "bps", "b",   "b/s",  NULL};
    static const char *const sizes[] = {"", "b", "byte", "bytes", NULL};
    static const char *const counts[] = {"", NULL}, *const packets[] = {"pps", NULL};
    static const char *const *const names[] = {[QUANTITY_RATE] = rates,
                                               [QUANTITY_SIZE] = sizes,
                                               [QUANTITY_COUNT] = counts,
                                               [QUANTITY_PPS] = packets};
    if (kind == QUANTITY_TIME)
        return quantity_time_unit(unit);
    double prefix = quantity_prefix(&unit);
    bool is_bytes = kind == QUANTITY_RATE && *unit == 'B' && strncasecmp(unit, "bit", 3);
    return !is_bytes && quantity_is_one_of(unit, names[kind]) ? prefix : 0;
}

/* The number in bit/s, bytes, ns. False for anything else. */
static inline bool quantity_read(const char *text, enum quantity_kind kind, double *value) {
    char copy[QUANTITY_TEXT_MOST + 1];
    text += strspn(text, " \t");
    size_t length = strlen(text), number = quantity_number_length(text);
    while (length && strchr(" \t", text[length - 1]))
        length--;
    if (!number || length > QUANTITY_TEXT_MOST)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    const char *unit = copy + number + strspn(copy + number, " \t");
    double factor = quantity_factor(unit, kind);
    *value = strtod(copy, NULL) * factor;
    return factor > 0 && isfinite(*value);
}

/* The same as a whole number; of a size or count, a fraction is refused. */
static inline bool quantity_whole(const char *text, enum quantity_kind kind, uint64_t *whole) {
    double value;
    if (!quantity_read(text, kind, &value))
        return false;
    size_t digits = quantity_digits(text);
    if (kind != QUANTITY_TIME && digits && digits < 20 && !text[digits]) { /* exact beyond 2^53 */
        *whole = strtoull(text, NULL, 10);
        return true;
    }
    bool is_whole = kind == QUANTITY_TIME || fabs(value - rint(value)) <= fmin(value * 1e-12, 0.3);
    if (!is_whole || value >= 0x1p63)
        return false;
    *whole = (uint64_t)llrint(value);
    return true;
}

/* A port is no count: digits only. */
static inline bool quantity_port(const char *text, uint64_t *port) {
    size_t digits = quantity_digits(text);
    if (!digits || digits > 5 || text[digits])
        return false;
    *port = strtoull(text, NULL, 10);
    return *port >= 1 && *port <= 65535;
}

#endif
