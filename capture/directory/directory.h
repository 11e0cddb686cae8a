/* SPDX-License-Identifier: Apache-2.0 */
/* The output directory, which stays open, and the names in it. No symbolic link in it is followed.
 *
 *   PREFIX_20261121T141500.123456789Z_00001.pcapng         a finished file; the time is UTC
 *   .PREFIX_20261121T141500.123456789Z_00001.pcapng.part   while it is written
 *   .PREFIX.pcapng.lock                                    held by the capture
 *   .NAME.unfinished                                       it is still to be compressed or indexed
 *   .NAME.on-close                                         its --on-close command has not succeeded
 *   .NAME.index                                            addresses and times in it
 *   .NAME.keep                                             no bound removes it
 */
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

/* Hidden files beside a finished one. */
#define MARKER_UNFINISHED ".unfinished"
#define MARKER_ON_CLOSE   ".on-close"
#define MARKER_INDEX      ".index"
#define MARKER_KEEP       ".keep"

#define DIRECTORY_FILE_MODE 0640

struct directory {
    char path[PATH_MAX];
    int fd;         /* of the directory, or of the stream */
    int lock_fd;    /* -1: not locked */
    int parent_fd;  /* of the directory above, which the user may not be able to open by name */
    bool is_stream; /* stdout, a FIFO, a device or a socket instead of files */
    bool made;      /* by this run */
    bool plain;     /* one file with the name that -w gives */
    bool compressed;
    bool named; /* -w names a file in the directory */
    bool
        sealed; /* the process has the one file, but no access to the directory (finish/keeper.c) */
    int sealed_fd; /* that file until it is begun; then -1 */
    char sealed_name[NAME_SIZE];
    bool confined; /* Landlock forbids any other directory, even if it replaces this one */
    char prefix[128], suffix[16];
    uint32_t number; /* of the last file */
    uid_t owner;
    gid_t group;
    mode_t mode;
    uid_t linker; /* owner of links on the way, if neither root nor the caller; else 0 */
};

/* Returns the descriptor of this process that -w names, or -1. To be called before any file is
 * opened. Exits with one line if that descriptor is closed. */
int directory_descriptor(const char *output);
/* Opens what -w names with the rights of the caller. Exits with one line if it cannot. */
void directory_open(struct directory *directory, const struct settings *settings,
                    const char *interfaces);
/* Changes to a subdirectory with the name of a user who may not write to the directory, and creates
 * it if necessary. If -w names one file, sets `sealed` instead. Exits with one line if neither is
 * possible. */
void directory_enter_subdirectory(struct directory *directory, const char *name, uid_t user,
                                  gid_t group);
/* Opens the path again, which may lead to another directory by now. Returns false with errno. */
bool directory_reopen(struct directory *directory);
/* Locks the prefix in the directory against other captures. Returns true if this one holds the
 * lock; false with EBUSY if another does, or with another errno if the lock file cannot be opened.
 */
bool directory_lock(struct directory *directory);
/* Returns whether the lock file exists but is not held; its name is then in `name`. */
bool directory_lock_is_stuck(const struct directory *directory, char name[NAME_SIZE]);
/* Removes the lock file, if it still is this one's. */
void directory_unlock(struct directory *directory);
/* Names the next file, which begins at `time_ns`. */
void directory_next_name(struct directory *directory, int64_t time_ns, char name[NAME_SIZE]);
/* Creates and locks the temporary file of `name`. Returns its descriptor, or -1 with errno. A
 * sealed directory returns its one file once, then ENOENT. */
int directory_create(struct directory *directory, const char *name, char temporary[NAME_SIZE]);
/* Extracts the final name from a temporary one. Returns false if it has another form. */
bool directory_final_name(const char *temporary, char name[NAME_SIZE]);
/* Makes "NAME-1.pcapng" of "NAME.pcapng", if that is taken. */
void directory_other_name(const char *name, int number, char other[NAME_SIZE]);
/* Sets the time in the name of a finished file. Returns false if it has another form. */
bool directory_begin_ns(const char *name, int64_t *begin_ns);
/* Returns whether a name has the form that this program gives to finished files, with this prefix
 * or, if -w names the directory, with another one that no running capture uses. */
bool directory_owns_name(const struct directory *directory, const char *name);
/* Compares names of that form for sorting: by their numbers, which go on over runs, then as texts.
 */
int directory_compare_names(const char *one, const char *other);
/* Lets the next file have the number after the highest in the directory. */
void directory_continue_numbers(struct directory *directory);

#endif
