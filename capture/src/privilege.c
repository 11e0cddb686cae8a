/* SPDX-License-Identifier: Apache-2.0 */
#include "privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
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

static void become(struct identity *identity, const struct passwd *user) {
    identity->changes = user->pw_uid != 0;
    identity->user = identity->file_user = user->pw_uid;
    identity->group = identity->file_group = user->pw_gid;
    snprintf(identity->name, sizeof identity->name, "%s", user->pw_name);
}

static bool may_write(const struct identity *identity, const struct folder *folder) {
    mode_t needed = S_IWUSR | S_IXUSR;
    if (folder->owner != identity->user)
        needed >>= folder->group == identity->group ? 3 : 6;
    return (folder->mode & needed) == needed;
}

/* A folder that this run made goes to the user; another keeps its owner, and files are made in its
 * name. */
static void fit_folder(struct identity *identity, struct folder *folder) {
    if (folder->is_stream || !identity->changes || may_write(identity, folder))
        return;
    if (folder->made && !fchown(folder->fd, identity->user, identity->group)) {
        folder->owner = identity->user;
        folder->group = identity->group;
        return;
    }
    say("%s may not write to %s: files are made in the name of its owner", identity->name,
        folder->path);
    identity->file_user = folder->owner;
    identity->file_group = folder->group;
}

static const struct passwd *default_user(const struct folder *folder) {
    const struct passwd *user = NULL;
    if (!folder->is_stream && folder->owner && (user = getpwuid(folder->owner)))
        return user;
    for (size_t i = 0; !user && i < sizeof default_users / sizeof *default_users; i++)
        user = getpwnam(default_users[i]);
    return user;
}

/* Of a user namespace that has nobody else: who made it, outside. What it may is given up all the
 * same. */
static bool stays_root(const struct passwd *user, const char *wanted) {
    if (!user->pw_uid || user_map_may_become(user->pw_uid, user->pw_gid))
        return false;
    if (wanted)
        fail(EXIT_MISSING,
             "-Z %s: this user namespace does not let root become another user: -Z root", wanted);
    say("this user namespace has no other user than root, who it stays, without root's privileges");
    return true;
}

void privilege_choose(struct identity *identity, const char *wanted, struct folder *folder) {
    *identity = (struct identity){.user = getuid(), .group = getgid()};
    if (getuid() && wanted)
        fail(EXIT_MISSING, "-Z %s: only root can become another user", wanted);
    if (getuid())
        return;
    const struct passwd *user = wanted ? getpwnam(wanted) : default_user(folder);
    if (!user && wanted)
        fail(EXIT_USAGE, "-Z %s: no such user", wanted);
    if (!user || stays_root(user, wanted))
        return;
    become(identity, user);
    fit_folder(identity, folder);
}

static void check(int failed, const char *what) {
    if (failed)
        fail(EXIT_MISSING, "%s could not be given up: %s", what, strerror(errno));
}

/* The identity for files alone may be the folder's owner; for everything else it is the user. */
static void set_file_user(const struct identity *identity) {
    if (identity->file_user == identity->user)
        return;
    setfsgid(identity->file_group);
    setfsuid(identity->file_user);
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
        check(initgroups(identity->name, identity->group), "groups");
        check(setresgid(identity->group, identity->group, identity->group), "the group");
        check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "the user");
        check(setresuid(identity->user, identity->user, identity->user), "the user");
    }
    capng_get_caps_process();
    if (identity->changes) { /* what a change of user leaves is permitted, not effective */
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETUID);
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETGID);
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETPCAP);
        check(capng_apply(CAPNG_SELECT_CAPS), "capabilities");
        set_file_user(identity);
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
