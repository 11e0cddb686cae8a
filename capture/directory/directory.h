/* SPDX-License-Identifier: Apache-2.0 */
/* Where files go: a directory that is open all the time, and the names in it.
 *
 *   PREFIX_20261121T141500.123456789Z_00001.pcapng   a finished file; the time is UTC
 *   .PREFIX_20261121T141500.123456789Z_00001.pcapng.part   while it is written
 *
 * Everything is named relative to the open directory, and no symbolic link is followed. */
#ifndef WIRETALE_CAPTURE_DIRECTORY_H
#define WIRETALE_CAPTURE_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "settings.h"

#define NAME_SIZE  256
#define TEMPORARY  ".part"
#define COMPRESSED ".zst"

#define DIRECTORY_FILE_MODE 0640

struct directory {
    char path[PATH_MAX];
    int fd;         /* of the directory, or of the stream */
    int lock_fd;    /* of directory_lock(); -1: not held */
    int parent_fd;  /* what it is in: the user may not be let through to it by name */
    bool is_stream; /* stdout, a FIFO, a device or a socket: no files at all */
    bool made;      /* by this run */
    bool plain;     /* one file, named as it was asked for */
    bool compressed;
    bool named;    /* -w has a file's name: the directory is what that is in */
    bool sealed;   /* the capture has that one file and no access to the directory */
    int sealed_fd; /* that file, until it is begun; then -1 */
    char sealed_name[NAME_SIZE];
    bool confined; /* Landlock: no other directory can be used, also one that is made anew */
    char prefix[128], suffix[16];
    uint32_t number; /* of the last file */
    uid_t owner;
    gid_t group;
    mode_t mode;
    uid_t linker; /* whose links lead to it, neither root's nor those of who runs this; or 0 */
};

/* The descriptor of this process that -w names, or -1: to be asked before anything is opened. Fails
 * with one line, also when that one is not open. */
int directory_descriptor(const char *output);
/* Opens what -w names, as the user that started the program; fails with one line. */
void directory_open(struct directory *directory, const struct settings *settings,
                    const char *interfaces);
/* A subdirectory with that user's name, who may not write to the directory itself: made here, or by
 * an earlier run. Where -w names one file, the directory is to be sealed instead (file_keeper.h).
 * Fails with one line. */
void directory_enter_subdirectory(struct directory *directory, const char *name, uid_t user,
                                  gid_t group);
/* Opens the path anew: it may be another directory by now. False, with errno, when it is not there.
 */
bool directory_reopen(struct directory *directory);
/* Keeps other captures from the directory and prefix. False with EBUSY when one is there already,
 * or with another errno when the lock file cannot be made. True, too, when it is held already. */
bool directory_lock(struct directory *directory);
/* Whether the lock is not held although its file is there; its name, then. */
bool directory_lock_is_stuck(const struct directory *directory, char name[NAME_SIZE]);
/* At the end, and when the directory has become another one. */
void directory_unlock(struct directory *directory);
/* The name of the next file, which begins at that time. */
void directory_next_name(struct directory *directory, int64_t time_ns, char name[NAME_SIZE]);
/* Makes the temporary file of `name` and locks it; -1 with errno. Of a sealed directory it is the
 * one file, once, and then ENOENT. */
int directory_create(struct directory *directory, const char *name, char temporary[NAME_SIZE]);
/* The finished name in a temporary one; false when it is none. */
bool directory_final_name(const char *temporary, char name[NAME_SIZE]);
/* "NAME.pcapng" is taken: "NAME-1.pcapng" and so on. */
void directory_other_name(const char *name, int number, char other[NAME_SIZE]);
/* Whether it is the name of a finished file with this prefix, as directory_next_name() and
 * directory_other_name() make them. */
bool directory_owns_name(const struct directory *directory, const char *name);

#endif
