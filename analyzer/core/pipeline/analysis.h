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

/* Returns an analysis without files, which is finished: its tables and totals are to be filled.
 * NULL without memory. */
struct analysis *analysis_empty(struct analysis_totals **totals);
/* Returns the tables, to which findings and the names of QUIC's servers are added, and from which
 * the packets so far can be taken between steps. */
struct row_sink *analysis_sink(struct analysis *analysis);

/* The table belongs to the analysis and is valid until analysis_close(). */
const struct table *analysis_table(const struct analysis *analysis, enum table_number number);

/* They are good up to the next call for the analysis. */
const struct analysis_totals *analysis_totals(const struct analysis *analysis);

#endif
