/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the counts of an analysis. */
#ifndef WIRETALE_PIPELINE_OPTIONS_H
#define WIRETALE_PIPELINE_OPTIONS_H

#include "pipeline/interface_counts.h"

enum packets_wanted { PACKETS_NONE, PACKETS_ALL, PACKETS_OF_FLOWS };

struct analysis;

struct analysis_options {
    const char *const *names;     /* what rows and messages show instead of each path; NULL: the
                                     paths */
    const char *filter;           /* libpcap expression; NULL for none */
    int64_t start_ns;             /* ns; earlier packets are skipped; INT64_MIN for none */
    int64_t end_ns;               /* ns; packets at or after it are skipped; INT64_MAX for none */
    uint32_t flows_most;          /* limit of live flows */
    unsigned jobs;                /* threads; 0 for all processors; rows do not depend on it */
    enum packets_wanted packets;  /* PACKETS_OF_FLOWS fills no other table but interfaces and
                                     limit_spans */
    bool limit_spans;             /* fills that table, for the flows whose packets are wanted */
    const uint32_t *packet_flows; /* flow numbers, for PACKETS_OF_FLOWS */
    size_t packet_flow_count;
    const struct analysis *first; /* of the same files with the same options, finished: then packets
                                     that cannot concern these flows are skipped; NULL for none */
    uint64_t packet_rows_most;
    int64_t block_size;   /* bytes of each block of a TCP stream that shows no header; 0 for none */
    bool interfaces_only; /* fills only that table */
    size_t flow_files;    /* only packets of so many files begin flows; 0 for all */
    bool shard;           /* of `wiretale split`: notes the position of each row */
    /* Of a shard: now_ns of the whole capture at its end, at least and at most; INT64_MIN if
     * unknown. */
    int64_t clock_ns, clock_most_ns;
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
    bool near_limit;                  /* flows might have been near a limit that they share */
    bool finished;                    /* the tables are filled */
};

/* Of a shard of `wiretale split`: what is not in its tables and totals. */
struct shard_state {
    struct capture_ports *ports;
    uint64_t *mirrored; /* by interface */
    size_t mirrored_count;
    uint64_t initial_flows, selections; /* flows that were counted against limits */
    uint64_t missing;                   /* segments without payload that was needed */
    uint64_t uncertain;                 /* flows of which clock_most_ns decides if they were over */
};

#endif
