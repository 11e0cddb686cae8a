/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that finishes files in order: it syncs each to the disk, compresses and publishes it,
 * adds it to the ring and queues its --on-close command. The writing thread only waits for it if
 * files come faster than one thread can rename. */
#ifndef WIRETALE_CAPTURE_FINISHER_H
#define WIRETALE_CAPTURE_FINISHER_H

#include <pthread.h>
#include <stdatomic.h>

#include "finish/publisher.h"
#include "finish/recover.h"
#include "ring/ring.h"

struct finisher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct finished_file *first, *last; /* queue */
    unsigned waiting;                   /* files in the queue */
    unsigned unfinished;                /* files in the queue or at work on */
    bool ending;
    struct publisher publisher;
    struct directory *directory;
    struct ring *ring;
    struct leftovers left;       /* recovered one by one between files of this run */
    struct finished_file *lost;  /* removed by others; not yet counted by the writing thread */
    struct finished_file *stuck; /* could not be renamed; tried again each second */
    unsigned stuck_count;
    atomic_bool unnamed;             /* a file of this run keeps its temporary name */
    bool is_warned;                  /* that files are put off */
    _Atomic int64_t resume_until_ns; /* of the attempt that goes on; 0: it is stopped */
};

bool finisher_start(struct finisher *finisher);

/* Queues a file, which the finisher then owns. */
void finisher_push(struct finisher *finisher, struct finished_file *file);

/* Returns the list of files that were found removed since the last call, which the caller frees. */
struct finished_file *finisher_take_lost(struct finisher *finisher);

/* Makes room on a full disk: removes the oldest file of the ring, after waiting for files that are
 * being finished. Returns false if no file can be removed. */
bool finisher_make_room(struct finisher *finisher);

/* Finishes all files and joins the thread. */
void finisher_end(struct finisher *finisher);

#endif
