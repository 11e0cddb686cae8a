/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before the flows, in a thread of its own: packets are read, left out or counted,
 * decoded, and handed on in batches, in order. */
#ifndef WIRETALE_READ_AHEAD_H
#define WIRETALE_READ_AHEAD_H

#include "analysis_state.h"

/* Packets of a batch: enough that most of a flow's come together, few enough for a cache. */
#define BATCH         98304u
#define MARK_PACKETS  128u /* between two marks */
#define BATCH_HEADERS 1024u

/* How far the reading had come after some packets of a batch. */
struct mark {
    uint32_t count;      /* of the batch's arrivals */
    uint64_t bytes_read; /* of the files, so far */
    int64_t now_ns;      /* the latest time that two packets in a row reached */
    bool timed;          /* it is known */
};

/* An arrival of a batch whose turn it is. */
struct turn {
    uint32_t hash;
    uint32_t packet; /* number in the batch */
};

struct batch {
    struct arrival arrivals[BATCH];
    struct arrival_rest rests[BATCH];      /* of some arrivals, from the first on */
    struct headers headers[BATCH_HEADERS]; /* that arrivals point to, from the first on */
    struct turn order[BATCH];              /* the arrivals' turns as they came */
    struct turn turns[BATCH];              /* those of a flow together */
    struct mark marks[BATCH / MARK_PACKETS + 1];
    size_t rests_kept, headers_kept, mark_count;
    size_t count;     /* of arrivals: packets that concern somebody */
    uint64_t packets; /* read, those left out included */
    bool out_of_memory;
};

struct read_ahead;

/* Starts the thread; NULL when that is not possible. The analysis' captures, filter, counts and
 * paths belong to it until read_ahead_stop(); only texts of paths that a batch brought may be read.
 */
struct read_ahead *read_ahead_start(struct analysis *analysis);

/* The next batch, to be given back by read_ahead_done(); NULL when none came for a while (`*ended`
 * false) or when there are no more. */
struct batch *read_ahead_next(struct read_ahead *ahead, bool *ended);
void read_ahead_done(struct read_ahead *ahead);

/* Ends the reading. Batches that were read can still be taken. */
void read_ahead_stop(struct read_ahead *ahead);
void read_ahead_close(struct read_ahead *ahead);

#endif
