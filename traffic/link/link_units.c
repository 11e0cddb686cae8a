/* SPDX-License-Identifier: Apache-2.0 */
#include "link_units.h"

#include <stdlib.h>
#include <string.h>

#include "common/units.h"

#define QUEUE_MOST_PACKETS UINT64_C(100000000)
#define QUEUE_MOST_BYTES   UINT64_C(1000000000000)

bool parse_rate(const char *text, double *bps) {
    return units_parse_decimal(text, UNIT_RATE, bps) && *bps >= 1 && *bps <= RATE_MOST_BPS;
}

bool parse_duration(const char *text, int64_t *ns) {
    uint64_t whole;
    if (!units_parse_whole(text, UNIT_TIME, "", &whole) || whole > DURATION_MOST_NS)
        return false;
    *ns = (int64_t)whole;
    return true;
}

bool parse_share(const char *text, double *share) {
    return units_parse_decimal(text, UNIT_SHARE, share) && *share <= 1;
}

bool parse_number(const char *text, double least, double most, double *number) {
    return units_parse_decimal(text, UNIT_COUNT, number) && *number >= least && *number <= most;
}

bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *count) {
    return units_parse_whole(text, UNIT_COUNT, "", count) && *count >= least && *count <= most;
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
    if (units_parse_whole(plain, UNIT_COUNT, "", packets))
        return *packets >= 1 && *packets <= QUEUE_MOST_PACKETS;
    *packets = 0;
    return units_parse_whole(text, UNIT_SIZE, "", bytes) && *bytes >= 1 &&
           *bytes <= QUEUE_MOST_BYTES;
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
