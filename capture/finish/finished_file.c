/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing is an atomic rename without replacement, so a file with its final name is always
 * complete, and no existing capture is overwritten by accident. */
#include "finish/finished_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define MAX_NAMES 100 /* tried if the name is taken */

bool finished_file_index(struct finished_file *file) {
    if (file->bytes <= INDEX_BLOCK_BYTES)
        return true; /* it is read as fast without one */
    errno = ENOMEM;
    file->index = malloc(sizeof *file->index);
    if (file->index && !file_index_build(file->index, file->fd)) {
        free(file->index);
        file->index = NULL;
    }
    return file->index != NULL;
}

bool finished_file_write_index(struct finished_file *file) {
    struct stat status;
    return !file->index || (!fstat(file->fd, &status) &&
                            index_file_write(file->index, file->directory_fd, file->name, &status));
}

void finished_file_drop_index(struct finished_file *file) {
    if (file->index)
        file_index_free(file->index);
    free(file->index);
    file->index = NULL;
}

void finished_file_free(struct finished_file *file) {
    finished_file_drop_index(file);
    close(file->fd);
    close(file->directory_fd);
    free(file);
}

/* Returns whether the existing file may be replaced, which only the name that -w gives can be. */
static bool is_replaceable(const struct finished_file *file,
                           const struct replacement *replacement) {
    struct stat existing;
    if (!file->asked_for ||
        fstatat(file->directory_fd, file->name, &existing, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(existing.st_mode))
        return false;
    bool is_older = timespec_ns(existing.st_mtim) < replacement->begun_ns;
    return !existing.st_size || (replacement->overwrite && is_older);
}

/* RENAME_NOREPLACE makes check and rename one step: two captures cannot overwrite each other's
 * files. */
bool publish_file(struct finished_file *file, const struct replacement *replacement) {
    if (is_replaceable(file, replacement))
        return !renameat(file->directory_fd, file->temporary, file->directory_fd, file->name);
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s", file->name);
    for (int i = 1; i < MAX_NAMES; i++) {
        if (!renameat2(file->directory_fd, file->temporary, file->directory_fd, name,
                       RENAME_NOREPLACE)) {
            if (i > 1)
                log_warning("%s exists: this file is %s", file->name, name);
            strcpy(file->name, name);
            return true;
        }
        if (errno != EEXIST)
            return false;
        directory_other_name(file->name, i, name);
    }
    return false;
}
