/* SPDX-License-Identifier: Apache-2.0 */
#include "rate_trace.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_units.h"

/* The number in a line, which may end with blanks. */
static bool read_time(char *line, uint64_t *ms) {
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1]))
        line[--length] = 0;
    return parse_count(line, 0, UINT32_MAX, ms);
}

static bool has_room(struct rate_trace *trace, uint32_t *room) {
    if (trace->count < *room)
        return true;
    uint32_t more = *room ? *room * 2 : 1024;
    uint32_t *times =
        more <= 2 * OPPORTUNITIES_MOST ? realloc(trace->times_ms, more * sizeof *times) : NULL;
    if (!times)
        return false;
    trace->times_ms = times;
    *room = more;
    return true;
}

static const char *read_lines(struct rate_trace *trace, FILE *file) {
    char line[64];
    uint32_t room = 0;
    uint64_t ms, last = 0;
    while (fgets(line, sizeof line, file)) {
        if (!read_time(line, &ms) || ms < last)
            return "expected whole milliseconds, never less than the line before";
        if (trace->count == OPPORTUNITIES_MOST || !has_room(trace, &room))
            return "too long: at most 20,000,000 lines";
        trace->times_ms[trace->count++] = (uint32_t)(last = ms);
    }
    if (ferror(file))
        return "cannot be read to its end";
    return last ? NULL : "expected at least one line above 0: it is how long the trace lasts";
}

const char *rate_trace_read(struct rate_trace *trace, const char *path, char *problem,
                            size_t problem_bytes) {
    *trace = (struct rate_trace){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(problem, problem_bytes, "%s: %s", path, strerror(errno));
        return problem;
    }
    const char *wrong = read_lines(trace, file);
    fclose(file);
    if (!wrong)
        return NULL;
    snprintf(problem, problem_bytes, "%s: line %u: %s", path, trace->count + 1, wrong);
    rate_trace_free(trace);
    return problem;
}

void rate_trace_free(struct rate_trace *trace) {
    free(trace->times_ms);
    *trace = (struct rate_trace){0};
}

int64_t rate_trace_time_ns(const struct rate_trace *trace, uint64_t number) {
    int64_t round = (int64_t)(number / trace->count), length = trace->times_ms[trace->count - 1];
    return (round * length + trace->times_ms[number % trace->count]) * 1000000;
}

double rate_trace_mean_bps(const struct rate_trace *trace) {
    return (double)trace->count * OPPORTUNITY_BYTES * 8e3 / trace->times_ms[trace->count - 1];
}

uint64_t rate_trace_find(const struct rate_trace *trace, int64_t time_ns) {
    int64_t length_ns = (int64_t)trace->times_ms[trace->count - 1] * 1000000;
    /* A round's last opportunity is at the next one's start: look from the round before. */
    uint64_t rounds = time_ns > 0 ? (uint64_t)((time_ns - 1) / length_ns) : 0;
    uint64_t low = rounds * trace->count, high = low + 2 * (uint64_t)trace->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (rate_trace_time_ns(trace, middle) >= time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
