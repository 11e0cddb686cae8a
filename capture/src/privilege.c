/* SPDX-License-Identifier: Apache-2.0 */
#include "privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "user_map.h"

static const char *const default_users[] = {"wiretale", "nobody"};

bool privilege_may_capture(void) {
    return capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_RAW);
}

void privilege_refuse(const char *reason) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    fail(EXIT_MISSING, "%s: sudo setcap cap_net_raw,cap_net_admin+ep %s", reason,
         *program ? program : "wiretale-capture");
}

/* For good: real, effective, saved and file-system user. 0 when done. */
static int set_user(const struct identity *identity) {
    int grouped = getpwuid(identity->user) ? initgroups(identity->name, identity->group)
                                           : setgroups(1, &identity->group);
    return grouped || setresgid(identity->group, identity->group, identity->group) ||
           setresuid(identity->user, identity->user, identity->user);
}

/* The kernel decides, as it will: with the user's groups, access lists, a read-only mount. */
static bool may_write(const struct identity *identity, const struct folder *folder) {
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        fail(EXIT_IO, "no process: %s", strerror(errno));
    if (!child)
        _exit(set_user(identity) || faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return !status;
}

static void fit_folder(const struct identity *identity, struct folder *folder) {
    if (folder->is_stream || !identity->changes || may_write(identity, folder))
        return;
    if (folder->made && !fchown(folder->fd, identity->user, identity->group))
        return;
    folder_enter_own(folder, identity->name, identity->user, identity->group);
}

static void become(struct identity *identity, uid_t user, gid_t group, const char *name) {
    identity->changes = user != 0;
    identity->user = user;
    identity->group = group;
    if (name)
        snprintf(identity->name, sizeof identity->name, "%s", name);
    else
        snprintf(identity->name, sizeof identity->name, "%u", (unsigned)user);
}

/* The owner of the folder need not have a name here. */
static bool become_owner(struct identity *identity, const struct folder *folder) {
    if (folder->is_stream || !folder->owner)
        return false;
    const struct passwd *user = getpwuid(folder->owner);
    become(identity, folder->owner, user ? user->pw_gid : folder->group,
           user ? user->pw_name : NULL);
    return true;
}

static void choose_user(struct identity *identity, const char *wanted,
                        const struct folder *folder) {
    const struct passwd *user = wanted ? getpwnam(wanted) : NULL;
    if (!wanted && become_owner(identity, folder))
        return;
    for (size_t i = 0; !wanted && !user && i < sizeof default_users / sizeof *default_users; i++)
        user = getpwnam(default_users[i]);
    if (!user && wanted)
        fail(EXIT_USAGE, "-Z %s: no such user", wanted);
    if (!user)
        fail(EXIT_MISSING, "no user to become, neither %s nor %s: expected -Z USER",
             default_users[0], default_users[1]);
    become(identity, user->pw_uid, user->pw_gid, user->pw_name);
}

/* Of a user namespace that has nobody else: who made it, outside. What it may is given up all the
 * same. */
static bool stays_root(const struct identity *identity, const char *wanted) {
    if (!identity->changes || user_map_may_become(identity->user, identity->group))
        return false;
    if (wanted)
        fail(EXIT_MISSING,
             "-Z %s: this user namespace does not let root become another user: -Z root", wanted);
    log_info(
        "this user namespace has no other user than root, who it stays, without root's privileges");
    return true;
}

void privilege_choose(struct identity *identity, const char *wanted, struct folder *folder) {
    *identity = (struct identity){.user = getuid(), .group = getgid()};
    if (getuid() && wanted)
        fail(EXIT_MISSING, "-Z %s: only root can become another user", wanted);
    if (getuid())
        return;
    choose_user(identity, wanted, folder);
    if (stays_root(identity, wanted))
        *identity = (struct identity){.user = getuid(), .group = getgid()};
    else
        fit_folder(identity, folder);
}

static void check(int failed, const char *what) {
    if (failed)
        fail(EXIT_MISSING, "%s could not be given up: %s", what, strerror(errno));
}

static void keep_only(bool net_raw) {
    bool had = capng_have_capability(CAPNG_PERMITTED, CAP_NET_RAW);
    bool bounds = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    capng_clear(CAPNG_SELECT_BOTH);
    if (net_raw && had)
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_RAW);
    check(capng_apply(bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS), "capabilities");
    check(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities");
}

static void give_up(const struct identity *identity, bool net_raw) {
    capng_get_caps_process();
    if (identity->changes) {
        check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "the user");
        check(set_user(identity), "the user");
        /* what a change of user leaves is permitted, not effective */
        capng_get_caps_process();
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETPCAP);
        check(capng_apply(CAPNG_SELECT_CAPS), "capabilities");
        check(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0), "the user");
    }
    keep_only(net_raw);
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "new privileges");
}

void privilege_drop(const struct identity *identity) {
    give_up(identity, true);
}

void privilege_drop_all(const struct identity *identity) {
    give_up(identity, false);
}
