/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before the flows, in a thread of its own: packets are read, left out or counted,
 * decoded, and handed on in batches, in order. */
#ifndef WIRETALE_READ_AHEAD_H
#define WIRETALE_READ_AHEAD_H

#include "pipeline/batch.h"

struct read_ahead;

/* Starts the thread; NULL when that is not possible. The analysis' captures, filter, counts and
 * paths belong to it until read_ahead_stop(); only texts of paths that a batch brought may be read.
 */
struct read_ahead *read_ahead_start(struct analysis *analysis);

/* The next batch, to be given back by read_ahead_done(); NULL when none came for a while (`*ended`
 * false) or when there are no more. */
struct batch *read_ahead_next(struct read_ahead *ahead, bool *ended);
void read_ahead_done(struct read_ahead *ahead);

/* Calls `take` once for each part of the batch at hand; the reading thread, while it has no batch
 * to fill, does its share. Returns when all are taken. */
typedef void part_taken(struct worker *worker, struct batch *batch, unsigned part);
void read_ahead_share(struct read_ahead *ahead, struct batch *batch, part_taken *take);

/* Ends the reading. Batches that were read can still be taken. */
void read_ahead_stop(struct read_ahead *ahead);
void read_ahead_close(struct read_ahead *ahead);

#endif
