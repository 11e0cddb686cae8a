/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before the flows, in a thread of its own: packets are read, left out or counted,
 * decoded, and handed on in batches, in order. */
#ifndef WIRETALE_READER_H
#define WIRETALE_READER_H

#include "pipeline/batch.h"
#include "pipeline/bpf_filter.h"
#include "pipeline/interface_counts.h"

struct reader;

/* All that the reader's thread needs. It owns this, and adds to the updater's encapsulations, until
 * reader_stop(); only texts of encapsulations that a batch brought may be read meanwhile. */
struct reader_input {
    struct merged_input *files;
    struct bpf_filter *filter; /* NULL for none */
    int64_t start_ns, end_ns;  /* packets outside [start_ns, end_ns) are left out */
    struct interface_counts counts;
    struct excluded_packets excluded;
    struct updater *updater;
    bool by_flow; /* batches are sorted by flow */
    bool small;   /* the files: little memory will be used */
};

/* Starts the thread; NULL if that is not possible. `input` must live until reader_close(). */
struct reader *reader_start(struct reader_input *input);

/* The next batch, to be given back by reader_done(); NULL when none came for a while (`*ended`
 * false) or when there are no more. */
struct batch *reader_next(struct reader *reader, bool *ended);
void reader_done(struct reader *reader);

/* Calls `take` once for each part of the batch at hand; the reading thread, while it has no batch
 * to fill, does its share. Returns when all are taken. */
typedef void shard_processor(struct worker *worker, struct batch *batch, unsigned part);
void reader_process_shards(struct reader *reader, struct batch *batch, shard_processor *take);

/* Ends the reading. Batches that were read can still be taken. */
void reader_stop(struct reader *reader);
void reader_close(struct reader *reader);

#endif
