/* SPDX-License-Identifier: Apache-2.0 */
#include "link_units.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit rate_units[] = {
    {"", 1},       {"bit", 1},    {"bps", 1},    {"k", 1e3},    {"kbit", 1e3},
    {"kbps", 1e3}, {"m", 1e6},    {"mbit", 1e6}, {"mbps", 1e6}, {"g", 1e9},
    {"gbit", 1e9}, {"gbps", 1e9}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {NULL, 0},
};
static const struct unit size_units[] = {
    {"b", 1}, {"kb", 1e3}, {"kib", 1024}, {"mb", 1e6}, {"mib", 1048576}, {NULL, 0},
};
static const struct unit share_units[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};

/* strtod takes "nan", "inf", hexadecimal and leading blanks as well: none of them is meant here. */
static bool parse_unit(const char *text, const struct unit *units, double least, double most,
                       double *value) {
    if (!isdigit((unsigned char)text[0]) && !(text[0] == '.' && isdigit((unsigned char)text[1])) &&
        text[0] != '-')
        return false;
    if (text[0] == '-' && !isdigit((unsigned char)text[1]) && text[1] != '.')
        return false;
    if (strpbrk(text, "xX"))
        return false;
    char *end;
    double number = strtod(text, &end);
    for (const struct unit *unit = units; unit->name; unit++)
        if (!strcasecmp(end, unit->name)) {
            *value = number * unit->factor;
            return isfinite(*value) && *value >= least && *value <= most;
        }
    return false;
}

bool parse_rate(const char *text, double *bps) {
    return parse_unit(text, rate_units, 1, RATE_MOST_BPS, bps);
}

bool parse_duration(const char *text, int64_t *ns) {
    double value;
    if (!strcmp(text, "0"))
        return *ns = 0, true;
    if (!parse_unit(text, time_units, 0, DURATION_MOST_NS, &value))
        return false;
    *ns = llround(value);
    return true;
}

bool parse_share(const char *text, double *share) {
    return parse_unit(text, share_units, 0, 1, share);
}

bool parse_number(const char *text, double least, double most, double *number) {
    return parse_unit(text, plain_units, least, most, number);
}

bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *count) {
    uint64_t value = 0;
    if (!text[0])
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *count = value;
    return !*text && value >= least && value <= most;
}

bool parse_queue(const char *text, uint64_t *packets, uint64_t *bytes) {
    char plain[32];
    double size;
    size_t length = strlen(text);
    if (length >= sizeof plain)
        return false;
    memcpy(plain, text, length + 1);
    if (length && plain[length - 1] == 'p')
        plain[length - 1] = 0;
    *packets = *bytes = 0;
    if (parse_count(plain, 1, 100000000, packets))
        return true;
    if (!parse_unit(text, size_units, 1, 1e12, &size))
        return false;
    *packets = 0;
    *bytes = (uint64_t)size;
    return true;
}

static bool parse_span(char *text, struct time_span *span) {
    span->share = 1;
    char *share = strchr(text, ':'), *end = strchr(text, '-');
    if (share)
        *share++ = 0;
    if (!end)
        return false;
    *end++ = 0;
    if (share && !parse_share(share, &span->share))
        return false;
    return parse_duration(text, &span->start_ns) && parse_duration(end, &span->end_ns) &&
           span->start_ns < span->end_ns;
}

bool parse_spans(char *text, struct span_list *list) {
    list->count = 0;
    for (char *part; (part = strsep(&text, ","));) {
        if (list->count == SPANS_MOST || !parse_span(part, &list->spans[list->count]))
            return false;
        list->count++;
    }
    return true;
}

static bool parse_range(char *text, struct index_range *range) {
    char *end = strchr(text, '-');
    if (end)
        *end++ = 0;
    if (!parse_count(text, 1, UINT64_MAX, &range->first))
        return false;
    range->last = range->first;
    return !end || parse_count(end, range->first, UINT64_MAX, &range->last);
}

bool parse_ranges(char *text, struct index_range **ranges, uint32_t *count) {
    size_t parts = 1;
    for (const char *at = text; *at; at++)
        parts += *at == ',';
    if (parts > RANGES_MOST)
        return false;
    struct index_range *list = calloc(parts, sizeof *list);
    if (!list)
        return false;
    uint32_t found = 0;
    for (char *part; (part = strsep(&text, ",")); found++)
        if (!parse_range(part, &list[found]) ||
            (found && list[found].first <= list[found - 1].last)) {
            free(list);
            return false;
        }
    free(*ranges);
    *ranges = list;
    *count = found;
    return true;
}
