/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an analysis, which the files of this folder share. */
#ifndef WIRETALE_PIPELINE_STATE_H
#define WIRETALE_PIPELINE_STATE_H

#include "pipeline/options.h"
#include "pipeline/reader.h"

#define MEMORY_LIMIT ((size_t)512 << 20)

struct analysis {
    struct analysis_options options;
    struct reader_input input; /* the reader's while it runs */
    struct reader *reader;     /* NULL before the first step and after the end */
    struct updater updater;
    struct analysis_totals totals;
    struct batch *batch;     /* at hand */
    uint64_t packets;        /* number of its first packet, from 1 on; see row_sink.at */
    struct shard_state kept; /* of a shard, from analysis_finish() on */
    int64_t now_ns;          /* ns; the clock at the end of the batch before, if `timed` */
    bool timed;              /* the tables of flows have a clock */
    bool by_flow;            /* the shards process the batch by flow */
};

/* Returns the rows of the analysis: those of the first worker, which the others join. */
static inline struct row_sink *rows_of(struct analysis *analysis) {
    return &analysis->updater.workers[0].sink;
}

/* process.c */
/* Processes a batch; no worker runs before and after. */
void process_batch(struct analysis *analysis, struct batch *batch);
/* Returns whether the order of packets may decide which flow is evicted, which rows are dropped and
 * which list cannot grow, because the batch, or the end of all flows without one, could reach a
 * limit. Each check assumes the most that it could add. */
bool is_near_limit(struct analysis *analysis, const struct batch *batch);

/* Ends all datagrams and flows, and makes the tables of what the workers wrote. If memory runs out,
 * the rows are incomplete and `out_of_memory` is set. */
void finish_flows(struct analysis *analysis);

#endif
