/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed file gets its name before the plain one is removed. After a kill between these
 * steps both exist, and the plain one still has its marker: its bytes are compared, and it is
 * removed. */
#include "finish/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finish/recover.h"
#include "index/index_file.h"

/* Opens a published file as one to be finished. Returns NULL with errno. */
static struct finished_file *open_published(const char *name, int directory_fd) {
    struct finished_file *file = calloc(1, sizeof *file);
    struct stat info;
    if (!file)
        return NULL;
    file->directory_fd = directory_fd;
    file->fd = recover_open(directory_fd, name, O_RDONLY);
    if (file->fd < 0 || fstat(file->fd, &info)) {
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
    jobs_unmark(directory_fd, name, MARKER_TODO);
    jobs_unmark(directory_fd, name, MARKER_UNFINISHED);
}

/* Removes the plain file; a marker of the user goes with its content. */
static void remove_plain(int directory_fd, const char *plain, const char *compressed) {
    char kept[NAME_SIZE], keeps[NAME_SIZE];
    unlinkat(directory_fd, plain, 0);
    if (snprintf(kept, sizeof kept, ".%s" MARKER_KEEP, plain) < NAME_SIZE &&
        snprintf(keeps, sizeof keeps, ".%s" MARKER_KEEP, compressed) < NAME_SIZE)
        renameat(directory_fd, kept, directory_fd, keeps);
    index_file_remove(directory_fd, plain);
    remove_markers(directory_fd, plain);
}

/* Returns whether the file is finished under the name that it then has. */
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
    remove_plain(file->directory_fd, file->original, file->name);
    ring_replace(ring, file->original, file->name, file->bytes);
    return true;
}

/* Returns the name that the file has at the end, which `file` then has; NULL if it is gone, as one
 * whose compressed file is there. Sets `reason`, an errno, if it is not finished. */
static const char *finish(struct publisher *publisher, struct ring *ring,
                          struct finished_file *file, const _Atomic int64_t *until_ns,
                          int *reason) {
    char compressed[NAME_SIZE + sizeof COMPRESSED];
    if (!recover_is_compressed(file)) {
        *reason = finish_published(publisher, ring, file, until_ns) ? 0 : errno;
        return file->name;
    }
    snprintf(compressed, sizeof compressed, "%s" COMPRESSED, file->name);
    remove_plain(file->directory_fd, file->name, compressed);
    return NULL;
}

void resume_finishing(struct publisher *publisher, struct ring *ring, struct job *job,
                      int directory_fd, const _Atomic int64_t *until_ns) {
    struct finished_file *file = open_published(job->name, directory_fd);
    int reason = file ? 0 : errno;
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
}
