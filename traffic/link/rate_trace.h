/* SPDX-License-Identifier: Apache-2.0 */
/* A rate that changes: mahimahi's format. Each line of the file is a time in whole milliseconds,
 * never less than the one before, at which 1500 bytes may leave; after the last one it begins
 * again. */
#ifndef WIRETALE_LINK_RATE_TRACE_H
#define WIRETALE_LINK_RATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPPORTUNITY_BYTES  1500u
#define OPPORTUNITIES_MOST 20000000u

struct rate_trace {
    uint32_t *times_ms;
    uint32_t count;
};

/* NULL, or what is wrong, in `problem`. */
const char *rate_trace_read(struct rate_trace *trace, const char *path, char *problem,
                            size_t problem_bytes);

void rate_trace_free(struct rate_trace *trace);

/* When opportunity `number` comes, counted from 0 on through all repetitions. */
int64_t rate_trace_time_ns(const struct rate_trace *trace, uint64_t number);

/* What it carries in the mean. */
double rate_trace_mean_bps(const struct rate_trace *trace);

/* The first opportunity at `time_ns` or later. */
uint64_t rate_trace_find(const struct rate_trace *trace, int64_t time_ns);

#endif
