/* SPDX-License-Identifier: Apache-2.0 */
/* Where files go: a folder that is open all the time, and the names in it.
 *
 *   PREFIX_20261121T141500.123456789Z_00001.pcapng   a finished file; the time is UTC
 *   .PREFIX_20261121T141500.123456789Z_00001.pcapng.part   while it is written
 *
 * Everything is named relative to the open folder, and no symbolic link is followed. */
#ifndef WIRETALE_FOLDER_H
#define WIRETALE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "settings.h"

#define NAME_ROOM  256
#define TEMPORARY  ".part"
#define COMPRESSED ".zst"

#define FOLDER_FILE_MODE 0640

struct folder {
    char path[PATH_MAX];
    int fd;         /* of the folder, or of the stream */
    int lock_fd;    /* of folder_lock(); -1: not held */
    int parent_fd;  /* what it is in: the user may not be let through to it by name */
    bool is_stream; /* stdout, a FIFO, a device or a socket: no files at all */
    bool made;      /* by this run */
    bool plain;     /* one file, named as it was asked for */
    bool compressed;
    bool named;    /* -w has a file's name: the folder is what that is in */
    bool sealed;   /* the capture has that one file and no access to the folder */
    int sealed_fd; /* that file, until it is begun; then -1 */
    char sealed_name[NAME_ROOM];
    bool confined; /* Landlock: no other folder can be used, also one that is made anew */
    char prefix[128], suffix[16];
    uint32_t number; /* of the last file */
    uid_t owner;
    gid_t group;
    mode_t mode;
    uid_t linker; /* whose links lead to it, neither root's nor those of who runs this; or 0 */
};

/* The descriptor of this process that -w names, or -1: to be asked before anything is opened. Fails
 * with one line, also when that one is not open. */
int folder_descriptor(const char *output);
/* Opens what -w names, as the user that started the program; fails with one line. */
void folder_open(struct folder *folder, const struct settings *settings, const char *interfaces);
/* A subfolder with that user's name, who may not write to the folder itself: made here, or by an
 * earlier run. Where -w names one file, the folder is to be sealed instead (file_keeper.h). Fails
 * with one line. */
void folder_enter_own(struct folder *folder, const char *name, uid_t user, gid_t group);
/* Opens the path anew: it may be another folder by now. False, with errno, when it is not there. */
bool folder_reopen(struct folder *folder);
/* Keeps other captures from the folder and prefix. False with EBUSY when one is there already, or
 * with another errno when the lock file cannot be made. True, too, when it is held already. */
bool folder_lock(struct folder *folder);
/* Whether the lock is not held although its file is there; its name, then. */
bool folder_lock_is_stuck(const struct folder *folder, char name[NAME_ROOM]);
/* At the end, and when the folder has become another one. */
void folder_unlock(struct folder *folder);
/* The name of the next file, which begins at that time. */
void folder_next_name(struct folder *folder, int64_t time_ns, char name[NAME_ROOM]);
/* Makes the temporary file of `name` and locks it; -1 with errno. Of a sealed folder it is the one
 * file, once, and then ENOENT. */
int folder_create(struct folder *folder, const char *name, char temporary[NAME_ROOM]);
/* The finished name in a temporary one; false when it is none. */
bool folder_final_name(const char *temporary, char name[NAME_ROOM]);
/* "NAME.pcapng" is taken: "NAME-1.pcapng" and so on. */
void folder_other_name(const char *name, int number, char other[NAME_ROOM]);
/* Whether it is the name of a finished file with this prefix, as folder_next_name() and
 * folder_other_name() make them. */
bool folder_is_own(const struct folder *folder, const char *name);

#endif
