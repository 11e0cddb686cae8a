/* SPDX-License-Identifier: Apache-2.0 */
/* A file that cannot be renamed for a reason that may pass, such as a permission, becomes stuck and
 * is tried again each second. If it was removed, its packets are moved to the count of lost ones.
 * If nothing helps, it keeps its temporary name, which the next start recovers. Leftovers of
 * earlier runs are recovered while no file of this run waits.
 *
 * `lock` protects the queue, `lost` and the numbers; all else belongs to the thread. */
#include "finish/finisher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/wait.h"
#include "directory/path.h"
#include "finish/resume.h"

#define MAX_WAITING    64u /* in the queue, each with two open descriptors */
#define WAITING_SYNCED 8u  /* if more files wait, the kernel writes published ones when it likes */
#define PATIENCE_NS    (5 * NS_PER_S) /* for a file to be finished, and at the end for leftovers */
#define MAX_STUCK      256u

/* Completes the file before it is published. If too many files wait, that is put off: a full queue
 * would make the writing thread wait. A file that -w names has no later. */
static void complete(struct finisher *finisher, struct finished_file *file, bool is_behind) {
    _Atomic int64_t until_ns = monotonic_ns() + FINISH_LIMIT_NS;
    bool has_later = !finisher->publisher.keeper && !file->asked_for;
    bool takes_time = finisher->publisher.compress || file->bytes > INDEX_BLOCK_BYTES;
    if (is_behind && has_later && takes_time) {
        if (!finisher->is_warned)
            log_warning("files come faster than they can be finished: compression and index of "
                        "some are put off");
        finisher->is_warned = file->is_unfinished = true;
    } else if (!publisher_complete(&finisher->publisher, file, &until_ns)) {
        file->is_unfinished = has_later;
        file->is_given_up = !has_later;
        if (has_later)
            jobs_note_unfinished(finisher->publisher.jobs, file->name, strerror(errno));
        else
            log_warning("%s was not compressed: %s", file->name, strerror(errno));
    }
}

static void count_end(struct finisher *finisher, bool is_given_up) {
    struct job_counts *counts = &finisher->publisher.jobs->finishing;
    counts->waiting--;
    counts->done += !is_given_up;
    counts->given_up += is_given_up;
}

/* Only after the file has its name may its original be removed, and the ring and the command see
 * it. */
static void announce(struct finisher *finisher, struct finished_file *file) {
    if (*file->original)
        unlinkat(file->directory_fd, file->original, 0);
    if (!file->recovered || directory_owns_name(finisher->directory, file->name))
        ring_add(finisher->ring, file->directory_fd, file->name, file->bytes, file->recovered,
                 finisher->publisher.jobs->command);
    if (!file->is_unfinished)
        count_end(finisher, file->is_given_up);
    jobs_add(finisher->publisher.jobs, file->directory_fd, file->name, file->is_unfinished);
    if (file->is_unfinished)
        finisher->publisher.jobs->finishing.waiting--; /* was counted when it was queued */
}

/* A permission may return; a removed file or an ended process does not. */
static bool is_worth_retrying(const struct finisher *finisher) {
    return errno != ENOENT && errno != EPIPE && finisher->stuck_count < MAX_STUCK;
}

/* Reports a file that has not its temporary name any more. If it was removed, it is kept for the
 * writing thread, which counts its packets as dropped; else freed. */
static void lose(struct finisher *finisher, struct finished_file *file) {
    struct stat info;
    uint64_t packets = 0;
    if (fstat(file->fd, &info) || info.st_nlink) {
        log_warning("%s is not published: %s was renamed meanwhile", file->name, file->temporary);
        count_end(finisher, true);
        finished_file_free(file);
        return;
    }
    for (uint32_t i = 0; i < file->described; i++)
        packets += file->counts[i].written;
    log_warning("%s was removed before it was published: its %llu packets are lost, and counted as "
                "dropped by the disk",
                file->name, (unsigned long long)packets);
    count_end(finisher, true);
    pthread_mutex_lock(&finisher->lock);
    file->next = finisher->lost;
    finisher->lost = file;
    pthread_mutex_unlock(&finisher->lock);
}

/* The next start recovers the file, unless the directory is sealed. A leftover is not an error of
 * this run. */
static void give_up(struct finisher *finisher, struct finished_file *file, const char *reason) {
    if (!file->recovered)
        finisher->unnamed = true;
    log_warning("%s stays as %s: %s; %s", file->name, file->temporary, reason,
                finisher->publisher.keeper ? "no later start publishes it: rename it"
                                           : "the next start publishes it");
    count_end(finisher, true);
    finished_file_free(file);
}

/* Publishes the file and frees it, or makes it stuck. */
static void settle(struct finisher *finisher, struct finished_file *file) {
    if (publisher_publish(&finisher->publisher, file)) {
        announce(finisher, file);
        finished_file_free(file);
    } else if (is_worth_retrying(finisher)) {
        log_warning("cannot rename %s yet: %s; trying again", file->temporary, strerror(errno));
        file->is_unfinished |= file->index && !path_ends_with(file->name, COMPRESSED);
        finished_file_drop_index(file);
        file->next = finisher->stuck;
        finisher->stuck = file;
        finisher->stuck_count++;
    } else if (errno == ENOENT) {
        lose(finisher, file);
    } else {
        give_up(finisher, file,
                errno == EPIPE ? "the process that names it, wiretale-file, has ended"
                               : strerror(errno));
    }
}

/* Tries to publish stuck files again, in any order. */
static void retry_stuck(struct finisher *finisher) {
    for (struct finished_file **at = &finisher->stuck; *at;) {
        struct finished_file *file = *at;
        if (!publisher_publish(&finisher->publisher, file)) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        finisher->stuck_count--;
        announce(finisher, file);
        finished_file_free(file);
    }
}

/* At the end: the last attempt, then a warning for each file. */
static void give_up_stuck(struct finisher *finisher) {
    retry_stuck(finisher);
    while (finisher->stuck) {
        struct finished_file *file = finisher->stuck;
        finisher->stuck = file->next;
        give_up(finisher, file, "it could not be renamed");
    }
}

/* A sync is skipped if files come faster than the disk can sync: the kernel then writes them in its
 * own time. */
static void finish(struct finisher *finisher, struct finished_file *file, unsigned waiting) {
    complete(finisher, file, waiting > MAX_WAITING / 2);
    if (waiting < WAITING_SYNCED && fdatasync(file->fd))
        log_warning("%s may not be on the disk: %s", file->name, strerror(errno));
    settle(finisher, file);
}

static void wait_second(struct finisher *finisher) {
    wait_for(&finisher->changed, &finisher->lock, NS_PER_S);
}

/* Waits for a file. Returns NULL at the end, or if stuck or unfinished files, leftovers or
 * the ring are due. */
static struct finished_file *take(struct finisher *finisher, unsigned *waiting) {
    int64_t due_ns = jobs_unfinished_due_ns(finisher->publisher.jobs);
    bool has_spare_work = !recover_is_done(&finisher->left) || due_ns <= monotonic_ns();
    bool is_timed = finisher->stuck || ring_needs_time(finisher->ring) || due_ns < INT64_MAX;
    pthread_mutex_lock(&finisher->lock);
    if (!finisher->first && !finisher->ending && is_timed && !has_spare_work)
        wait_second(finisher);
    while (!finisher->first && !finisher->ending && !is_timed && !has_spare_work)
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    struct finished_file *file = finisher->first;
    if (file) {
        finisher->first = file->next;
        if (!finisher->first)
            finisher->last = NULL;
        *waiting = --finisher->waiting;
        pthread_cond_broadcast(&finisher->changed);
    }
    pthread_mutex_unlock(&finisher->lock);
    return file;
}

static void finish_leftover(struct finisher *finisher) {
    if (recover_is_done(&finisher->left))
        return;
    struct finished_file *file = recover_next(&finisher->left);
    if (file) {
        finisher->publisher.jobs->finishing.waiting++;
        finish(finisher, file, 0);
    }
}

/* The queue must be empty at the end, because each file in it is a complete capture. */
static bool has_ended(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    bool ended = finisher->ending && !finisher->first;
    pthread_mutex_unlock(&finisher->lock);
    return ended;
}

static void note_finished(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    finisher->unfinished--;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
}

/* Recovers leftovers for a limited time, because thousands of them would exceed the patience of a
 * service manager. */
static void finish_leftovers(struct finisher *finisher) {
    int64_t until = monotonic_ns() + PATIENCE_NS;
    while (!recover_is_done(&finisher->left) && monotonic_ns() < until)
        finish_leftover(finisher);
    if (!recover_is_done(&finisher->left))
        log_warning("%d files of earlier runs are left for the next start",
                    finisher->left.count - finisher->left.next);
}

/* Finishes one published file that is due. None is begun while the thread is busy or the capture
 * ends, or before a half compressed leftover is settled, whose plain file must not be replaced. */
static void resume(struct finisher *finisher, bool is_busy) {
    int directory_fd = -1;
    pthread_mutex_lock(&finisher->lock);
    is_busy |= finisher->ending || !recover_is_done(&finisher->left);
    if (!finisher->ending)
        finisher->resume_until_ns = monotonic_ns() + FINISH_LIMIT_NS;
    pthread_mutex_unlock(&finisher->lock);
    struct job *job = jobs_take_unfinished(finisher->publisher.jobs, is_busy, &directory_fd);
    if (job)
        resume_finishing(&finisher->publisher, finisher->ring, job, directory_fd,
                         &finisher->resume_until_ns);
}

static void *run(void *argument) {
    struct finisher *finisher = argument;
    unsigned waiting;
    setpriority(PRIO_PROCESS, 0, 5); /* on Linux of this thread only */
    while (!has_ended(finisher)) {
        struct finished_file *file = take(finisher, &waiting);
        if (file) {
            finish(finisher, file, waiting);
            note_finished(finisher);
        } else {
            finish_leftover(finisher);
        }
        retry_stuck(finisher);
        resume(finisher, file != NULL);
        if (ring_needs_time(finisher->ring))
            ring_check(finisher->ring);
    }
    finish_leftovers(finisher);
    give_up_stuck(finisher);
    return NULL;
}

bool finisher_start(struct finisher *finisher) {
    pthread_mutex_init(&finisher->lock, NULL);
    wait_init(&finisher->changed);
    finisher->publisher.replacement.begun_ns = realtime_ns();
    if (pthread_create(&finisher->thread, NULL, run, finisher))
        return false;
    pthread_setname_np(finisher->thread, "finish");
    return true;
}

/* If the queue is full, the writing thread waits here: the only place where it waits for another
 * thread. Files of earlier runs, which may be large, are finished when there is time again. */
void finisher_push(struct finisher *finisher, struct finished_file *file) {
    file->next = NULL;
    pthread_mutex_lock(&finisher->lock);
    while (finisher->waiting >= MAX_WAITING)
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    if (finisher->last)
        finisher->last->next = file;
    else
        finisher->first = file;
    finisher->last = file;
    finisher->waiting++;
    finisher->unfinished++;
    if (finisher->waiting > WAITING_SYNCED)
        finisher->resume_until_ns = 0;
    finisher->publisher.jobs->finishing.waiting++;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
}

struct finished_file *finisher_take_lost(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    struct finished_file *lost = finisher->lost;
    finisher->lost = NULL;
    pthread_mutex_unlock(&finisher->lock);
    return lost;
}

/* Waits until a file is finished. Returns false if none was within PATIENCE_NS. */
static bool wait_for_one(struct finisher *finisher) {
    int64_t until = monotonic_ns() + PATIENCE_NS;
    pthread_mutex_lock(&finisher->lock);
    unsigned before = finisher->unfinished;
    while (before && finisher->unfinished >= before && monotonic_ns() < until)
        wait_second(finisher);
    bool less = finisher->unfinished < before;
    pthread_mutex_unlock(&finisher->lock);
    return less;
}

/* The ring may be empty because its files are still being finished. Then it waits for one of them.
 */
bool finisher_make_room(struct finisher *finisher) {
    if (!ring_is_bounded(finisher->ring))
        return false;
    while (!ring_make_room(finisher->ring))
        if (!wait_for_one(finisher)) /* the last file may just have been finished */
            return ring_make_room(finisher->ring);
    return true;
}

void finisher_end(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    finisher->ending = true;
    finisher->resume_until_ns = 0;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
    pthread_join(finisher->thread, NULL);
}
