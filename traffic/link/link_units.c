/* SPDX-License-Identifier: Apache-2.0 */
#include "link_units.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../quantity.h"

#define QUEUE_MOST_PACKETS UINT64_C(100000000)
#define QUEUE_MOST_BYTES   UINT64_C(1000000000000)

struct unit {
    const char *name;
    double factor;
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
    return quantity_read(text, QUANTITY_RATE, bps) && *bps >= 1 && *bps <= RATE_MOST_BPS;
}

bool parse_duration(const char *text, int64_t *ns) {
    uint64_t whole;
    if (!quantity_whole(text, QUANTITY_TIME, &whole) || whole > DURATION_MOST_NS)
        return false;
    *ns = (int64_t)whole;
    return true;
}

bool parse_share(const char *text, double *share) {
    return parse_unit(text, share_units, 0, 1, share);
}

bool parse_number(const char *text, double least, double most, double *number) {
    return parse_unit(text, plain_units, least, most, number);
}

/* All digits of a seed count, which may have more than a prefix could need. */
static bool read_digits(const char *text, uint64_t *count) {
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
    return !*text;
}

bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *count) {
    return (read_digits(text, count) || quantity_whole(text, QUANTITY_COUNT, count)) &&
           *count >= least && *count <= most;
}

bool parse_queue(const char *text, uint64_t *packets, uint64_t *bytes) {
    char plain[32];
    size_t length = strlen(text);
    *packets = *bytes = 0;
    if (length >= sizeof plain)
        return false;
    memcpy(plain, text, length + 1);
    if (length && plain[length - 1] == 'p')
        plain[length - 1] = 0;
    if (quantity_whole(plain, QUANTITY_COUNT, packets))
        return *packets >= 1 && *packets <= QUEUE_MOST_PACKETS;
    *packets = 0;
    return quantity_whole(text, QUANTITY_SIZE, bytes) && *bytes >= 1 && *bytes <= QUEUE_MOST_BYTES;
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
