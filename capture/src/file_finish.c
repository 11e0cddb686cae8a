/* SPDX-License-Identifier: Apache-2.0 */
#include "file_finish.h"

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
#include "file_compress.h"
#include "file_keeper.h"
#include "file_recover.h"

#define WAITING_MOST 64u /* files that wait, each with open descriptors */
#define WAITING_SYNCED                                                                             \
    8u /* with more waiting, what is published is left to the kernel to write                      \
        */
#define NAMES_TRIED 100
#define PATIENCE_NS (5 * NS_PER_S) /* of who waits for a file, and at the end for leftovers */
#define STUCK_MOST  256u           /* files that could not be renamed */

/* Whether what is there by the name that was asked for gives way: an empty file, as mktemp(1) makes
 * them; with --overwrite one of before this run. */
static bool gives_way(const struct finisher *finisher, const struct finished *file) {
    struct stat told;
    if (!file->asked_for || fstatat(file->folder_fd, file->name, &told, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(told.st_mode))
        return false;
    int64_t changed_ns = timespec_ns(told.st_mtim);
    return !told.st_size || (finisher->overwrite && changed_ns < finisher->begun_ns);
}

bool file_publish(const struct finisher *finisher, struct finished *file) {
    if (finisher->keeper)
        return file_keeper_publish(finisher->keeper, file);
    if (gives_way(finisher, file))
        return !renameat(file->folder_fd, file->temporary, file->folder_fd, file->name);
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%s", file->name);
    for (int i = 1; i < NAMES_TRIED; i++) {
        if (!renameat2(file->folder_fd, file->temporary, file->folder_fd, name, RENAME_NOREPLACE)) {
            if (i > 1)
                log_warning("%s was there already: this one is %s", file->name, name);
            strcpy(file->name, name);
            return true;
        }
        if (errno != EEXIST)
            return false;
        folder_other_name(file->name, i, name);
    }
    return false;
}

static void compress(struct finisher *finisher, struct finished *file, bool behind) {
    if (behind) {
        if (!finisher->warned)
            log_warning("compression cannot keep up: some files stay uncompressed");
        finisher->warned = true;
    } else if (!file_compress(file)) {
        log_warning("%s was not compressed: %s", file->name, strerror(errno));
    }
}

static void release(struct finished *file) {
    close(file->fd);
    close(file->folder_fd);
    free(file->counts);
    free(file);
}

static void announce(struct finisher *finisher, const struct finished *file) {
    finisher->published++;
    if (*file->original)
        unlinkat(file->folder_fd, file->original, 0);
    if (!file->recovered || folder_is_own(finisher->folder, file->name))
        file_ring_add(finisher->ring, file->folder_fd, file->name, file->bytes, file->recovered);
    if (finisher->command)
        close_command_run(finisher->command, finisher->folder->path, file->name);
}

/* A permission may come back; a file that is gone will not, nor a process that has ended. */
static bool may_come_right(const struct finisher *finisher) {
    return errno != ENOENT && errno != EPIPE && finisher->stuck_count < STUCK_MOST;
}

/* Its packets are nowhere any more. */
static void note_lost(struct finisher *finisher, const struct finished *file) {
    uint64_t packets = 0;
    pthread_mutex_lock(&finisher->lock);
    finisher->lost.files++;
    finisher->lost.bytes += file->bytes;
    for (uint32_t i = 0; file->counts && i < file->described; i++) {
        file_counts_add(&finisher->lost.counts[i], &file->counts[i]);
        packets += file->counts[i].written;
    }
    pthread_mutex_unlock(&finisher->lock);
    log_warning("%s is gone: it was removed before it had its name; its %llu packets are lost, and "
                "counted as dropped by the disk",
                file->name, (unsigned long long)packets);
}

/* Not there by its temporary name. */
static void say_gone(struct finisher *finisher, const struct finished *file) {
    struct stat told;
    if (!fstat(file->fd, &told) && !told.st_nlink)
        note_lost(finisher, file);
    else
        log_warning("%s has another name than %s: it was moved before it was finished", file->name,
                    file->temporary);
}

/* Of an earlier run's file nobody asked this run for anything. */
static void note_unnamed(struct finisher *finisher, const struct finished *file,
                         const char *reason) {
    if (!file->recovered)
        finisher->unnamed = true;
    log_warning("%s stays as %s: %s; %s", file->name, file->temporary, reason,
                finisher->keeper ? "no later start names it: rename it"
                                 : "the next start names it");
}

/* Publishes it, or keeps it for later; it is freed, now or then. */
static void settle(struct finisher *finisher, struct finished *file) {
    if (file_publish(finisher, file)) {
        announce(finisher, file);
        release(file);
    } else if (may_come_right(finisher)) {
        log_warning("%s cannot be named yet: %s; it is tried again", file->temporary,
                    strerror(errno));
        file->next = finisher->stuck;
        finisher->stuck = file;
        finisher->stuck_count++;
    } else if (errno == ENOENT) {
        say_gone(finisher, file);
        release(file);
    } else {
        note_unnamed(finisher, file,
                     errno == EPIPE ? "the process that names it, wiretale-file, has ended"
                                    : strerror(errno));
        release(file);
    }
}

static void retry_stuck(struct finisher *finisher) {
    for (struct finished **at = &finisher->stuck; *at;) {
        struct finished *file = *at;
        if (!file_publish(finisher, file)) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        finisher->stuck_count--;
        announce(finisher, file);
        release(file);
    }
}

static void give_up_stuck(struct finisher *finisher) {
    retry_stuck(finisher);
    while (finisher->stuck) {
        struct finished *file = finisher->stuck;
        finisher->stuck = file->next;
        note_unnamed(finisher, file, "it could not be renamed");
        release(file);
    }
}

static void finish(struct finisher *finisher, struct finished *file, unsigned waiting) {
    if (finisher->compress)
        compress(finisher, file, waiting > WAITING_MOST / 2);
    if (waiting < WAITING_SYNCED && fdatasync(file->fd))
        log_warning("%s may not be on the disk: %s", file->name, strerror(errno));
    settle(finisher, file);
}

static void wait_second(struct finisher *finisher) {
    int64_t until = monotonic_ns() + NS_PER_S;
    struct timespec limit = to_timespec(until);
    pthread_cond_timedwait(&finisher->changed, &finisher->lock, &limit);
}

/* The next file; NULL at the end, or when stuck files or leftovers are due. */
static struct finished *take(struct finisher *finisher, unsigned *waiting) {
    pthread_mutex_lock(&finisher->lock);
    if (!finisher->first && !finisher->ending && finisher->stuck &&
        file_recover_is_done(&finisher->left))
        wait_second(finisher);
    while (!finisher->first && !finisher->ending && !finisher->stuck &&
           file_recover_is_done(&finisher->left))
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    struct finished *file = finisher->first;
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
    if (file_recover_is_done(&finisher->left))
        return;
    struct finished *file = file_recover_next(&finisher->left);
    if (file)
        finish(finisher, file, 0);
}

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

/* At the end: thousands of them would take longer than a service manager waits. */
static void finish_leftovers(struct finisher *finisher) {
    int64_t until = monotonic_ns() + PATIENCE_NS;
    while (!file_recover_is_done(&finisher->left) && monotonic_ns() < until)
        finish_leftover(finisher);
    if (!file_recover_is_done(&finisher->left))
        log_warning("%zu files of earlier runs are left for the next start",
                    finisher->left.count - finisher->left.next);
}

static void *run(void *argument) {
    struct finisher *finisher = argument;
    unsigned waiting;
    setpriority(PRIO_PROCESS, 0, 5); /* a thread's own on Linux */
    while (!has_ended(finisher)) {
        struct finished *file = take(finisher, &waiting);
        if (file) {
            finish(finisher, file, waiting);
            note_finished(finisher);
        } else {
            finish_leftover(finisher);
        }
        retry_stuck(finisher);
    }
    finish_leftovers(finisher);
    give_up_stuck(finisher);
    return NULL;
}

bool finisher_start(struct finisher *finisher) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&finisher->lock, NULL);
    pthread_cond_init(&finisher->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    finisher->begun_ns = realtime_ns();
    if (pthread_create(&finisher->thread, NULL, run, finisher))
        return false;
    pthread_setname_np(finisher->thread, "finish");
    return true;
}

bool finisher_push(struct finisher *finisher, const struct finished *finished) {
    struct finished *copy = malloc(sizeof *copy);
    if (!copy)
        return false;
    *copy = *finished;
    copy->next = NULL;
    pthread_mutex_lock(&finisher->lock);
    while (finisher->waiting >= WAITING_MOST)
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    if (finisher->last)
        finisher->last->next = copy;
    else
        finisher->first = copy;
    finisher->last = copy;
    finisher->waiting++;
    finisher->unfinished++;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
    return true;
}

bool finisher_take_lost(struct finisher *finisher, struct lost *lost) {
    pthread_mutex_lock(&finisher->lock);
    *lost = finisher->lost;
    finisher->lost = (struct lost){0};
    pthread_mutex_unlock(&finisher->lock);
    return lost->files;
}

/* Until one more is finished, or for some time in vain. */
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

bool finisher_make_room(struct finisher *finisher, int folder_fd) {
    if (!finisher || !file_ring_is_bounded(finisher->ring))
        return false;
    while (!file_ring_make_room(finisher->ring, folder_fd))
        if (!wait_for_one(finisher)) /* the last one may just have been finished */
            return file_ring_make_room(finisher->ring, folder_fd);
    return true;
}

void finisher_end(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    finisher->ending = true;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
    pthread_join(finisher->thread, NULL);
}
