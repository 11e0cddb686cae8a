/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the user from root and drops capabilities. The user must not be root, and must be able to
 * write to the output: if the directory refuses, it is given to the user if this run made it, else
 * a subdirectory is used. Whether a user can write is asked of the kernel by a child process that
 * becomes this user, because groups, access control lists and read-only mounts all count.
 *
 * In a user namespace without other users, root stays, which outside is an ordinary user. */
#include "confine/confine.h"

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

bool user_map_has(const char *path, unsigned number) {
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    unsigned first, outside, count;
    bool has = false;
    while (!has && fscanf(file, "%u %u %u", &first, &outside, &count) == 3)
        has = number >= first && number - first < count;
    fclose(file);
    return has;
}

/* "deny" if an ordinary user made the namespace, because a group may exist to exclude its members.
 */
static bool may_set_groups(void) {
    char word[8] = "";
    FILE *file = fopen("/proc/self/setgroups", "re");
    if (!file)
        return true;
    bool allowed = !fgets(word, sizeof word, file) || strncmp(word, "deny", 4);
    fclose(file);
    return allowed;
}

static const char *const default_users[] = {"wiretale", "nobody"};

bool privilege_may_capture(void) {
    return capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_RAW);
}

/* Names the file that the capability must be set on, which may be inside a virtual environment. */
void privilege_refuse(const char *reason) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    fail(EXIT_MISSING, "%s: sudo setcap cap_net_raw,cap_net_admin+ep %s", reason,
         *program ? program : "wiretale-capture");
}

/* Sets real, effective and saved IDs, which cannot be undone. Returns 0 on success. */
static int set_user(const struct identity *identity) {
    int grouped = getpwuid(identity->user) ? initgroups(identity->name, identity->group)
                                           : setgroups(1, &identity->group);
    return grouped || setresgid(identity->group, identity->group, identity->group) ||
           setresuid(identity->user, identity->user, identity->user);
}

/* Returns whether the user can write to the directory. */
static bool may_write(const struct identity *identity, const struct directory *directory) {
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        fail(EXIT_IO, "cannot fork: %s", strerror(errno));
    if (!child)
        _exit(set_user(identity) || faccessat(directory->fd, ".", W_OK | X_OK, AT_EACCESS));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return !status;
}

/* Ensures that the user can write to the directory, by giving it to the user or by a subdirectory.
 */
static void fit_directory(const struct identity *identity, struct directory *directory) {
    if (directory->is_stream || !identity->changes || may_write(identity, directory))
        return;
    if (directory->made && !fchown(directory->fd, identity->user, identity->group))
        return;
    directory_enter_subdirectory(directory, identity->name, identity->user, identity->group);
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

/* The owner of the directory need not have a name. */
static bool become_owner(struct identity *identity, const struct directory *directory) {
    if (directory->is_stream || !directory->owner)
        return false;
    const struct passwd *user = getpwuid(directory->owner);
    become(identity, directory->owner, user ? user->pw_gid : directory->group,
           user ? user->pw_name : NULL);
    return true;
}

/* The first of these: -Z, owner of the directory, default_users. */
static void choose_user(struct identity *identity, const char *wanted,
                        const struct directory *directory) {
    const struct passwd *user = wanted ? getpwnam(wanted) : NULL;
    if (!wanted && become_owner(identity, directory))
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

/* Returns whether root must stay, because the namespace has no other user. Capabilities are dropped
 * all the same. */
static bool stays_root(const struct identity *identity, const char *wanted) {
    if (!identity->changes ||
        (may_set_groups() && user_map_has("/proc/self/uid_map", identity->user) &&
         user_map_has("/proc/self/gid_map", identity->group)))
        return false;
    if (wanted)
        fail(EXIT_MISSING,
             "-Z %s: this user namespace does not let root become another user: -Z root", wanted);
    log_info("this user namespace has only root: the capture stays root, without privileges");
    return true;
}

void privilege_choose(struct identity *identity, const char *wanted, struct directory *directory) {
    *identity = (struct identity){.user = getuid(), .group = getgid()};
    if (getuid() && wanted)
        fail(EXIT_MISSING, "-Z %s: only root can become another user", wanted);
    if (getuid())
        return;
    choose_user(identity, wanted, directory);
    if (stays_root(identity, wanted))
        *identity = (struct identity){.user = getuid(), .group = getgid()};
    else
        fit_directory(identity, directory);
}

static void require_done(int failed, const char *action) {
    if (failed)
        fail(EXIT_MISSING, "cannot %s: %s", action, strerror(errno));
}

/* The bounding set can only be reduced with CAP_SETPCAP. Without it, no_new_privs already ensures
 * that no program regains a capability. */
static void keep_capabilities(bool net_raw) {
    bool had = capng_have_capability(CAPNG_PERMITTED, CAP_NET_RAW);
    bool bounds = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    capng_clear(CAPNG_SELECT_BOTH);
    if (net_raw && had)
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_RAW);
    require_done(capng_apply(bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS), "drop capabilities");
    require_done(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
                 "drop ambient capabilities");
}

/* A change from root to another user drops all effective capabilities; PR_SET_KEEPCAPS keeps the
 * permitted ones, of which CAP_NET_RAW is made effective again. */
void privilege_drop(const struct identity *identity, bool net_raw) {
    capng_get_caps_process();
    if (identity->changes) {
        require_done(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "change the user");
        require_done(set_user(identity), "change the user");
        /* after the change of user, capabilities are permitted, but not effective */
        capng_get_caps_process();
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_SETPCAP);
        require_done(capng_apply(CAPNG_SELECT_CAPS), "drop capabilities");
        require_done(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0), "change the user");
    }
    keep_capabilities(net_raw);
    require_done(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs");
}
