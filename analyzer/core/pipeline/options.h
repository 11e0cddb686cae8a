/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the counts of an analysis. */
#ifndef WIRETALE_PIPELINE_OPTIONS_H
#define WIRETALE_PIPELINE_OPTIONS_H

#include "pipeline/interface_counts.h"

/* The options of users, as analyzer/options.py declares them: X(type, kind, name, value of None).
 * `kind` is a function of python/module_options.c, which takes the attribute of that name. */
#define ANALYSIS_OPTIONS(X)                                                                        \
    X(const char *, text, filter, NULL)   /* libpcap expression */                                 \
    X(int64_t, time, start_ns, INT64_MIN) /* ns; earlier packets are skipped */                    \
    X(int64_t, time, end_ns, INT64_MAX)   /* ns; packets at or after it are skipped */             \
    X(uint32_t, count, max_flows, 1)      /* limit of open flows, never None */                    \
    X(uint32_t, count, jobs, 0)           /* threads; 0: all processors. No row depends on it */   \
    X(uint32_t, count, block_size, 0)     /* bytes, in TCP streams without block headers; 0: none */

struct analysis_options {
#define X(type, kind, name, unset) type name;
    ANALYSIS_OPTIONS(X)
#undef X
};

/* The packets that become rows. PACKETS_OF_FLOWS fills no other table but interfaces, datagrams and
 * time_spans; PACKETS_IDENTIFIED, which adds to all packets what identifies them in another
 * capture, none but interfaces, datagrams and the ends in flows. */
struct wanted_packet_rows {
    enum { PACKETS_NONE, PACKETS_ALL, PACKETS_OF_FLOWS, PACKETS_IDENTIFIED } kind;
    const uint32_t *flows; /* flow numbers, for PACKETS_OF_FLOWS */
    size_t flow_count;
};

/* Returns whether no table of flows is filled. */
static inline bool has_packets_alone(const struct wanted_packet_rows *packets) {
    return packets->kind == PACKETS_OF_FLOWS || packets->kind == PACKETS_IDENTIFIED;
}

/* What one reading of the files is for, which no user chooses: likewise. A `shard` is a part
 * of captures (shard/split.h): clock_ns is now_ns at the end of all parts, and others have the rows
 * of the local network. */
#define READING_MODES(X)                                                                           \
    X(struct wanted_packet_rows, packets, packets, {0})                                            \
    X(uint64_t, rows, packet_rows_most, 0)                                                         \
    X(bool, flag, time_spans, false)      /* fills that table, for flows with wanted packets */    \
    X(bool, flag, interfaces_only, false) /* fills only that table */                              \
    X(bool, flag, running, false)         /* further files may follow */                           \
    X(bool, flag, shard, false)                                                                    \
    X(int64_t, time, clock_ns, INT64_MIN)

struct analysis;

struct reading_mode {
#define X(type, kind, name, unset) type name;
    READING_MODES(X)
#undef X
    const struct analysis *first; /* of the same files with the same options, finished: then packets
                                     that cannot concern these flows are skipped; NULL for none */
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
    uint64_t exchanges_dropped;       /* rows above the bound of a flow or of all */
    uint64_t bytes_read, bytes_total; /* of the files; the total is 0 if unknown */
    struct excluded_packets excluded; /* set by analysis_finish() */
    struct judged_sums judged;        /* likewise */
    bool near_limit;                  /* flows might have been near a limit that they share */
    bool finished;                    /* the tables are filled */
};

#endif
