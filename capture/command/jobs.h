/* SPDX-License-Identifier: Apache-2.0 */
/* What is still to be done to published files: first compression and index, if they failed or were
 * put off (.NAME.unfinished), then the --on-close command (.NAME.on-close). These markers make the
 * queue survive restarts and kill -9: a marker is made before the file gets its name, and removed
 * after the work succeeded. What fails is repeated at growing intervals. If a command is given up,
 * its marker stays, so that the next start tries again; a file that is not finished in an hour
 * stays as it is, so that its name changes no more.
 *
 * Commands are run by the thread of this file, the other work by the finishing thread. */
#ifndef WIRETALE_CAPTURE_JOBS_H
#define WIRETALE_CAPTURE_JOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "command/command.h"
#include "ring/ring.h"

struct job {
    struct job *next;
    unsigned tries;
    int64_t due_ns, until_ns; /* CLOCK_MONOTONIC */
    char name[];
};

struct job_list {
    struct job *first, **end;
};

/* Files, and attempts that failed; any thread may read them. */
struct job_counts {
    _Atomic uint64_t waiting, done, failed, given_up;
};

struct jobs {
    pthread_t thread;
    pthread_mutex_t lock;
    const struct command *command; /* NULL: no --on-close */
    struct ring *ring;
    const struct directory *directory;
    uint64_t most_tries;
    int wake_fd;
    int directory_fd;           /* of the newest job */
    struct job_list due, again; /* first runs, in order; and those that failed */
    struct job_list unfinished;
    struct job *running[COMMAND_PLACES];
    atomic_bool is_failing; /* the last command failed */
    bool finishing_fails;   /* the last attempt failed; of the finishing thread */
    bool gone;              /* the process of the commands has ended */
    int64_t end_ns;         /* CLOCK_MONOTONIC: no longer than that; 0: not asked to end */
    struct job_counts commands, finishing;
};

/* To be called before any other function. `jobs` has command, ring, directory and most_tries. */
void jobs_open(struct jobs *jobs);

/* Queues the files of earlier runs whose markers are there, and starts the thread of the commands.
 */
bool jobs_start(struct jobs *jobs);

/* Makes a marker of a file, which may still have to be published under this name. Returns false
 * with errno. */
bool jobs_mark(int directory_fd, const char *name, const char *marker);
void jobs_unmark(int directory_fd, const char *name, const char *marker);

/* Queues a published file: for its command, if there is one, or to be finished first. */
void jobs_add(struct jobs *jobs, int directory_fd, const char *name, bool is_unfinished);

/* Takes a file that is due to be finished, unless the finishing thread is busy; gives up those that
 * have waited too long. Returns NULL if there is none, else a job for one of the functions below,
 * and a descriptor that the caller closes. */
struct job *jobs_take_unfinished(struct jobs *jobs, bool is_busy, int *directory_fd);
/* Returns when one is due (CLOCK_MONOTONIC); INT64_MAX: there is none. */
int64_t jobs_unfinished_due_ns(struct jobs *jobs);
/* The file has this name by now, or NULL if it is gone. */
void jobs_finished(struct jobs *jobs, struct job *job, const char *name);
/* An attempt failed before the file was published. */
void jobs_note_unfinished(struct jobs *jobs, const char *name, const char *reason);
/* It failed, for a reason that a person reads; NULL: it was stopped, and is made again when
 * there is time. */
void jobs_not_finished(struct jobs *jobs, struct job *job, const char *reason);

/* Lets commands run for up to `seconds`, without repeating those that fail, and joins the thread.
 */
void jobs_end(struct jobs *jobs, int seconds);

#endif
