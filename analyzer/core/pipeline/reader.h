/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before the flows, in a thread of its own: packets are read, left out or counted,
 * decoded, and handed on in batches, in order. */
#ifndef WIRETALE_READER_H
#define WIRETALE_READER_H

#include "pipeline/batch.h"

struct reader;

/* Starts the thread; NULL when that is not possible. The analysis' captures, filter, counts and
 * paths belong to it until reader_stop(); only texts of paths that a batch brought may be read.
 */
struct reader *reader_start(struct analysis *analysis);

/* The next batch, to be given back by reader_done(); NULL when none came for a while (`*ended`
 * false) or when there are no more. */
struct batch *reader_next(struct reader *ahead, bool *ended);
void reader_done(struct reader *ahead);

/* Calls `take` once for each part of the batch at hand; the reading thread, while it has no batch
 * to fill, does its share. Returns when all are taken. */
typedef void part_taken(struct worker *worker, struct batch *batch, unsigned part);
void reader_process_shards(struct reader *ahead, struct batch *batch, part_taken *take);

/* Ends the reading. Batches that were read can still be taken. */
void reader_stop(struct reader *ahead);
void reader_close(struct reader *ahead);

#endif
