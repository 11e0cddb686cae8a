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

struct folder {
    char path[PATH_MAX];
    int fd;         /* of the folder, or of the stream */
    bool is_stream; /* stdout, a FIFO or a device: no files at all */
    bool made;      /* by this run */
    bool plain;     /* one file, named as it was asked for */
    char prefix[128], suffix[16];
    uint32_t number; /* of the last file */
    uid_t owner;
    gid_t group;
    mode_t mode;
};

/* Opens what -w names, as the user that started the program; fails with one line. */
void folder_open(struct folder *folder, const struct settings *settings, const char *interfaces);
/* Opens the path anew: it may be another folder by now. False, with errno, when it is not there. */
bool folder_reopen(struct folder *folder);
/* The name of the next file, which begins at that time. */
void folder_next_name(struct folder *folder, int64_t time_ns, char name[NAME_ROOM]);
/* Makes the temporary file of `name` and locks it; -1 with errno. */
int folder_create(const struct folder *folder, const char *name, char temporary[NAME_ROOM]);
/* The finished name in a temporary one; false when it is none. */
bool folder_final_name(const char *temporary, char name[NAME_ROOM]);
/* Whether it is the name of a finished file with this prefix, as folder_next_name() makes them. */
bool folder_is_own(const struct folder *folder, const char *name);

#endif
