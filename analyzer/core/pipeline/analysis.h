/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis: capture files in, tables out.
 *
 * analysis_open(), analysis_step() until it returns false, analysis_finish(), then the tables,
 * analysis_close(). Only one thread at a time may use an analysis; the caller should release the
 * GIL around the calls that take long. */
#ifndef WIRETALE_ANALYSIS_H
#define WIRETALE_ANALYSIS_H

#include "base/error.h"
#include "pipeline/interface_counts.h"

enum packets_wanted { PACKETS_NONE, PACKETS_ALL, PACKETS_OF_FLOWS };

struct analysis_options {
    const char *filter;           /* libpcap expression; NULL for none */
    int64_t start_ns;             /* ns; earlier packets are skipped; INT64_MIN for none */
    int64_t end_ns;               /* ns; packets at or after it are skipped; INT64_MAX for none */
    uint32_t flows_most;          /* limit of live flows */
    enum packets_wanted packets;  /* PACKETS_OF_FLOWS fills no other table but interfaces */
    const uint32_t *packet_flows; /* flow numbers, for PACKETS_OF_FLOWS */
    size_t packet_flow_count;
    uint64_t packet_rows_most;
    int64_t block_size;   /* bytes of each block of a TCP stream that shows no header; 0 for none */
    bool interfaces_only; /* fills only that table */
};

struct analysis_totals {
    uint64_t packets; /* packets read, filtered ones included */
    uint64_t flows;
    uint64_t evicted_flows; /* ended early because too many were live */
    uint64_t evicted_datagrams;
    uint64_t filter_refused; /* packets of a link type for which the filter cannot be compiled */
    uint64_t packet_rows_dropped;     /* rows above packet_rows_most */
    uint64_t events_dropped;          /* rows above the bound of a flow or of all */
    uint64_t blocks_dropped;          /* rows above the bound */
    uint64_t queries_dropped;         /* rows above the bound */
    uint64_t turns_dropped;           /* rows above the bound of a flow or of all */
    uint64_t bytes_read, bytes_total; /* of the files; the total is 0 if unknown */
    struct excluded_packets excluded; /* set by analysis_finish() */
    struct judged_sums judged;        /* likewise */
    bool finished;                    /* the tables are filled */
};

struct analysis;

/* Returns NULL with `error` set if a path or an option cannot be used. Paths are copied. */
struct analysis *analysis_open(const char *const *paths, size_t count,
                               const struct analysis_options *options, struct error *error);
void analysis_close(struct analysis *analysis);

/* Reads about `most` packets. Returns false at the end of the input, or with error->kind set. */
bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error);

/* Ends all live flows and fills the tables. If the input has not ended, the results cover the
 * packets read so far. Returns false with ERROR_MEMORY if a table is incomplete. Must be called
 * before tables are read; a second call does nothing. */
bool analysis_finish(struct analysis *analysis, struct error *error);

/* The table belongs to the analysis and is valid until analysis_close(). */
const struct table *analysis_table(const struct analysis *analysis, enum table_number number);
/* A finding, as a row of its table. Texts may be NULL, `flow` -1, `cost` and `impact` NaN.
 * analysis_add_finding() returns false without memory. */
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

/* Initials of QUIC, one text for each flow that has some; analyzer/quic.py decrypts them. */
size_t analysis_initials(const struct analysis *analysis);
/* Returns the Initials of a number below analysis_initials(), each after its size as 16 bits. */
const char *analysis_initial(const struct analysis *analysis, size_t number, size_t *size);
/* Sets the names of their ClientHello; NULL if it has none. They are visible after
 * analysis_settle_hellos(). Returns false without memory. */
bool analysis_set_hello(struct analysis *analysis, size_t number, const char *server_name,
                        const char *alpn);
void analysis_settle_hellos(struct analysis *analysis);

/* They are good up to the next call for the analysis. */
const struct analysis_totals *analysis_totals(const struct analysis *analysis);

#endif
