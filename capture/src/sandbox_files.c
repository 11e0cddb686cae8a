/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock, by its system calls: the C library has no functions for them. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define ACCESS_FIRST ((1ULL << 13) - 1) /* all of the first version */
#define READING      (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING                                                                                    \
    (READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                       \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

static uint64_t handled_by(int version) {
    uint64_t handled = ACCESS_FIRST;
    if (version >= 2)
        handled |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        handled |= LANDLOCK_ACCESS_FS_TRUNCATE;
    return handled;
}

static bool allow_below(int rules, int fd, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    return fd >= 0 && !syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static bool allow_path(int rules, const char *path, uint64_t access) {
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool allowed = allow_below(rules, fd, access);
    if (fd >= 0)
        close(fd);
    return allowed;
}

/* What `path` is in, but not the root: that would be everything. */
static void allow_parent(int rules, const char *path, uint64_t access) {
    char parent[PATH_MAX];
    if (snprintf(parent, sizeof parent, "%s", path) >= (int)sizeof parent)
        return;
    char *slash = strrchr(parent, '/');
    if (slash == parent)
        return;
    if (slash)
        *slash = '\0';
    allow_path(rules, slash ? parent : ".", access);
}

bool sandbox_files(const struct folder *folder, const char *status) {
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    uint64_t handled = handled_by(version);
    struct landlock_ruleset_attr wanted = {.handled_access_fs = handled};
    int rules =
        (int)syscall(SYS_landlock_create_ruleset, &wanted, sizeof wanted.handled_access_fs, 0);
    if (rules < 0)
        return false;
    allow_path(rules, "/sys/class/net", READING);
    allow_path(rules, "/sys/devices", READING);
    if (!folder->is_stream) {
        allow_below(rules, folder->fd, WRITING & handled);
        /* A folder that is removed and made again is another one to Landlock: what is around it is
         * allowed, too. Permissions of files apply as ever. */
        allow_parent(rules, folder->path, WRITING & handled);
    }
    if (status)
        allow_parent(rules, status, LANDLOCK_ACCESS_FS_REMOVE_FILE);
    bool confined = !syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
    return confined;
}
