/* SPDX-License-Identifier: Apache-2.0 */
/* Resolution of paths on the command line, with a safe rule for symbolic links. (In the output
 * directory links are never followed.) */
#ifndef WIRETALE_CAPTURE_PATH_H
#define WIRETALE_CAPTURE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The end of a path. It is held open by O_PATH descriptors, so that it cannot be exchanged. */
struct resolved_path {
    int fd;         /* directory of the last component */
    int around_fd;  /* directory from which this one was entered */
    int node_fd;    /* last component; -1: it does not exist */
    int descriptor; /* of this process, if the path stands for one, such as /dev/stdout; else -1 */
    bool linked;    /* the last component of the path was a link */
    uid_t linker;   /* owner of links on the way, if neither root nor the caller; else 0 */
    char path[PATH_MAX];     /* of the directory, without links */
    char name[NAME_MAX + 1]; /* of the last component */
    struct stat info;        /* of the last component; zeros if it does not exist */
};

/* Resolves a path. If a link belongs to a user other than root and the caller, `linker` is that
 * user, and the caller must call path_check_owner() on what it opens. Exits with one line if a link
 * must not be followed. */
void path_resolve(struct resolved_path *place, const char *path);

/* Exits with one line if another user's link leads to what `owner` owns instead. */
void path_check_owner(uid_t linker, uid_t owner, const char *path);

/* Closes the descriptors. */
void path_close(struct resolved_path *place);

/* Returns whether both are the same file. */
static inline bool is_same_file(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Returns whether the path has the suffix `end` and something before it. */
bool path_ends_with(const char *path, const char *end);

/* Appends a component. Returns false if the path becomes too long. */
bool path_append(char path[PATH_MAX], const char *name);

/* Opens a directory for reading; no component may be a link. Returns -1 with errno. */
int path_open_directory(const char *path);

#endif
