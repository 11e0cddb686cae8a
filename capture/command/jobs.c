/* SPDX-License-Identifier: Apache-2.0 */
/* `lock` protects the lists, which the finishing thread adds to, and directory_fd, which it
 * replaces. Only one thread takes jobs out of a list, so that a job it has taken is its own: the
 * finishing thread those that are unfinished, the thread of this file all others. */
#include "command/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "directory/path.h"

#define FIRST_WAIT_NS NS_PER_S /* before the second run; doubled after each further one */
#define MOST_WAIT_NS  (300 * NS_PER_S)
#define ROUND_NS      NS_PER_S
#define MARKER_MODE   0640

/* Commands and programs that follow the folder wait for a file to be finished, but not for ever:
 * the time counts from its marker, over restarts. */
#define FINISH_WAIT_NS (3600 * NS_PER_S)

static bool beside(const char *name, const char *marker, char own[NAME_SIZE]) {
    return snprintf(own, NAME_SIZE, ".%s%s", name, marker) < NAME_SIZE;
}

bool jobs_mark(int directory_fd, const char *name, const char *marker) {
    char own[NAME_SIZE];
    errno = ENAMETOOLONG;
    int fd = beside(name, marker, own)
                 ? openat(directory_fd, own,
                          O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, MARKER_MODE)
                 : -1;
    return fd >= 0 && !close(fd);
}

void jobs_unmark(int directory_fd, const char *name, const char *marker) {
    char own[NAME_SIZE];
    if (beside(name, marker, own))
        unlinkat(directory_fd, own, 0);
}

/* A file that cannot be looked at, as without a permission, may be there. */
static bool is_there(int directory_fd, const char *name) {
    struct stat info;
    if (fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW))
        return errno != ENOENT;
    return S_ISREG(info.st_mode);
}

static void append(struct job_list *list, struct job *job) {
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static struct job *take(struct job_list *list, struct job **at) {
    struct job *job = *at;
    *at = job->next;
    if (list->end == &job->next)
        list->end = at;
    return job;
}

/* Moves a job to another list, for which it is a new one. */
static void queue(struct jobs *jobs, struct job_list *list, struct job *job) {
    job->tries = 0;
    job->due_ns = 0;
    pthread_mutex_lock(&jobs->lock);
    append(list, job);
    pthread_mutex_unlock(&jobs->lock);
    eventfd_write(jobs->wake_fd, 1);
}

/* Queues a new job, unless there is no command. */
static void add(struct jobs *jobs, const char *name, bool is_unfinished, int64_t age_ns) {
    if (!is_unfinished && !jobs->command)
        return;
    struct job *job = calloc(1, sizeof *job + strlen(name) + 1);
    if (!job) {
        log_warning("out of memory: what is to be done to %s is done after the next start", name);
        return;
    }
    strcpy(job->name, name);
    job->until_ns = monotonic_ns() + FINISH_WAIT_NS - MAX(age_ns, 0);
    (is_unfinished ? &jobs->finishing : &jobs->commands)->waiting++;
    queue(jobs, is_unfinished ? &jobs->unfinished : &jobs->due, job);
}

void jobs_add(struct jobs *jobs, int directory_fd, const char *name, bool is_unfinished) {
    pthread_mutex_lock(&jobs->lock);
    if (jobs->directory_fd >= 0)
        close(jobs->directory_fd);
    jobs->directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&jobs->lock);
    add(jobs, name, is_unfinished, 0);
}

/* Takes the next job: a first run, or the repetition that has waited for the longest time. Sets
 * `wake_ns` if a repetition is due earlier. */
static struct job *take_due(struct jobs *jobs, int64_t now, int64_t *wake_ns) {
    struct job *job = NULL;
    pthread_mutex_lock(&jobs->lock);
    for (struct job **at = &jobs->again.first; !jobs->end_ns && *at && !job;) {
        if ((*at)->due_ns <= now)
            job = take(&jobs->again, at);
        else
            *wake_ns = MIN(*wake_ns, (*at)->due_ns), at = &(*at)->next;
    }
    if (!job && jobs->due.first)
        job = take(&jobs->due, &jobs->due.first);
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

/* Frees a job that is done or given up; the ring may now remove its file. */
static void release(struct jobs *jobs, struct job *job) {
    jobs->commands.waiting--;
    ring_release(jobs->ring, job->name);
    free(job);
}

/* Each try doubles the wait. */
static int64_t wait_after(unsigned tries) {
    return tries > 16 ? MOST_WAIT_NS : MIN(FIRST_WAIT_NS << (tries - 1), MOST_WAIT_NS);
}

static void describe(const struct command_answer *answer, char *text, size_t size) {
    if (answer->is_late)
        snprintf(text, size, "exceeded --on-close-timeout");
    else if (WIFSIGNALED(answer->status))
        snprintf(text, size, "ended with signal %d", WTERMSIG(answer->status));
    else
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(answer->status));
}

/* Only the first failure in a row has a line, because each file may fail while a server is down;
 * each file that is given up has one. */
static void note_failure(struct jobs *jobs, struct job *job, const struct command_answer *answer) {
    char cause[64];
    describe(answer, cause, sizeof cause);
    jobs->commands.failed++;
    if (++job->tries >= jobs->most_tries) {
        log_warning("--on-close %s for %s: given up after %u tries, until the next start", cause,
                    job->name, job->tries);
        jobs->commands.given_up++;
        release(jobs, job);
        return;
    }
    if (!jobs->is_failing)
        log_warning("--on-close %s for %s; it is repeated until it succeeds", cause, job->name);
    jobs->is_failing = true;
    job->due_ns = monotonic_ns() + wait_after(job->tries);
    pthread_mutex_lock(&jobs->lock);
    append(&jobs->again, job);
    pthread_mutex_unlock(&jobs->lock);
}

static void unmark(struct jobs *jobs, const struct job *job, const char *marker) {
    pthread_mutex_lock(&jobs->lock);
    jobs_unmark(jobs->directory_fd, job->name, marker);
    pthread_mutex_unlock(&jobs->lock);
}

/* The command gets the file as it is if it cannot be finished. */
static void go_on(struct jobs *jobs, struct job *job) {
    jobs->finishing.waiting--;
    if (!jobs->command) {
        free(job);
        return;
    }
    jobs->commands.waiting++;
    queue(jobs, &jobs->due, job);
}

struct job *jobs_take_unfinished(struct jobs *jobs, bool is_busy, int *directory_fd) {
    struct job *due = NULL, *late = NULL;
    int64_t now = monotonic_ns();
    pthread_mutex_lock(&jobs->lock);
    for (struct job **at = &jobs->unfinished.first; *at && !due && !late;) {
        if (now >= (*at)->until_ns)
            late = take(&jobs->unfinished, at);
        else if (!is_busy && now >= (*at)->due_ns)
            due = take(&jobs->unfinished, at);
        else
            at = &(*at)->next;
    }
    if (due)
        *directory_fd = fcntl(jobs->directory_fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&jobs->lock);
    if (late) {
        log_warning("%s could not be compressed or indexed for an hour: it stays as it is",
                    late->name);
        jobs->finishing.given_up++;
        unmark(jobs, late, MARKER_UNFINISHED);
        go_on(jobs, late);
    }
    return due;
}

int64_t jobs_unfinished_due_ns(struct jobs *jobs) {
    int64_t due_ns = INT64_MAX;
    pthread_mutex_lock(&jobs->lock);
    for (const struct job *job = jobs->unfinished.first; job; job = job->next)
        due_ns = MIN(due_ns, job->due_ns);
    pthread_mutex_unlock(&jobs->lock);
    return due_ns;
}

void jobs_finished(struct jobs *jobs, struct job *job, const char *name) {
    jobs->finishing.waiting--;
    jobs->finishing.done += name != NULL;
    jobs->finishing_fails = false;
    if (name)
        add(jobs, name, false, 0);
    free(job);
}

/* Only the first failure in a row has a line. */
void jobs_note_unfinished(struct jobs *jobs, const char *name, const char *reason) {
    jobs->finishing.failed++;
    if (!jobs->finishing_fails)
        log_warning("%s is not compressed or indexed yet: %s; trying again", name, reason);
    jobs->finishing_fails = true;
}

void jobs_not_finished(struct jobs *jobs, struct job *job, const char *reason) {
    if (reason) {
        jobs_note_unfinished(jobs, job->name, reason);
        job->due_ns = monotonic_ns() + wait_after(++job->tries);
    }
    pthread_mutex_lock(&jobs->lock);
    append(&jobs->unfinished, job);
    pthread_mutex_unlock(&jobs->lock);
}

static bool has_file(struct jobs *jobs, const struct job *job) {
    pthread_mutex_lock(&jobs->lock);
    bool found = is_there(jobs->directory_fd, job->name);
    pthread_mutex_unlock(&jobs->lock);
    return found;
}

/* The index of a file that is gone goes too, as of one that its command has moved: there may be no
 * ring that would remove it. */
static void end_command(struct jobs *jobs, struct job *job) {
    unmark(jobs, job, MARKER_ON_CLOSE);
    if (!has_file(jobs, job))
        unmark(jobs, job, MARKER_INDEX);
    release(jobs, job);
}

static void settle(struct jobs *jobs, const struct command_answer *answer) {
    struct job **place = &jobs->running[answer->number % COMMAND_PLACES], *job = *place;
    *place = NULL;
    if (!job)
        return;
    if (answer->status || answer->is_late) {
        note_failure(jobs, job, answer);
        return;
    }
    if (jobs->is_failing)
        log_info("--on-close succeeds again");
    jobs->is_failing = false;
    jobs->commands.done++;
    end_command(jobs, job);
}

static void note_gone(struct jobs *jobs) {
    if (!jobs->gone)
        log_warning("the --on-close process has ended: the next start runs the commands");
    jobs->gone = true;
}

/* A file that others have removed needs no command. */
static bool start(struct jobs *jobs, unsigned place, struct job *job) {
    if (!has_file(jobs, job)) {
        end_command(jobs, job);
        return true;
    }
    jobs->running[place] = job;
    return command_run(jobs->command, place, jobs->directory->path, job->name);
}

/* Fills the free places. Returns when to look again. */
static int64_t start_due(struct jobs *jobs, int64_t now) {
    int64_t wake = now + ROUND_NS;
    for (unsigned place = 0; place < COMMAND_PLACES && !jobs->gone;) {
        struct job *job = jobs->running[place] ? NULL : take_due(jobs, now, &wake);
        if (job && !start(jobs, place, job))
            note_gone(jobs);
        place += !job || jobs->running[place];
    }
    return wake;
}

static bool is_busy(const struct jobs *jobs) {
    bool busy = jobs->due.first;
    for (unsigned place = 0; place < COMMAND_PLACES; place++)
        busy |= jobs->running[place] != NULL;
    return busy;
}

static bool has_ended(struct jobs *jobs, int64_t now) {
    pthread_mutex_lock(&jobs->lock);
    bool ended = jobs->end_ns && (jobs->gone || now >= jobs->end_ns || !is_busy(jobs));
    pthread_mutex_unlock(&jobs->lock);
    return ended;
}

static void *run(void *argument) {
    struct jobs *jobs = argument;
    for (int64_t now; now = monotonic_ns(), !has_ended(jobs, now);) {
        int64_t wake = start_due(jobs, now);
        struct pollfd ready[] = {{.fd = jobs->wake_fd, .events = POLLIN},
                                 {.fd = jobs->gone ? -1 : jobs->command->fd, .events = POLLIN}};
        eventfd_t woken;
        struct command_answer answer;
        if (has_ended(jobs, now))
            break;
        poll(ready, 2, (int)((wake - now) / NS_PER_MS) + 1);
        if (ready[0].revents)
            eventfd_read(jobs->wake_fd, &woken);
        int taken = 0;
        while (!jobs->gone && ready[1].revents &&
               (taken = command_take_answer(jobs->command, &answer)) > 0)
            settle(jobs, &answer);
        if (taken < 0)
            note_gone(jobs);
    }
    return NULL;
}

static int is_marker(const struct dirent *entry) {
    return *entry->d_name == '.' && (path_ends_with(entry->d_name, MARKER_ON_CLOSE) ||
                                     path_ends_with(entry->d_name, MARKER_UNFINISHED));
}

/* The name of the file that has the marker. */
static void named_by(const char *marker, char name[NAME_SIZE]) {
    snprintf(name, NAME_SIZE, "%.*s", (int)(strrchr(marker, '.') - marker - 1), marker + 1);
}

static int by_order(const struct dirent **a, const struct dirent **b) {
    char one[NAME_SIZE], other[NAME_SIZE];
    named_by((*a)->d_name, one);
    named_by((*b)->d_name, other);
    return directory_compare_names(one, other);
}

/* A marker without a file is of one that others removed, or that is still to be recovered and then
 * gets its marker again. A file with both markers is to be finished first. */
static void add_marked(struct jobs *jobs, const char *marker) {
    char name[NAME_SIZE], other[NAME_SIZE];
    int directory_fd = jobs->directory->fd;
    bool is_unfinished = path_ends_with(marker, MARKER_UNFINISHED);
    struct stat info;
    named_by(marker, name);
    if (!directory_owns_name(jobs->directory, name) ||
        fstatat(directory_fd, marker, &info, AT_SYMLINK_NOFOLLOW))
        return;
    if (!is_there(directory_fd, name))
        unlinkat(directory_fd, marker, 0);
    else if (is_unfinished || !beside(name, MARKER_UNFINISHED, other) ||
             !is_there(directory_fd, other))
        add(jobs, name, is_unfinished, realtime_ns() - timespec_ns(info.st_mtim));
}

static void scan(struct jobs *jobs) {
    struct dirent **markers;
    jobs->directory_fd = fcntl(jobs->directory->fd, F_DUPFD_CLOEXEC, 0);
    int count = scandirat(jobs->directory->fd, ".", &markers, is_marker, by_order);
    for (int i = 0; i < count; i++) {
        add_marked(jobs, markers[i]->d_name);
        free(markers[i]);
    }
    if (count >= 0)
        free(markers);
    if (jobs->finishing.waiting)
        log_info("%llu files of earlier runs are still to be finished",
                 (unsigned long long)jobs->finishing.waiting);
    if (jobs->commands.waiting)
        log_info("--on-close is run for %llu files of earlier runs",
                 (unsigned long long)jobs->commands.waiting);
}

void jobs_open(struct jobs *jobs) {
    pthread_mutex_init(&jobs->lock, NULL);
    jobs->due.end = &jobs->due.first;
    jobs->again.end = &jobs->again.first;
    jobs->unfinished.end = &jobs->unfinished.first;
    jobs->directory_fd = jobs->wake_fd = -1;
}

bool jobs_start(struct jobs *jobs) {
    if (!jobs->directory->sealed)
        scan(jobs);
    if (!jobs->command)
        return true;
    jobs->wake_fd = eventfd(jobs->commands.waiting > 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (jobs->wake_fd < 0 || pthread_create(&jobs->thread, NULL, run, jobs))
        return false;
    pthread_setname_np(jobs->thread, "on-close");
    return true;
}

void jobs_end(struct jobs *jobs, int seconds) {
    if (jobs->finishing.waiting)
        log_warning("%llu files are still to be compressed or indexed: the next start does it",
                    (unsigned long long)jobs->finishing.waiting);
    if (!jobs->command)
        return;
    pthread_mutex_lock(&jobs->lock);
    jobs->end_ns = monotonic_ns() + seconds * NS_PER_S;
    pthread_mutex_unlock(&jobs->lock);
    eventfd_write(jobs->wake_fd, 1);
    pthread_join(jobs->thread, NULL);
    if (jobs->commands.waiting)
        log_warning("--on-close has not succeeded for %llu files: %s",
                    (unsigned long long)jobs->commands.waiting,
                    jobs->directory->plain ? "run it yourself" : "the next start runs it");
}
