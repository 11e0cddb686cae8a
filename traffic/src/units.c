/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit whole_units[] = {
    {"", 1},          {"B", 1},           {"k", 1e3},          {"K", 1e3},    {"kB", 1e3},
    {"KB", 1e3},      {"M", 1e6},         {"MB", 1e6},         {"G", 1e9},    {"GB", 1e9},
    {"T", 1e12},      {"TB", 1e12},       {"Ki", 1024},        {"KiB", 1024}, {"Mi", 1048576},
    {"MiB", 1048576}, {"Gi", 1073741824}, {"GiB", 1073741824}, {NULL, 0},
};
static const struct unit duration_units[] = {
    {"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},   {"\xc2\xb5s", 1e3},
    {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {NULL, 0},
};
static const struct unit bit_rate_units[] = {
    {"", 1},       {"bit", 1},      {"bps", 1},      {"k", 1e3},      {"K", 1e3},
    {"kbit", 1e3}, {"Kbit", 1e3},   {"kbps", 1e3},   {"kbit/s", 1e3}, {"M", 1e6},
    {"Mbit", 1e6}, {"Mbps", 1e6},   {"Mbit/s", 1e6}, {"G", 1e9},      {"Gbit", 1e9},
    {"Gbps", 1e9}, {"Gbit/s", 1e9}, {"bit/s", 1},    {NULL, 0},
};
static const struct unit packet_rate_units[] = {
    {"pps", 1}, {"kpps", 1e3}, {"Kpps", 1e3}, {"Mpps", 1e6}, {NULL, 0},
};

/* A number of digits, and what follows it. No sign, no exponent, no hexadecimal, no "inf". */
static bool read_number(const char *text, double *number, const char **rest) {
    size_t digits = strspn(text, "0123456789."), points = 0;
    for (size_t i = 0; i < digits; i++)
        points += text[i] == '.';
    if (digits == points || points > 1 || digits > 30)
        return false;
    char copy[32];
    memcpy(copy, text, digits);
    copy[digits] = 0;
    *number = strtod(copy, NULL);
    *rest = text + digits;
    return isfinite(*number);
}

static bool read_with_unit(const char *text, const struct unit *units, double *value) {
    const char *rest;
    if (!read_number(text, value, &rest))
        return false;
    for (; units->name; units++)
        if (!strcmp(rest, units->name)) {
            *value *= units->factor;
            return true;
        }
    return false;
}

static bool to_whole(double value, uint64_t *whole) {
    if (value < 0 || value >= 0x1p63)
        return false;
    *whole = (uint64_t)llround(value);
    return true;
}

bool units_whole(const char *text, uint64_t *value) {
    double number;
    return read_with_unit(text, whole_units, &number) && to_whole(number, value);
}

bool units_duration(const char *text, uint64_t *ns) {
    double number;
    return read_with_unit(text, duration_units, &number) && to_whole(number, ns);
}

bool units_rate(const char *text, double *bits_per_s, double *packets_per_s) {
    *bits_per_s = *packets_per_s = 0;
    if (read_with_unit(text, bit_rate_units, bits_per_s))
        return true;
    *bits_per_s = 0;
    return read_with_unit(text, packet_rate_units, packets_per_s);
}

struct size_range {
    uint64_t from, to, step;
};

/* "64", "64-1472" or "64-1472:8". */
static bool read_range(char *item, struct size_range *range) {
    char *step = strchr(item, ':'), *to = strchr(item, '-');
    range->step = 1;
    if (step && to) {
        *step++ = 0;
        if (!units_whole(step, &range->step) || !range->step)
            return false;
    } else if (step) {
        return false;
    }
    if (to)
        *to++ = 0;
    if (!units_whole(item, &range->from))
        return false;
    range->to = range->from;
    return !to || (units_whole(to, &range->to) && range->to >= range->from);
}

static const char *add_range(const struct size_range *range, uint32_t least, uint32_t most,
                             uint32_t *sizes, uint32_t *count) {
    if (range->from < least)
        return "a block has at least 32 bytes, its header (33 with a file)";
    if (range->to > most)
        return "too large";
    for (uint64_t size = range->from; size <= range->to; size += range->step) {
        if (*count == SIZES_MOST)
            return "more than 65536 sizes: give ranges a larger step, as in 64-65000:64";
        sizes[(*count)++] = (uint32_t)size;
    }
    return NULL;
}

static const char *read_sizes(char *text, uint32_t least, uint32_t most, uint32_t *sizes,
                              uint32_t *count) {
    const char *why = NULL;
    char *item;
    while (!why && (item = strsep(&text, ","))) {
        struct size_range range;
        why = read_range(item, &range) ? add_range(&range, least, most, sizes, count)
                                       : "wanted sizes and ranges as in 64,512,1000-1400:100";
    }
    return why;
}

uint32_t *units_sizes(const char *text, uint32_t least, uint32_t most, uint32_t *count,
                      const char **why) {
    char copy[SIZES_TEXT_MOST + 1];
    *count = 0;
    if (strlen(text) > SIZES_TEXT_MOST) {
        *why = "more than 1000 characters";
        return NULL;
    }
    strcpy(copy, text);
    uint32_t *sizes = malloc(SIZES_MOST * sizeof *sizes);
    *why = sizes ? read_sizes(copy, least, most, sizes, count) : "out of memory";
    if (*why) {
        free(sizes);
        return NULL;
    }
    return sizes;
}

static const struct rate_unit rate_units[] = {
    {'k', "Kbit/s", 1024 / 8.0},       {'K', "KB/s", 1024},
    {'m', "Mbit/s", 1048576 / 8.0},    {'M', "MB/s", 1048576},
    {'g', "Gbit/s", 1073741824 / 8.0}, {'G', "GB/s", 1073741824},
};

const struct rate_unit *units_rate_unit(char letter) {
    for (size_t i = 0; i < sizeof rate_units / sizeof *rate_units; i++)
        if (rate_units[i].letter == letter)
            return &rate_units[i];
    return NULL;
}

bool units_rate_letter(const char *text) {
    return strlen(text) == 1 && units_rate_unit(*text);
}
