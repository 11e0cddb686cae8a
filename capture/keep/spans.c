/* SPDX-License-Identifier: Apache-2.0 */
/* A file belongs to a span if its name says that it began before the end of the span, and if it was
 * changed after the begin. Files are marked again and again until the last one of the span is
 * finished, for which the file is rotated at the end of the span. */
#include "keep/spans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/wait.h"
#include "status/status.h"

#define LEAST_SEGMENTS 100 /* of which a share is taken */
#define ROUND_NS       (200 * NS_PER_MS)
#define LATE_NS        (400 * NS_PER_MS) /* for packets to come from the kernel to the writing thread */

struct marking {
    unsigned marked;
    bool is_complete; /* no file of the span is being written or finished */
};

/* Writes a new small file. Returns whether it is there. On a full disk an empty one could be made,
 * which would count as a user's, and would stay. */
static bool write_beside(int directory_fd, const char *name, const char *text) {
    int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    DIRECTORY_FILE_MODE);
    if (fd < 0)
        return errno == EEXIST;
    bool done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int reason = errno;
    close(fd);
    if (!done)
        unlinkat(directory_fd, name, 0);
    errno = reason;
    return done;
}

static void mark_file(const struct span_keeper *keeper, const char *name, struct marking *marking) {
    char marker[NAME_SIZE];
    if (snprintf(marker, sizeof marker, ".%s" MARKER_KEEP, name) < NAME_SIZE &&
        write_beside(keeper->directory_fd, marker, SPAN_MARK))
        marking->marked++;
    else
        log_warning("%s cannot be kept: %s", name, strerror(errno));
}

static void look_at(const struct span_keeper *keeper, const char *name, struct marking *marking) {
    char final[NAME_SIZE];
    struct stat status;
    int64_t begun_ns;
    bool temporary = directory_final_name(name, final);
    if (!directory_begin_ns(temporary ? final : name, &begun_ns) || begun_ns > keeper->end_ns)
        return;
    if (temporary)
        marking->is_complete = false;
    else if (!fstatat(keeper->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) &&
             timespec_ns(status.st_mtim) >= keeper->start_ns)
        mark_file(keeper, name, marking);
}

static struct marking mark_files(const struct span_keeper *keeper) {
    struct marking marking = {.is_complete = true};
    int fd = openat(keeper->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        look_at(keeper, entry->d_name, &marking);
    if (listing)
        closedir(listing);
    else if (fd >= 0)
        close(fd);
    return marking;
}

static unsigned count_spans(int directory_fd) {
    unsigned count = 0;
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        count += *entry->d_name == '.' && strstr(entry->d_name, SPAN_SUFFIX) != NULL;
    if (listing)
        closedir(listing);
    else if (fd >= 0)
        close(fd);
    return count;
}

/* Returns false if the span cannot be kept. */
static bool begin_span(struct span_keeper *keeper) {
    char own[SPAN_NAME_SIZE + 16], text[256];
    snprintf(own, sizeof own, ".%s" SPAN_SUFFIX, keeper->name);
    snprintf(text, sizeof text, "%lld %lld %s\n", (long long)keeper->start_ns,
             (long long)keeper->end_ns, keeper->reason);
    if (count_spans(keeper->directory_fd) >= SPANS_MOST)
        log_warning("%s is not kept: %u spans are kept already; `wiretale find --release NAME` "
                    "lets one go",
                    keeper->name, SPANS_MOST);
    else if (!write_beside(keeper->directory_fd, own, text))
        log_warning("%s is not kept: %s", keeper->name, strerror(errno));
    else
        return true;
    return false;
}

static void wait_round(struct span_keeper *keeper, int64_t most_ns) {
    wait_for(&keeper->changed, &keeper->lock, most_ns);
}

/* Returns whether the file being written began within the span. */
static bool is_open_in_span(const struct span_keeper *keeper) {
    char name[NAME_SIZE];
    int64_t begun_ns;
    output_name(keeper->output, name);
    return directory_begin_ns(name, &begun_ns) && begun_ns <= keeper->end_ns;
}

/* Returns whether all packets of the span are written: those that wait came later. */
static bool is_over(const struct span_keeper *keeper) {
    int64_t waiting_ns = atomic_load(&keeper->output->waiting_ns);
    int64_t lag_ns = waiting_ns ? monotonic_ns() - waiting_ns : 0;
    return realtime_ns() - lag_ns - LATE_NS > keeper->end_ns;
}

/* Marks the files, and ends the open one once the span is over. Returns whether all are marked. */
static bool mark_round(const struct span_keeper *keeper, bool over, struct marking *marking) {
    if (over && is_open_in_span(keeper)) {
        atomic_fetch_or(&keeper->output->requests, REQUEST_ROTATE);
        chunk_queue_wake(&keeper->output->capture->queue);
    }
    *marking = mark_files(keeper);
    return over && marking->is_complete;
}

/* Marks until the span is over and its files are finished, or the capture has ended. A file that
 * gets its name during a listing can be missing in it, so that two must show no unfinished one. The
 * lock is held but for the work on the disk. */
static void keep_span(struct span_keeper *keeper) {
    struct marking marking = {0};
    pthread_mutex_unlock(&keeper->lock);
    bool kept = begin_span(keeper);
    atomic_fetch_add(&keeper->output->kept_spans, kept);
    if (kept)
        log_info("keeping %s (%s)", keeper->name, keeper->reason);
    pthread_mutex_lock(&keeper->lock);
    for (int complete = 0; kept && complete < 2;) {
        bool ending = keeper->ending;
        pthread_mutex_unlock(&keeper->lock);
        complete = mark_round(keeper, ending || is_over(keeper), &marking) ? complete + 1 : 0;
        pthread_mutex_lock(&keeper->lock);
        if (ending)
            break;
        wait_round(keeper, ROUND_NS);
    }
    if (kept)
        log_info("kept %s: %u file%s; wiretale find %s --kept %s -o %s.pcapng", keeper->name,
                 marking.marked, marking.marked == 1 ? "" : "s", keeper->output->directory->path,
                 keeper->name, keeper->name);
    *keeper->name = '\0';
}

static void *run(void *argument) {
    struct span_keeper *keeper = argument;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->ending || *keeper->name)
        if (*keeper->name)
            keep_span(keeper);
        else
            pthread_cond_wait(&keeper->changed, &keeper->lock);
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

bool span_keeper_start(struct span_keeper *keeper, struct output *output) {
    const struct settings *settings = output->capture->settings;
    keeper->output = output;
    if (!settings->keep_before_ns && !settings->keep_after_ns)
        return true;
    keeper->directory_fd = fcntl(output->directory->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_init(&keeper->lock, NULL);
    wait_init(&keeper->changed);
    keeper->started = !pthread_create(&keeper->thread, NULL, run, keeper);
    if (keeper->started)
        pthread_setname_np(keeper->thread, "keep");
    return keeper->started;
}

void span_keeper_end(struct span_keeper *keeper) {
    if (!keeper->started)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    close(keeper->directory_fd);
}

const char *span_keeper_trigger(struct span_keeper *keeper, const char *reason,
                                char name[SPAN_NAME_SIZE]) {
    if (!keeper->started)
        return "the capture needs --keep-before or --keep-after";
    const struct settings *settings = keeper->output->capture->settings;
    int64_t now = realtime_ns();
    time_t seconds = now / NS_PER_S;
    struct tm parts;
    char time[32];
    strftime(time, sizeof time, "%Y%m%dT%H%M%S", gmtime_r(&seconds, &parts));
    pthread_mutex_lock(&keeper->lock);
    if (!*keeper->name) {
        snprintf(keeper->name, sizeof keeper->name, "%s.%03dZ_%s", time,
                 (int)(now % NS_PER_S / NS_PER_MS), reason);
        snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
        keeper->start_ns = now - (int64_t)settings->keep_before_ns;
        keeper->end_ns = now + (int64_t)settings->keep_after_ns;
        pthread_cond_broadcast(&keeper->changed);
    }
    strcpy(name, keeper->name);
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

/* Returns the rule that applies to what came since the last look, or NULL. */
static const char *find_rule(const struct settings *settings, const struct look *last,
                             const struct look *now) {
    double packets = (double)(now->received - last->received);
    double took_ns = (double)(now->checked_ns - last->checked_ns);
    if ((settings->keep_on & KEEP_ON_DROPS) && now->lost > last->lost)
        return "drops";
    if ((settings->keep_on & KEEP_ON_LINK) &&
        (now->reading != last->reading || now->carrier_losses > last->carrier_losses))
        return "link";
    if ((settings->keep_on & KEEP_ON_RATE) &&
        packets * NS_PER_S >= (double)settings->keep_rate * took_ns)
        return "rate";
    double segments = (double)(now->segments - last->segments);
    if ((settings->keep_on & KEEP_ON_REPEATS) && segments > 0 &&
        100 * (double)(now->repeated - last->repeated) >= settings->keep_repeats_percent * segments)
        return "retransmissions";
    return NULL;
}

/* The first look only notes the counts. */
void span_keeper_watch(struct span_keeper *keeper, const struct status *status, int64_t now) {
    char name[SPAN_NAME_SIZE];
    if (!keeper->started)
        return;
    struct look look = {.checked_ns = now,
                        .lost = counts_lost(&status->all),
                        .received = counts_offered(&status->all),
                        .segments = status->tcp_segments,
                        .repeated = status->tcp_repeated};
    if (look.segments - keeper->look.segments < LEAST_SEGMENTS) {
        look.segments = keeper->look.segments;
        look.repeated = keeper->look.repeated;
    }
    for (uint32_t i = 0; i < status->interface_count; i++) {
        look.reading += status->interfaces[i].is_read != 0;
        look.carrier_losses += status->interfaces[i].carrier_losses;
    }
    const char *rule = keeper->look.checked_ns
                           ? find_rule(keeper->output->capture->settings, &keeper->look, &look)
                           : NULL;
    if (rule)
        span_keeper_trigger(keeper, rule, name);
    keeper->look = look;
}
