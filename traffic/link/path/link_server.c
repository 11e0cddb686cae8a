/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when packets begin and end. With a rate, the fraction of a nanosecond is carried on to
 * the next packet, so that a million packets take exactly their time, also with a schedule. With a
 * trace, a packet takes as many opportunities as its bytes need, and leaves the rest of the last
 * one to the next packet if that is waiting. */
#include "path/link_server.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"

/* During a stall nothing begins. */
int64_t link_server_start(const struct link_server *server, int64_t arrival_ns) {
    int64_t start = arrival_ns > server->free_ns ? arrival_ns : server->free_ns;
    const struct time_span *stall;
    while ((stall = span_list_find(&server->spec->stalls, start - server->origin_ns)))
        start = server->origin_ns + stall->end_ns;
    return start;
}

static int64_t send_by_rate(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    double fraction = start_ns == server->free_ns ? server->fraction_ns : 0;
    double took = bytes * 8e9 / server->spec->rate_bps + fraction, whole = floor(took);
    server->fraction_ns = took - whole;
    return start_ns + (int64_t)whole;
}

/* The rate may change while a packet is being sent: each step carries its share of the bits. */
static int64_t send_by_schedule(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    const struct link_spec *spec = server->spec;
    const struct schedule_step *end = spec->steps + spec->steps_count;
    double at = (double)(start_ns - server->origin_ns), bits = bytes * 8.0;
    at += start_ns == server->free_ns ? server->fraction_ns : 0;
    const struct schedule_step *step = link_spec_step(spec, start_ns - server->origin_ns);
    for (const struct schedule_step *next = step ? step + 1 : spec->steps;; next++) {
        int64_t since = next > spec->steps ? next[-1].at_ns : -1;
        double rate = link_spec_rate_bps(spec, since);
        double room = next < end ? ((double)next->at_ns - at) * rate / 1e9 : INFINITY;
        if (rate <= 0) /* without limit */
            bits = 0;
        if (bits <= room) {
            at += bits > 0 ? bits * 1e9 / rate : 0;
            break;
        }
        bits -= room;
        at = (double)next->at_ns;
    }
    server->fraction_ns = at - floor(at);
    return server->origin_ns + (int64_t)floor(at);
}

/* The rest of an opportunity is lost unless the next packet is there at its time. As in mahimahi,
 * an opportunity carries 1500 bytes, of one packet or of several. */
static int64_t send_by_trace(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    const struct rate_trace *trace = &server->trace;
    int64_t since = start_ns - server->origin_ns;
    if (!server->left || rate_trace_time_ns(trace, server->opportunity) < since) {
        uint64_t next = rate_trace_find(trace, since);
        bool used_up =
            next <= server->opportunity && !server->left && server->free_ns > server->origin_ns;
        server->opportunity = used_up ? server->opportunity + 1 : next;
        server->left = OPPORTUNITY_BYTES;
    }
    for (; bytes > server->left; server->left = OPPORTUNITY_BYTES) {
        bytes -= server->left;
        server->opportunity++;
    }
    server->left -= bytes;
    int64_t end = server->origin_ns + rate_trace_time_ns(trace, server->opportunity);
    return end > start_ns ? end : start_ns;
}

/* Without a rate and a trace, a packet takes no time. */
int64_t link_server_send(struct link_server *server, int64_t start_ns, uint32_t bytes) {
    int64_t end = start_ns;
    if (server->trace.count)
        end = send_by_trace(server, start_ns, bytes);
    else if (server->spec->steps_count)
        end = send_by_schedule(server, start_ns, bytes);
    else if (server->spec->rate_bps > 0)
        end = send_by_rate(server, start_ns, bytes);
    server->free_ns = end;
    server->bytes = bytes;
    return end;
}

/* Parses a line, which may end with blanks. */
static bool read_time(char *line, uint64_t *ms) {
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1]))
        line[--length] = 0;
    return units_parse_whole(line, UNIT_COUNT, "", ms) && *ms <= UINT32_MAX;
}

/* Doubles the array. Returns false if memory ran out. */
static bool has_room(struct rate_trace *trace, uint32_t *room) {
    if (trace->count < *room)
        return true;
    uint32_t more = *room ? *room * 2 : 1024;
    uint32_t *times =
        more <= 2 * MAX_OPPORTUNITIES ? realloc(trace->times_ms, more * sizeof *times) : NULL;
    if (!times)
        return false;
    trace->times_ms = times;
    *room = more;
    return true;
}

/* Returns NULL, or the reason why the line after `trace->count` is wrong. */
static const char *read_lines(struct rate_trace *trace, FILE *file) {
    char line[64];
    uint32_t room = 0;
    uint64_t ms, last = 0;
    while (fgets(line, sizeof line, file)) {
        if (!read_time(line, &ms) || ms < last)
            return "expected whole milliseconds, never less than the line before";
        if (trace->count == MAX_OPPORTUNITIES || !has_room(trace, &room))
            return "too long: at most 20,000,000 lines";
        trace->times_ms[trace->count++] = (uint32_t)(last = ms);
    }
    if (ferror(file))
        return "cannot be read to its end";
    return last ? NULL : "expected at least one line above 0: it is how long the trace lasts";
}

const char *rate_trace_read(struct rate_trace *trace, const char *path, char *error,
                            size_t error_size) {
    *trace = (struct rate_trace){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return error;
    }
    const char *reason = read_lines(trace, file);
    fclose(file);
    if (!reason)
        return NULL;
    snprintf(error, error_size, "%s: line %u: %s", path, trace->count + 1, reason);
    rate_trace_free(trace);
    return error;
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
    /* The last opportunity of a round is at the start of the next one, so search from the round
     * before. */
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
