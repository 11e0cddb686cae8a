/* SPDX-License-Identifier: Apache-2.0 */
/* The reader thread: reads, filters, counts and decodes packets, and hands them on in batches,
 * in file order. While it has no batch to fill, it processes shards of the current one. */
#ifndef WIRETALE_READER_H
#define WIRETALE_READER_H

#include "base/error.h"
#include "base/packet.h"
#include "pipeline/batch.h"
#include "pipeline/interface_counts.h"

struct reader;

/* A capture filter in libpcap's language, compiled once for each link type. */
struct bpf_filter;

/* Compiles the expression for Ethernet at once, so that an invalid one is a usage error before
 * any reading. Returns NULL with ERROR_USAGE and libpcap's message. */
struct bpf_filter *bpf_filter_open(const char *expression, struct error *error);
void bpf_filter_close(struct bpf_filter *filter);

/* Returns whether the packet passes. If the expression cannot be compiled for its link type, it
 * does not pass and is counted: bpf_filter_refused() returns the number of those packets. */
bool bpf_filter_pass(struct bpf_filter *filter, const struct packet *packet);
uint64_t bpf_filter_refused(const struct bpf_filter *filter);

/* The input of the reader. Its thread owns this and adds to the updater's encapsulations until
 * reader_stop(). Until then other threads may read only encapsulations that a batch refers to. */
struct reader_input {
    struct merged_input *files;
    struct bpf_filter *filter; /* NULL for none */
    int64_t start_ns, end_ns;  /* ns; packets outside [start_ns, end_ns) are skipped */
    struct interface_counts counts;
    struct excluded_packets excluded;
    struct updater *updater;
    bool by_flow; /* batches are sorted by flow */
    bool small;   /* the files are small: little memory will be used */
};

/* Starts the thread; returns NULL if that fails. `input` must live until reader_close(). */
struct reader *reader_start(struct reader_input *input);

/* Returns the next batch, which must be returned by reader_done(). Returns NULL if none came for
 * a while (`*ended` false) or if there are no more. */
struct batch *reader_next(struct reader *reader, bool *ended);
void reader_done(struct reader *reader);

/* Calls `take` once for each shard of the current batch, from this thread and, if it is idle,
 * the reader's. Returns after the last one. */
typedef void shard_processor(struct worker *worker, struct batch *batch, unsigned part);
void reader_process_shards(struct reader *reader, struct batch *batch, shard_processor *take);

/* Stops reading and joins the thread; from then on the caller owns the input. Batches that were
 * read can still be processed. Repeated calls do nothing. */
void reader_stop(struct reader *reader);
void reader_close(struct reader *reader);

#endif
