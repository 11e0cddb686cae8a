/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of time that a ring keeps: from --keep-before a trigger to --keep-after it. A thread marks
 * the files of the span by .NAME.keep, which the ring respects, and writes what the span is into
 * .SPAN.kept, which `find --kept SPAN` reads. The files stay where they are. */
#ifndef WIRETALE_CAPTURE_SPANS_H
#define WIRETALE_CAPTURE_SPANS_H

#include <pthread.h>
#include <stdatomic.h>

#include "output/file.h"

#define SPAN_SUFFIX    ".kept"
#define SPAN_NAME_SIZE 64
#define REASON_SIZE    32
#define SPANS_MOST     100u     /* in a folder; more could fill the disk */
#define SPAN_MARK      "span\n" /* in a marker; one of a user is empty, and stays when a span goes */

struct status;

/* What the rules of --keep-on compare. */
struct look {
    int64_t checked_ns; /* CLOCK_MONOTONIC; 0: not yet */
    uint64_t lost, received;
    uint64_t segments, repeated; /* of TCP, at the last look at which there were enough */
    unsigned reading;            /* interfaces */
    int64_t carrier_losses;
};

struct span_keeper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct output *output;
    int directory_fd;
    char name[SPAN_NAME_SIZE]; /* of the span that is open; "": none */
    char reason[REASON_SIZE];
    int64_t start_ns, end_ns;
    bool ending;
    /* Of the main thread: */
    bool started;
    struct look look; /* the last one */
};

/* Starts the thread, if the settings ask for it. Returns false if it cannot. */
bool span_keeper_start(struct span_keeper *keeper, struct output *output);
/* Marks the last files and joins the thread; to be called after all files are finished. */
void span_keeper_end(struct span_keeper *keeper);

/* Keeps the time around now, unless a span is open, and writes the name of the span. Returns NULL,
 * or what is wrong. Does not wait for the disk. */
const char *span_keeper_trigger(struct span_keeper *keeper, const char *reason,
                                char name[SPAN_NAME_SIZE]);

/* Applies --keep-on to the counts, once a second; `now` is of CLOCK_MONOTONIC. */
void span_keeper_watch(struct span_keeper *keeper, const struct status *status, int64_t now);

#endif
