/* SPDX-License-Identifier: Apache-2.0 */
#include "link_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define LINKS_MOST 40 /* as the kernel */

/* The folder that a path is in, as it is written. */
static void parent_of(const char *path, char parent[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(parent, path, length);
    strcpy(parent + length, slash ? "" : ".");
}

int link_descriptor(const char *path) {
    char parent[PATH_MAX], real[PATH_MAX], own[PATH_MAX], *end;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    parent_of(path, parent);
    if (!realpath("/proc/self/fd", own) || !realpath(parent, real) || strcmp(real, own))
        return -1;
    long number = strtol(name, &end, 10);
    return end == name || *end || number < 0 || number > INT_MAX ? -1 : (int)number;
}

/* In /tmp, where everybody makes links, the kernel does not follow those of others either. */
static bool is_shared(const struct stat *folder) {
    return folder->st_mode & S_ISVTX && folder->st_mode & S_IWOTH;
}

static void check_owner(const char *path, const char *parent, uid_t linker, uid_t *owner) {
    struct stat folder;
    if (!linker || linker == geteuid())
        return;
    bool foreign = stat(parent, &folder) || (is_shared(&folder) && folder.st_uid != linker);
    if (foreign || (*owner && *owner != linker))
        fail(EXIT_UNREADABLE,
             "%s is a symbolic link of another user, which is not followed: name what it leads to",
             path);
    *owner = linker;
}

static void follow_one(char path[PATH_MAX], const char *parent) {
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        fail(EXIT_UNREADABLE, "%s is a symbolic link that cannot be read", path);
    target[length] = '\0';
    int room = *target == '/' ? snprintf(joined, sizeof joined, "%s", target)
                              : snprintf(joined, sizeof joined, "%s/%s", parent, target);
    if (room >= (int)sizeof joined)
        fail(EXIT_UNREADABLE, "%s is a symbolic link to a path that is too long", path);
    while (room > 1 && joined[room - 1] == '/')
        joined[--room] = '\0';
    strcpy(path, joined);
}

bool link_follow(char path[PATH_MAX], uid_t *owner) {
    char named[PATH_MAX], parent[PATH_MAX];
    struct stat told;
    strcpy(named, path);
    for (int i = 0; i < LINKS_MOST; i++) {
        if (lstat(path, &told) || !S_ISLNK(told.st_mode) || link_descriptor(path) >= 0)
            return i > 0;
        parent_of(path, parent);
        check_owner(path, parent, told.st_uid, owner);
        follow_one(path, parent);
    }
    fail(EXIT_UNREADABLE, "%s: too many symbolic links", named);
}
