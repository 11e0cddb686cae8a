/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver that root starts becomes the first of these: the user of --user, the owner of the
 * output folder, wiretale, nobody. "root" stays what it is, for socket buffers that exceed
 * net.core.rmem_max. If the folder belongs to root, or a user namespace has no other user, it stays
 * root without capabilities, which is an owner of files and no more.
 *
 * Files that are left: the output folder, the counters of UDP in /proc, the number of the boot.
 * Sockets: of datagrams, and netlink for counters of interfaces; connections come from the listener
 * alone. */
#include "receive/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/confine/sandbox.h"
#include "common/log.h"

static void require_done(bool done, const char *action) {
    if (!done)
        fail(EXIT_MISSING, "cannot %s: %s", action, strerror(errno));
}

/* Returns false if root is to stay, as owner of the folder. */
static bool choose_user(const struct receive_options *options, uid_t *user, gid_t *group) {
    static const char *const usual[] = {"wiretale", "nobody"};
    const char *wanted = options->user, *folder = options->target.folder;
    const struct passwd *found = wanted ? getpwnam(wanted) : NULL;
    struct stat status;
    if (wanted && !found)
        fail(EXIT_USAGE, "--user %s: no such user", wanted);
    if (!wanted && folder) {
        if (stat(folder, &status))
            fail(EXIT_IO, "--output-dir %s: %s", folder, strerror(errno));
        *user = status.st_uid;
        *group = status.st_gid;
        return status.st_uid != 0;
    }
    for (size_t i = 0; !found && i < sizeof usual / sizeof *usual; i++)
        found = getpwnam(usual[i]);
    if (!found)
        fail(EXIT_MISSING, "no user to become, neither %s nor %s: expected --user", usual[0],
             usual[1]);
    *user = found->pw_uid;
    *group = found->pw_gid;
    return true;
}

/* Threads of senders may take the lowest real-time priority, for which root needs no right. Fails
 * in a user namespace without this user: EINVAL, or EPERM for groups that may not be changed. */
static bool become(uid_t user, gid_t group) {
    const struct rlimit lowest = {1, 1};
    setrlimit(RLIMIT_RTPRIO, &lowest);
    return !setgroups(1, &group) && !setresgid(group, group, group) && !setresuid(user, user, user);
}

/* What no program of this process may regain. To be called first, as it is a right itself. */
static void empty_bounding_set(void) {
    for (int right = 0; !prctl(PR_CAPBSET_DROP, right, 0, 0, 0); right++)
        continue;
}

/* A change of user has dropped them already; root that stays has not. */
static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {0};
    require_done(!syscall(SYS_capset, &header, none), "drop capabilities");
}

static void drop_privileges(const struct receive_options *options) {
    uid_t user;
    gid_t group;
    if (options->user && !strcmp(options->user, "root"))
        return;
    if (geteuid() && options->user)
        fail(EXIT_MISSING, "--user %s: only root can become another user", options->user);
    if (geteuid())
        return;
    empty_bounding_set();
    if (choose_user(options, &user, &group) && !become(user, group) && options->user)
        fail(EXIT_MISSING, "--user %s: %s", options->user, strerror(errno));
    drop_capabilities();
}

/* As the user that writes: a directory that cannot be written to must be an error now, and not in
 * the first transfer. */
static int open_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
        fail(EXIT_IO, "--output-dir %s: %s", path, strerror(errno));
    return fd;
}

static const int calls[] = {
    SYS_connect,
    SYS_shutdown,
    SYS_recvmmsg,
    SYS_sendmmsg,
    SYS_getpeername,
    SYS_sched_setscheduler,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_min,
    SYS_sched_get_priority_max,
    SYS_linkat,
    SYS_getrusage,
};
static const struct sandbox_socket sockets[] = {
    {AF_INET, SOCK_DGRAM}, {AF_INET6, SOCK_DGRAM}, {AF_NETLINK, 0}};
/* Whether standard output is a terminal, whose lines are shown at once. */
static const struct sandbox_request is_terminal = {UINT32_MAX, TCGETS};

static void confine_files(int folder) {
    const struct sandbox_place places[] = {
        {"/proc/self", -1, SANDBOX_READING}, /* its threads have the counters of their network */
        {"/proc/sys/kernel/random/boot_id", -1, LANDLOCK_ACCESS_FS_READ_FILE},
        {NULL, folder, SANDBOX_WRITING},
    };
    if (!sandbox_open_files(places, folder < 0 ? 2 : 3))
        log_info("this kernel has no Landlock: files are not confined");
}

static void confine_calls(void) {
    const struct sandbox_needs needs = {.calls = calls,
                                        .call_count = sizeof calls / sizeof *calls,
                                        .sockets = sockets,
                                        .socket_count = sizeof sockets / sizeof *sockets,
                                        .requests = &is_terminal,
                                        .request_count = 1};
    if (!sandbox_open_calls(&needs))
        log_info("this kernel has no seccomp: system calls are not confined");
}

void receive_confine(const struct receive_options *options) {
    drop_privileges(options);
    require_done(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs");
    int folder = options->target.folder ? open_folder(options->target.folder) : -1;
    if (!options->no_sandbox) {
        tzset(); /* reads the time zone, which is out of reach afterwards */
        confine_files(folder);
        confine_calls();
    }
    if (folder >= 0)
        close(folder);
}
