/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/units.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/quantity.h"

bool units_size(const char *text, uint64_t *bytes) {
    return quantity_whole(text, QUANTITY_SIZE, bytes);
}

bool units_count(const char *text, uint64_t *count) {
    return quantity_whole(text, QUANTITY_COUNT, count);
}

bool units_duration(const char *text, uint64_t *ns) {
    return quantity_whole(text, QUANTITY_TIME, ns);
}

bool units_port(const char *text, uint64_t *port) {
    return quantity_port(text, port);
}

bool units_rate(const char *text, double *bits_per_s, double *packets_per_s) {
    *bits_per_s = *packets_per_s = 0;
    if (quantity_read(text, QUANTITY_RATE, bits_per_s))
        return true;
    *bits_per_s = 0;
    return quantity_read(text, QUANTITY_PPS, packets_per_s);
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
        if (!units_size(step, &range->step) || !range->step)
            return false;
    } else if (step) {
        return false;
    }
    if (to)
        *to++ = 0;
    if (!units_size(item, &range->from))
        return false;
    range->to = range->from;
    return !to || (units_size(to, &range->to) && range->to >= range->from);
}

static const char *add_range(const struct size_range *range, uint32_t min, uint32_t max,
                             uint32_t *sizes, uint32_t *count) {
    if (range->from < min)
        return "expected at least 32 bytes, the header of a block (33 with a file)";
    if (range->to > max)
        return "too large";
    for (uint64_t size = range->from; size <= range->to; size += range->step) {
        if (*count == MAX_SIZES)
            return "expected at most 65536 sizes: give ranges a larger step, as in 64-65000:64";
        sizes[(*count)++] = (uint32_t)size;
    }
    return NULL;
}

static const char *read_sizes(char *text, uint32_t min, uint32_t max, uint32_t *sizes,
                              uint32_t *count) {
    const char *error = NULL;
    char *item;
    while (!error && (item = strsep(&text, ","))) {
        struct size_range range;
        error = read_range(item, &range) ? add_range(&range, min, max, sizes, count)
                                         : "expected sizes and ranges as in 64,512,1000-1400:100";
    }
    return error;
}

uint32_t *units_sizes(const char *text, uint32_t min, uint32_t max, uint32_t *count,
                      const char **error) {
    char copy[MAX_SIZES_TEXT + 1];
    *count = 0;
    if (strlen(text) > MAX_SIZES_TEXT) {
        *error = "expected at most 1000 characters";
        return NULL;
    }
    strcpy(copy, text);
    uint32_t *sizes = malloc(MAX_SIZES * sizeof *sizes);
    *error = sizes ? read_sizes(copy, min, max, sizes, count) : "out of memory";
    if (*error) {
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
