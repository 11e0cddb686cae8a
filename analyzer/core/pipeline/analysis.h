/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis: capture files in, tables out.
 *
 * analysis_open(), analysis_step() until it returns false, analysis_finish(), then the tables,
 * analysis_close(). Only one thread at a time may use an analysis; the caller should release the
 * GIL around the calls that take long. */
#ifndef WIRETALE_ANALYSIS_H
#define WIRETALE_ANALYSIS_H

#include "base/error.h"
#include "pipeline/options.h"

struct analysis;

/* The files of an analysis. */
struct analysis_files {
    const char *const *paths;
    const char *const *names; /* that rows and messages show; NULL: the paths */
    size_t count;
};

/* Returns NULL with `error` set if a path or an option cannot be used. All that it keeps is
 * copied, but for `mode->first`, which must live until it returns. */
struct analysis *analysis_open(const struct analysis_files *files,
                               const struct analysis_options *options,
                               const struct reading_mode *mode, struct error *error);
void analysis_close(struct analysis *analysis);

/* Reads about `most` packets. Returns false at the end of the input, or with error->kind set. */
bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error);

/* Ends all live flows and fills the tables. If the input has not ended, the results cover the
 * packets read so far. Returns false with ERROR_MEMORY if a table is incomplete. Must be called
 * before tables are read; a second call does nothing. */
bool analysis_finish(struct analysis *analysis, struct error *error);

#define OPEN_FLOW_FRAME_BITS 40u
/* Of a `running` analysis, whose files were read to their end (running.c): */

/* Gives it further files, after analysis_take(). Returns false with `error` set if they cannot be
 * used; it may go on with others. */
bool analysis_follow(struct analysis *analysis, const struct analysis_files *files,
                     struct error *error);
/* Returns a finished analysis with the rows of the flows that ended since the last call, numbered
 * from 0 on, and the rows without a flow. Interfaces of the files since come first, then those
 * before to which rows refer. NULL with `error` set without memory, after which the analysis must
 * be closed. */
struct analysis *analysis_take(struct analysis *analysis, struct error *error);
/* Returns the first packet of each open flow, in rising order: the number of its file among all
 * that were given, then OPEN_FLOW_FRAME_BITS of the frame. The caller frees it; NULL without
 * memory.
 */
uint64_t *analysis_open_flows(struct analysis *analysis, size_t *count);
/* Ends without rows the flows that are not among these, which are in rising order. */
void analysis_keep_flows(struct analysis *analysis, const uint64_t *flows, size_t count);

/* Returns an analysis without files, which is finished: its tables and totals are to be filled.
 * NULL without memory. */
struct analysis *analysis_empty(struct analysis_totals **totals);
/* Returns the tables, to which findings and the names of QUIC's servers are added, and from which
 * the packets so far can be taken between steps. */
struct row_sink *analysis_sink(struct analysis *analysis);

/* The table belongs to the analysis and is valid until analysis_close(). */
const struct table *analysis_table(const struct analysis *analysis, enum table_number number);

/* The packet that began each flow, if the mode was that of a shard and all is finished; else NULL.
 */
struct flow_begin;
const struct flow_begin *analysis_begins(const struct analysis *analysis);

/* They are good up to the next call for the analysis. */
const struct analysis_totals *analysis_totals(const struct analysis *analysis);

#endif
