/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic links in a path that the command line names. Those in a directory of captures are never
 * followed. */
#ifndef WIRETALE_CAPTURE_PATH_H
#define WIRETALE_CAPTURE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Where a path leads, held open: nobody can exchange it any more. The descriptors are O_PATH. */
struct resolved_path {
    int fd;                  /* the directory that the last part is in */
    int around_fd;           /* the directory that this one was entered from */
    int node_fd;             /* the last part itself; -1: it is not there */
    int descriptor;          /* of this process, for which the path stands, as /dev/stdout; or -1 */
    bool linked;             /* the last part of the path was a link */
    uid_t linker;            /* of links on the way, neither root nor who runs this; or 0 */
    char path[PATH_MAX];     /* of the directory, without the links */
    char name[NAME_MAX + 1]; /* the last part; no link */
    struct stat info;        /* of the last part; all 0 when it is not there */
};

/* Walks the path part by part. A link of a user other than root and whoever runs this program makes
 * that user `linker`: the path may lead only to what is that user's, too, which is for the caller
 * to check with path_check_owner(). Fails with one line. */
void path_resolve(struct resolved_path *place, const char *path);
/* Fails with one line when another user's link leads to what belongs to `owner` instead. */
void path_check_owner(uid_t linker, uid_t owner, const char *path);
void path_close(struct resolved_path *place);
/* Appends a part to a path; false when there is no room. */
bool path_append(char path[PATH_MAX], const char *name);
/* Opens a directory for reading, with no link on the way; -1 with errno. */
int path_open_directory(const char *path);
/* The path of an open descriptor, for calls that take only a path. */
#define DESCRIPTOR_PATH_SIZE 32
void path_of_descriptor(char path[DESCRIPTOR_PATH_SIZE], int fd);

#endif
