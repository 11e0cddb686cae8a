/* SPDX-License-Identifier: Apache-2.0 */
/* An array of names, oldest first. The number in the names goes on over runs, so that files of
 * earlier ones are put in order without their dates, which steps of the clock make wrong. */
#include "ring/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

/* File systems free the blocks of removed files late, so that their effect is waited for before
 * more are removed for --min-free. */
#define FREEING_NS (2 * NS_PER_S)

/* Half of a bound on bytes is the most that is reserved for the open file; with larger files the
 * bound is kept only when they are finished. */
void ring_open(struct ring *ring, const struct settings *settings,
               const struct directory *directory) {
    *ring = (struct ring){.settings = settings,
                          .directory = directory,
                          .directory_fd = -1,
                          .oldest_begun_ns = -1,
                          .reserve = settings->file_bytes};
    if (ring->reserve > settings->ring_total_bytes / 2)
        ring->reserve = 0;
    pthread_mutex_init(&ring->lock, NULL);
}

bool ring_needs_time(const struct ring *ring) {
    const struct settings *settings = ring->settings;
    return settings->ring_age_ns || settings->min_free_bytes || settings->min_free_percent > 0;
}

bool ring_is_bounded(const struct ring *ring) {
    return ring->settings->ring_files || ring->settings->ring_total_bytes || ring_needs_time(ring);
}

/* Takes the file off the list. */
static void forget(struct ring *ring, size_t at) {
    ring->bytes -= ring->files[at].bytes;
    free(ring->files[at].name);
    memmove(ring->files + at, ring->files + at + 1, (--ring->count - at) * sizeof *ring->files);
}

/* Returns whether the hidden file `.NAME` with the suffix exists, or removes it. */
static bool has_beside(const struct ring *ring, const char *name, const char *suffix, bool remove) {
    char beside[NAME_SIZE];
    struct stat info;
    if (snprintf(beside, sizeof beside, ".%s%s", name, suffix) >= NAME_SIZE)
        return false;
    return remove ? !unlinkat(ring->directory_fd, beside, 0)
                  : !fstatat(ring->directory_fd, beside, &info, AT_SYMLINK_NOFOLLOW);
}

/* The only place where packets of finished files are removed, with what belongs to them. One that
 * others have removed already is only taken off the list. Returns false if the file stays, as
 * without a permission, and then is tried again. */
static bool remove_file(struct ring *ring, size_t at) {
    static const char *const beside[] = {MARKER_UNFINISHED, MARKER_ON_CLOSE, MARKER_INDEX};
    const char *name = ring->files[at].name;
    bool removed = !unlinkat(ring->directory_fd, name, 0);
    if (!removed && errno != ENOENT)
        return false;
    ring->removed += removed;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        has_beside(ring, name, beside[i], true);
    forget(ring, at);
    return true;
}

/* A file that is kept, or whose name another capture uses by now, leaves the ring. */
static bool may_remove(const struct ring *ring, size_t at) {
    const char *name = ring->files[at].name;
    return !has_beside(ring, name, MARKER_KEEP, false) &&
           directory_owns_name(ring->directory, name);
}

/* Removes the oldest of the first `count` files whose command is not waited for; with a `cause`, of
 * those whose command is. */
static bool remove_first(struct ring *ring, size_t *count, const char *cause) {
    for (size_t at = 0; at < *count;) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "%s", ring->files[at].name);
        if (ring->files[at].is_pending != (cause != NULL)) {
            at++;
        } else if (!may_remove(ring, at)) {
            forget(ring, at);
            --*count;
        } else if (!remove_file(ring, at)) {
            at++;
        } else {
            if (cause)
                log_warning("%s is removed before its --on-close command succeeded: %s", name,
                            cause);
            ring->removed_pending += cause != NULL;
            return true;
        }
    }
    return false;
}

/* Removes the oldest of the first `count` files that does not wait for its command; if there is
 * none and `cause` is given, the oldest. Returns false if none may be removed. */
static bool remove_oldest(struct ring *ring, size_t count, const char *cause) {
    return remove_first(ring, &count, NULL) || (cause && remove_first(ring, &count, cause));
}

/* The newest file is never removed, whatever its size. */
static void keep_number_and_size(struct ring *ring) {
    uint64_t most_files = ring->settings->ring_files, most = ring->settings->ring_total_bytes;
    while (most_files && ring->count > most_files && ring->count > 1)
        if (!remove_oldest(ring, ring->count - 1, NULL))
            break;
    while (most && ring->bytes + ring->reserve > most && ring->count > 1)
        if (!remove_oldest(ring, ring->count - 1, "--total-size is reached"))
            break;
}

static int64_t boot_ns(void) {
    return clock_ns(CLOCK_BOOTTIME);
}

/* Of the age, the newest file is no exception. */
static void keep_age(struct ring *ring) {
    int64_t most = ring->settings->ring_age_ns, now = boot_ns();
    for (size_t at = 0; most && at < ring->count;) {
        if (ring->files[at].is_pending || now - ring->files[at].closed_ns <= most)
            at++;
        else if (!may_remove(ring, at))
            forget(ring, at);
        else if (!remove_file(ring, at))
            at++;
    }
}

/* Returns the bytes that are missing to --min-free. */
static uint64_t missing_space(const struct ring *ring) {
    const struct settings *settings = ring->settings;
    struct statvfs disk;
    if (fstatvfs(ring->directory_fd, &disk))
        return 0;
    double part = (double)disk.f_blocks * settings->min_free_percent / 100;
    uint64_t wanted = MAX(settings->min_free_bytes, (uint64_t)part * disk.f_frsize);
    uint64_t there = (uint64_t)disk.f_bavail * disk.f_frsize;
    return wanted > there ? wanted - there : 0;
}

static void keep_free(struct ring *ring) {
    int64_t now = monotonic_ns();
    if ((ring->freed_at_ns && now - ring->freed_at_ns < FREEING_NS) || !ring_needs_time(ring))
        return;
    uint64_t missing = missing_space(ring), before = ring->bytes;
    while (before - ring->bytes < missing && ring->count > 1 &&
           remove_oldest(ring, ring->count - 1, "--min-free is reached"))
        ring->freed_at_ns = now;
}

/* For the status, which must not wait for the lock. */
static void show_counts(struct ring *ring) {
    int64_t begun_ns = -1;
    if (ring->count)
        directory_begin_ns(ring->files->name, &begun_ns);
    ring->oldest_begun_ns = begun_ns;
    ring->oldest_closed_ns = ring->count ? ring->files->closed_ns : boot_ns();
    ring->file_count = ring->count;
    ring->byte_count = ring->bytes;
}

static void keep_bounds(struct ring *ring) {
    if (ring->directory_fd < 0)
        return;
    keep_age(ring);
    keep_number_and_size(ring);
    keep_free(ring);
    show_counts(ring);
}

/* Inserts a copy of the name, in its order if `earlier`, else at the end. Returns false if memory
 * is short. */
static bool insert(struct ring *ring, const struct ring_file *file, bool earlier) {
    if (ring->count == ring->capacity) {
        size_t capacity = 2 * ring->capacity + 64;
        struct ring_file *files = realloc(ring->files, capacity * sizeof *files);
        if (!files)
            return false;
        ring->files = files;
        ring->capacity = capacity;
    }
    char *copy = strdup(file->name);
    size_t at = ring->count;
    if (!copy)
        return false;
    while (earlier && at && directory_compare_names(file->name, ring->files[at - 1].name) < 0)
        at--;
    memmove(ring->files + at + 1, ring->files + at, (ring->count - at) * sizeof *ring->files);
    ring->files[at] = *file;
    ring->files[at].name = copy;
    ring->count++;
    ring->bytes += file->bytes;
    return true;
}

static void use_directory(struct ring *ring, int directory_fd) {
    if (ring->directory_fd >= 0)
        close(ring->directory_fd);
    ring->directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
}

/* Returns when the file was changed last, as far as the clock of today tells. */
static int64_t closed_ns(int directory_fd, const char *name, bool earlier) {
    struct stat info;
    int64_t now = boot_ns();
    if (!earlier || fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW))
        return now;
    return now - MAX(realtime_ns() - timespec_ns(info.st_mtim), 0);
}

void ring_add(struct ring *ring, int directory_fd, const char *name, uint64_t bytes, bool earlier,
              bool is_pending) {
    if (!ring_is_bounded(ring))
        return;
    struct ring_file file = {(char *)name, bytes, closed_ns(directory_fd, name, earlier),
                             is_pending};
    pthread_mutex_lock(&ring->lock);
    use_directory(ring, directory_fd);
    if (!insert(ring, &file, earlier))
        log_warning("out of memory: %s is not in the ring", name);
    keep_bounds(ring);
    pthread_mutex_unlock(&ring->lock);
}

void ring_release(struct ring *ring, const char *name) {
    pthread_mutex_lock(&ring->lock);
    for (size_t at = 0; at < ring->count; at++)
        if (ring->files[at].is_pending && !strcmp(ring->files[at].name, name)) {
            ring->files[at].is_pending = false;
            break;
        }
    keep_bounds(ring);
    pthread_mutex_unlock(&ring->lock);
}

void ring_replace(struct ring *ring, const char *name, const char *other, uint64_t bytes) {
    pthread_mutex_lock(&ring->lock);
    for (size_t at = 0; at < ring->count; at++)
        if (!strcmp(ring->files[at].name, name)) {
            char *copy = other ? strdup(other) : NULL;
            if (!copy) {
                forget(ring, at);
                break;
            }
            free(ring->files[at].name);
            ring->files[at].name = copy;
            ring->bytes += bytes - ring->files[at].bytes;
            ring->files[at].bytes = bytes;
            break;
        }
    keep_bounds(ring);
    pthread_mutex_unlock(&ring->lock);
}

void ring_check(struct ring *ring) {
    pthread_mutex_lock(&ring->lock);
    keep_bounds(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* For a full disk: removes a file although no bound is exceeded. */
bool ring_make_room(struct ring *ring) {
    if (!ring_is_bounded(ring))
        return false;
    pthread_mutex_lock(&ring->lock);
    bool any = ring->count && remove_oldest(ring, ring->count, "the disk is full");
    show_counts(ring);
    pthread_mutex_unlock(&ring->lock);
    return any;
}

static int by_order(const struct dirent **a, const struct dirent **b) {
    return directory_compare_names((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry) {
    return *entry->d_name != '.';
}

/* Bounds are kept after all files are known, since only then is it known which are the oldest. */
void ring_scan(struct ring *ring) {
    struct dirent **names;
    int fd = ring->directory->fd;
    int count = ring_is_bounded(ring) ? scandirat(fd, ".", &names, is_shown, by_order) : -1;
    if (count < 0)
        return;
    use_directory(ring, fd);
    for (int i = 0; i < count; i++) {
        char *name = names[i]->d_name;
        struct stat info;
        if (directory_owns_name(ring->directory, name) &&
            !fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode)) {
            bool is_pending =
                ring->settings->on_close && has_beside(ring, name, MARKER_ON_CLOSE, false);
            struct ring_file file = {name, (uint64_t)info.st_size, closed_ns(fd, name, true),
                                     is_pending};
            insert(ring, &file, false);
        }
        free(names[i]);
    }
    free(names);
    ring_check(ring);
}
