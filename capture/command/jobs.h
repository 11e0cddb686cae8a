/* SPDX-License-Identifier: Apache-2.0 */
/* The files whose --on-close command has not succeeded yet. A marker beside each, .NAME.todo, makes
 * the queue survive restarts and kill -9: it is made before the file gets its name, and removed
 * after the command succeeded. A command that fails is repeated at growing intervals; if it is
 * given up, the marker stays, so that the next start tries again. */
#ifndef WIRETALE_CAPTURE_JOBS_H
#define WIRETALE_CAPTURE_JOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "command/command.h"
#include "ring/ring.h"

struct job;

struct job_list {
    struct job *first, **end;
};

struct jobs {
    pthread_t thread;
    pthread_mutex_t lock;
    const struct command *command;
    struct ring *ring;
    const struct directory *directory;
    uint64_t most_tries;
    int wake_fd;
    int directory_fd;           /* of the newest job */
    struct job_list due, again; /* first runs, in order; and those that failed */
    struct job *running[COMMAND_PLACES];
    atomic_bool is_failing; /* the last command failed */
    bool gone;              /* the process of the commands has ended */
    int64_t end_ns;         /* CLOCK_MONOTONIC: no longer than that; 0: not asked to end */
    /* Files, and runs that failed; any thread may read them. */
    _Atomic uint64_t waiting, done, failed, given_up;
};

/* Queues the files of earlier runs whose markers are there, and starts the thread. `jobs` has
 * command, ring, directory and most_tries. */
bool jobs_start(struct jobs *jobs);

/* Makes the marker of a file that is to be published under this name. Returns false with errno. */
bool jobs_mark(int directory_fd, const char *name);
void jobs_unmark(int directory_fd, const char *name);

/* Queues a published file. */
void jobs_add(struct jobs *jobs, int directory_fd, const char *name);

/* Lets commands run for up to `seconds`, without repeating those that fail, and joins the thread.
 */
void jobs_end(struct jobs *jobs, int seconds);

#endif
