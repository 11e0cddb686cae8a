/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, filters, counts and decodes packets, and hands them on in batches, in file order. The
 * threads of an analysis: one reads, and all process the parts of a task. */
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

/* The packets that are analyzed: those within [start_ns, end_ns) that pass the filter. */
struct wanted_packets {
    struct bpf_filter *filter; /* NULL for none */
    int64_t start_ns, end_ns;  /* ns */
    struct excluded_packets excluded;
};

/* Sets the interval, without a filter. */
static inline void wanted_packets_begin(struct wanted_packets *wanted, int64_t start_ns,
                                        int64_t end_ns) {
    *wanted = (struct wanted_packets){.start_ns = start_ns,
                                      .end_ns = end_ns,
                                      .excluded = {.first_ns = INT64_MAX, .last_ns = INT64_MIN}};
}

void wanted_packets_exclude(struct excluded_packets *excluded, int64_t time_ns);

/* `time_ns` counts for a packet without a time. */
static inline bool is_wanted(struct wanted_packets *wanted, const struct packet *packet,
                             int64_t time_ns) {
    bool timed = packet_is_timed(packet);
    if (timed && (time_ns < wanted->start_ns || time_ns >= wanted->end_ns)) {
        wanted_packets_exclude(&wanted->excluded, time_ns);
        return false;
    }
    return !wanted->filter || bpf_filter_pass(wanted->filter, packet);
}

/* The input of the reader. The thread that reads owns this and adds to the updater's encapsulations
 * until reader_stop(). Until then other threads may read only encapsulations that a batch refers
 * to.
 */
struct reader_input {
    struct merged_input *files;
    struct wanted_packets wanted;
    size_t flow_files; /* only packets of so many files begin flows; 0 for all */
    struct interface_counts counts;
    struct updater *updater;
    unsigned jobs; /* threads, with that of the caller, at most PARTS_MOST */
    bool small;    /* the files are small: little memory will be used */
};

/* Starts the threads; returns NULL if that fails. `input` must live until reader_close(). With one
 * job there are none, and reader_next() reads. */
struct reader *reader_start(struct reader_input *input);

/* Returns the next batch, which must be returned by reader_done(). Returns NULL if none came for
 * a while (`*ended` false) or if there are no more. */
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

#endif
