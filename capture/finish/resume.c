/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed file gets its name before the plain one is removed. After a kill between these
 * steps both exist, and the plain one still has its marker: its bytes are compared, and it is
 * removed.
 *
 * The plain file is locked meanwhile: a capture of another prefix, which began while this one's was
 * not in use, may have the same job. */
#include "finish/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finish/recover.h"
#include "index/index_file.h"

/* Opens and locks the file. Returns -1 with errno: EBUSY if another process finishes it, ENOENT if
 * one has just replaced it. */
static int open_locked(int directory_fd, const char *name, struct stat *info) {
    int fd = recover_open(directory_fd, name, O_RDONLY);
    if (fd < 0)
        return -1;
    int reason = flock(fd, LOCK_EX | LOCK_NB) ? EBUSY : fstat(fd, info) ? errno : 0;
    if (!reason && info->st_nlink)
        return fd;
    close(fd);
    errno = reason ? reason : ENOENT;
    return -1;
}

/* Opens a published file as one to be finished. Returns NULL with errno. */
static struct finished_file *open_published(const char *name, int directory_fd) {
    struct finished_file *file = calloc(1, sizeof *file);
    struct stat info;
    if (!file)
        return NULL;
    file->directory_fd = directory_fd;
    file->fd = open_locked(directory_fd, name, &info);
    if (file->fd < 0) {
        int reason = errno;
        free(file);
        errno = reason;
        return NULL;
    }
    file->bytes = (uint64_t)info.st_size;
    snprintf(file->name, NAME_SIZE, "%s", name);
    snprintf(file->temporary, NAME_SIZE, "%s", name);
    return file;
}

static void remove_markers(int directory_fd, const char *name) {
    jobs_unmark(directory_fd, name, MARKER_ON_CLOSE);
    jobs_unmark(directory_fd, name, MARKER_UNFINISHED);
}

static void move_marker(int directory_fd, const char *plain, const char *compressed,
                        const char *marker) {
    char from[NAME_SIZE], to[NAME_SIZE];
    if (snprintf(from, sizeof from, ".%s%s", plain, marker) < NAME_SIZE &&
        snprintf(to, sizeof to, ".%s%s", compressed, marker) < NAME_SIZE)
        renameat(directory_fd, from, directory_fd, to);
}

/* Removes the plain file; a marker of the user goes with its content, and so does one of a command
 * that this run does not have. Returns false if somebody has removed it meanwhile, as a full disk
 * does. */
static bool remove_plain(const struct publisher *publisher, int directory_fd, const char *plain,
                         const char *compressed) {
    bool is_removed = !unlinkat(directory_fd, plain, 0) || errno != ENOENT;
    move_marker(directory_fd, plain, compressed, MARKER_KEEP);
    if (!publisher->jobs->command)
        move_marker(directory_fd, plain, compressed, MARKER_ON_CLOSE);
    index_file_remove(directory_fd, plain);
    remove_markers(directory_fd, plain);
    return is_removed;
}

/* Returns whether the file is finished under the name that it then has: none if it was removed
 * meanwhile, because then the compressed one goes, too. */
static bool finish_published(struct publisher *publisher, struct ring *ring,
                             struct finished_file *file, const _Atomic int64_t *until_ns) {
    if (!publisher_complete(publisher, file, until_ns))
        return false;
    if (!*file->original) {
        bool done = finished_file_write_index(file);
        if (done)
            jobs_unmark(file->directory_fd, file->name, MARKER_UNFINISHED);
        return done;
    }
    if (!publisher_publish(publisher, file)) {
        int reason = errno;
        unlinkat(file->directory_fd, file->temporary, 0);
        errno = reason;
        return false;
    }
    if (!remove_plain(publisher, file->directory_fd, file->original, file->name)) {
        publisher_withdraw(file);
        *file->name = '\0';
        return true;
    }
    ring_replace(ring, file->original, file->name, file->bytes);
    return true;
}

/* Returns the name that the file has at the end, which `file` then has; NULL if it is gone, as one
 * whose compressed file is there, or that was removed. Sets `reason`, an errno, if it is not
 * finished. */
static const char *finish(struct publisher *publisher, struct ring *ring,
                          struct finished_file *file, const _Atomic int64_t *until_ns,
                          int *reason) {
    char compressed[NAME_SIZE + sizeof COMPRESSED];
    if (!recover_is_compressed(file)) {
        *reason = finish_published(publisher, ring, file, until_ns) ? 0 : errno;
        return *file->name ? file->name : NULL;
    }
    snprintf(compressed, sizeof compressed, "%s" COMPRESSED, file->name);
    remove_plain(publisher, file->directory_fd, file->name, compressed);
    return NULL;
}

void resume_finishing(struct publisher *publisher, struct ring *ring, struct job *job,
                      int directory_fd, const _Atomic int64_t *until_ns) {
    struct finished_file *file = open_published(job->name, directory_fd);
    int reason = file ? 0 : errno;
    /* The lock outlives compress_file(), which closes the plain file. */
    int lock_fd = file ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;
    const char *name = NULL;
    if (file) {
        name = finish(publisher, ring, file, until_ns, &reason);
    } else if (reason == ENOENT) {
        remove_markers(directory_fd, job->name);
        reason = 0;
    }
    if (reason) {
        jobs_not_finished(publisher->jobs, job, *until_ns ? strerror(reason) : NULL);
    } else {
        if (!name)
            ring_replace(ring, job->name, NULL, 0);
        jobs_finished(publisher->jobs, job, name);
    }
    if (file)
        finished_file_free(file);
    else
        close(directory_fd);
    if (lock_fd >= 0)
        close(lock_fd);
}
