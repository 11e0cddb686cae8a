/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit byte_units[] = {
    {"B", 1},
    {"k", 1e3},
    {"kB", 1e3},
    {"M", 1e6},
    {"MB", 1e6},
    {"G", 1e9},
    {"GB", 1e9},
    {"T", 1e12},
    {"TB", 1e12},
    {"Ki", 1024},
    {"KiB", 1024},
    {"Mi", 1048576},
    {"MiB", 1048576},
    {"Gi", 1073741824},
    {"GiB", 1073741824},
    {"Ti", 1099511627776.0},
    {"TiB", 1099511627776.0},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1},     {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6},    {"s", 1e9},
    {"min", 60e9}, {"m", 60e9}, {"h", 3600e9},      {"d", 86400e9}, {NULL, 0},
};

static const struct unit count_units[] = {
    {"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0},
};

static const struct unit *find_unit(const struct unit *units, const char *name) {
    for (; units->name; units++)
        if (!strcasecmp(units->name, name))
            return units;
    return NULL;
}

/* A plain decimal number: no sign, no exponent, no hexadecimal, no "inf". */
static bool read_number(const char *text, char **end, double *value) {
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    size_t length = strspn(text, "0123456789.");
    *value = strtod(text, end);
    return *end == text + length && isfinite(*value);
}

static bool read_quantity(const char *text, const struct unit *units, const char *bare,
                          double *value) {
    char *end;
    if (!read_number(text, &end, value))
        return false;
    while (*end == ' ')
        end++;
    const struct unit *unit = find_unit(units, *end ? end : bare);
    if (!unit)
        return false;
    *value *= unit->factor;
    return *value < 9e18;
}

bool quantity_bytes(const char *text, const char *bare, uint64_t *bytes) {
    double value;
    if (!read_quantity(text, byte_units, bare, &value))
        return false;
    *bytes = (uint64_t)value;
    return true;
}

bool quantity_ns(const char *text, const char *bare, int64_t *ns) {
    double value;
    if (!read_quantity(text, time_units, bare, &value))
        return false;
    *ns = (int64_t)value;
    return true;
}

bool quantity_count(const char *text, uint64_t *count) {
    double value;
    if (!read_quantity(text, count_units, "", &value) || value != floor(value))
        return false;
    *count = (uint64_t)value;
    return true;
}
