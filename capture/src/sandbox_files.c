/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock, by its system calls: the C library has no functions for them. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
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
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define NETWORK 3ULL /* TCP: to bind, to connect */
#define SCOPED  3ULL /* abstract Unix sockets and signals of who is not confined alike */

#define ACCESS_FIRST ((1ULL << 13) - 1) /* all of the first version */
#define READING      (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING                                                                                    \
    (READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                       \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

/* struct landlock_ruleset_attr of version 6: the headers may be older than the kernel. */
struct attribute {
    uint64_t files, network, scoped;
};

static uint64_t handled_by(int version) {
    uint64_t handled = ACCESS_FIRST;
    if (version >= 2)
        handled |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        handled |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (version >= 5)
        handled |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
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

/* The version of Landlock is told by how long the attribute may be; what the kernel does not have
 * is left out. */
static int make_rules(int version, uint64_t files) {
    struct attribute wanted = {.files = files};
    size_t size = sizeof wanted.files;
    if (version >= 4) {
        wanted.network = NETWORK;
        size += sizeof wanted.network;
    }
    if (version >= 6) {
        wanted.scoped = SCOPED;
        size += sizeof wanted.scoped;
    }
    return (int)syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
}

bool sandbox_files(const struct folder *folder) {
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    uint64_t handled = handled_by(version);
    int rules = make_rules(version, handled);
    if (rules < 0)
        return false;
    allow_path(rules, "/sys/class/net", READING);
    allow_path(rules, "/sys/devices", READING);
    if (!folder->is_stream && !folder->sealed)
        allow_below(rules, folder->fd, WRITING & handled);
    bool confined =
        !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
    return confined;
}
