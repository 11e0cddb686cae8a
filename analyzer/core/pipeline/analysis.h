/* SPDX-License-Identifier: Apache-2.0 */
/* The whole pass: packets in, tables out. */
#ifndef WIRETALE_ANALYSIS_H
#define WIRETALE_ANALYSIS_H

#include "base/error.h"
#include "pipeline/interface_counts.h"

enum packets_wanted { PACKETS_NONE, PACKETS_ALL, PACKETS_OF_FLOWS };

struct analysis_options {
    const char *filter;           /* libpcap expression, NULL for none */
    int64_t start_ns;             /* packets before are left out; INT64_MIN for none */
    int64_t end_ns;               /* packets at or after are left out; INT64_MAX for none */
    uint32_t flows_most;          /* live flows */
    enum packets_wanted packets;  /* PACKETS_OF_FLOWS: no other table but captures is filled */
    const uint32_t *packet_flows; /* flow numbers, for PACKETS_OF_FLOWS */
    size_t packet_flow_count;
    uint64_t packet_rows_most;
    int64_t block_size;   /* bytes of each block of a TCP stream that shows no header; 0 for none */
    bool interfaces_only; /* no other table is filled */
};

struct analysis_totals {
    uint64_t packets; /* read, filtered ones included */
    uint64_t flows;
    uint64_t evicted_flows; /* finished early because too many were live */
    uint64_t evicted_datagrams;
    uint64_t filter_refused; /* packets of a link type that the filter cannot be compiled for */
    uint64_t packet_rows_dropped; /* beyond packet_rows_most */
    uint64_t events_dropped;      /* beyond the bound for a flow or for all */
    uint64_t blocks_dropped;      /* rows beyond the bound */
};

struct analysis;

/* NULL with the error said. Paths are copied. */
struct analysis *analysis_open(const char *const *paths, size_t count,
                               const struct analysis_options *options, struct error *error);
void analysis_close(struct analysis *analysis);

/* Reads up to about `most` packets; false at the end of the input, or with error->kind set. */
bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error);

/* Finishes every live flow and fills the tables; before the end of the input, with what was read.
 */
bool analysis_finish(struct analysis *analysis, struct error *error);

/* Whether the tables are filled. */
bool analysis_finished(const struct analysis *analysis);

const struct table *analysis_table(const struct analysis *analysis, enum table_number number);
/* What the rules over the tables make of them: a row of findings, in the order of the columns.
 * Texts may be NULL, `flow` -1, `cost` and `impact` NaN. False without memory. */
struct finding {
    const char *code, *severity, *scope;
    int64_t flow;
    const char *sentence;
    double cost;
    const char *cost_unit;
    double impact;
    const char *evidence, *advice, *filter;
};
bool analysis_add_finding(struct analysis *analysis, const struct finding *finding);

struct analysis_totals analysis_totals(const struct analysis *analysis);
uint64_t analysis_bytes_read(const struct analysis *analysis);
uint64_t analysis_bytes_total(const struct analysis *analysis);
/* After analysis_finish(). */
struct excluded_packets analysis_excluded(const struct analysis *analysis);

#endif
