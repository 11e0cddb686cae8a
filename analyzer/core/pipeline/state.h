/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an analysis, which the files of this folder share. */
#ifndef WIRETALE_PIPELINE_STATE_H
#define WIRETALE_PIPELINE_STATE_H

#include "pipeline/batch.h"
#include "pipeline/options.h"

/* --- reader.c: all threads read and decode chunks, and process the parts of a task -------------
 */

struct reader;

/* Starts the threads; returns NULL if that fails. `input` must live until reader_close(). With one
 * job there are none. */
struct reader *reader_start(struct reader_input *input);

/* Returns the next batch, which must be returned by reader_done(); this thread reads with the
 * others until it is complete. Returns NULL if none came for a while (`*ended` false) or if there
 * are no more. */
struct batch *reader_next(struct reader *reader, bool *ended);
void reader_done(struct reader *reader);

/* Calls `task` for each part below `parts`, from this thread and those that are idle. `worker` is
 * the number of the thread, 0 for this one. Returns when all parts are done. */
typedef void reader_task(void *context, unsigned worker, uint32_t part);
void reader_run(struct reader *reader, reader_task *task, void *context, uint32_t parts);

/* Stops reading; from then on the caller owns the input. Batches that were read can still be
 * processed, and tasks run. Repeated calls do nothing. */
void reader_stop(struct reader *reader);
/* Stops reading and frees the batches; tasks can still be run. */
void reader_release(struct reader *reader);
void reader_close(struct reader *reader);

/* --- the analysis ------------------------------------------------------------------------------
 */

#define MEMORY_LIMIT ((size_t)512 << 20)

struct analysis {
    struct analysis_options options;
    struct reading_mode mode;
    struct reader_input input; /* the reader's while it runs */
    struct reader *reader;     /* NULL before the first step and after the end */
    struct updater updater;
    struct local_exchanges local;
    struct row_sink local_rows; /* of the thread that completes chunks */
    struct analysis_totals totals;
    struct batch *batch; /* at hand */
    uint64_t packets;    /* number of its first packet, from 1 on; see row_sink.at */
    int64_t now_ns;      /* ns; the clock at the end of the batch before, if `timed` */
    bool timed;          /* the tables of flows have a clock */
    bool by_flow;        /* the shards process the batch by flow */
    struct interface_range interfaces; /* see number_interfaces() */
    struct flow_begin *begins;         /* by flow, of a shard of a cluster that is finished */
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

/* Ends all datagrams and flows, and makes the tables from the rows of the workers. If memory runs
 * out, the rows are incomplete and `out_of_memory` is set. */
void finish_flows(struct analysis *analysis);
/* Makes the tables from the rows of the workers and of the local network. */
void complete_rows(struct analysis *analysis);

/* Numbers the interfaces of complete rows: those of the input from `first` on, then the ones before
 * that rows refer to. `range` must live as long. */
void number_interfaces(const struct merged_input *input, uint32_t first, struct row_sink *rows,
                       struct interface_range *range);

/* analysis.c */
/* Processes the batches that were read, after which the input is the caller's. */
void finish_reading(struct analysis *analysis);
void note_totals(struct analysis *analysis);
/* Opens the rows of a worker, and of the local network, which must have none. */
void open_rows(struct analysis *analysis, struct worker *worker);
void open_local(struct analysis *analysis);

#endif
