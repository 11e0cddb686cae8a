/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock by system calls, because the C library has no functions for it, and seccomp. Landlock's
 * rules depend on the version of the kernel: rights that it does not support must not be requested,
 * so they are left out. */
#include "common/confine/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NETWORK 3ULL /* TCP: bind, connect */
#define SCOPED  3ULL /* abstract Unix sockets and signals to processes outside */

/* struct landlock_ruleset_attr of version 6, because headers may be older than the kernel. */
struct attribute {
    uint64_t files, network, scoped;
};

/* Returns the rights that this version of Landlock handles, which are the lowest bits: 2 added
 * REFER, 3 TRUNCATE, 5 IOCTL_DEV. Handled rights are denied unless a rule allows them. */
static uint64_t handled_by(int version) {
    static const unsigned rights[] = {0, 13, 14, 15, 15, 16};
    return (1ULL << rights[version < 5 ? version : 5]) - 1;
}

/* Allows rights on a directory and all that is below it. */
static bool allow_below(int rules, int fd, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    return fd >= 0 && !syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* The size of the attribute indicates the version, so newer fields are left out for older kernels.
 */
static int make_rules(int version, uint64_t files) {
    const struct attribute wanted = {files, NETWORK, SCOPED};
    size_t fields = version < 4 ? 1 : version < 6 ? 2 : 3;
    return (int)syscall(SYS_landlock_create_ruleset, &wanted, fields * sizeof(uint64_t), 0);
}

bool sandbox_open_files(const struct sandbox_place *places, size_t count) {
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    uint64_t handled = handled_by(version);
    int rules = make_rules(version, handled);
    if (rules < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        int fd = places[i].path ? open(places[i].path, O_PATH | O_CLOEXEC) : places[i].fd;
        allow_below(rules, fd, places[i].access & handled);
        if (places[i].path && fd >= 0)
            close(fd);
    }
    bool confined =
        !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
    return confined;
}

/* Grouped by purpose. A call that is not listed fails with EPERM; a deadly one, which only an
 * intruder makes, ends the process. */
static const int allowed[] = {
    /* packets and lines */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(setsockopt),
    SCMP_SYS(getsockopt),
    SCMP_SYS(bind),
    SCMP_SYS(getsockname),
    SCMP_SYS(accept4),
    SCMP_SYS(eventfd2),
    SCMP_SYS(uname),
    /* files */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(openat),
    SCMP_SYS(openat2),
    SCMP_SYS(open),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(fstatfs),
    SCMP_SYS(lseek),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(flock),
    SCMP_SYS(renameat),
    SCMP_SYS(renameat2),
    SCMP_SYS(rename),
    SCMP_SYS(unlinkat),
    SCMP_SYS(unlink),
    SCMP_SYS(getdents64),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(dup),
    /* memory and threads */
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(setpriority),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(wait4),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(membarrier),
    /* time */
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
};

static const int deadly[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(bpf),
    SCMP_SYS(mount),
    SCMP_SYS(setns),
};

/* Not F_SETOWN, by which a process could have the kernel send signals for it; nor FIOSETOWN and
 * SIOCSPGRP, for which the ioctls of sockets are listed from SIOCGIFNAME on. */
static const scmp_datum_t fcntls[] = {F_DUPFD,  F_DUPFD_CLOEXEC, F_GETFD,    F_SETFD,
                                      F_GETFL,  F_SETFL,         F_GETLK,    F_SETLK,
                                      F_SETLKW, F_OFD_GETLK,     F_OFD_SETLK};
#define FIRST_OF_INTERFACES 0x8910 /* SIOCGIFNAME */
#define LAST_OF_INTERFACES  0x89f0
#define SIXTEEN             0xfff0 /* masks all but the last digit of a request */

/* Of the C library: names of threads and of memory; and how exactly threads sleep. */
static const scmp_datum_t prctls[] = {PR_SET_NAME, 0x53564d41 /* PR_SET_VMA */, PR_SET_TIMERSLACK};

#define THREAD_FLAG 0x00010000 /* CLONE_THREAD */

/* Calls that this machine does not have are negative. */
static bool add_calls(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (calls[i] >= 0 && seccomp_rule_add(filter, action, calls[i], 0))
            return false;
    return true;
}

/* Allows a call if its argument, masked, has the value. */
static bool allow_masked(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t mask,
                         scmp_datum_t value) {
    struct scmp_arg_cmp compared = {argument, SCMP_CMP_MASKED_EQ, mask, value};
    return !seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compared);
}

/* Memory must not be executable, so that no code can be added to the program. */
static bool add_memory(scmp_filter_ctx filter) {
    return allow_masked(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0) &&
           allow_masked(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
}

static bool allow_each(scmp_filter_ctx filter, int call, unsigned argument,
                       const scmp_datum_t *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!allow_masked(filter, call, argument, UINT32_MAX, values[i]))
            return false;
    return true;
}

/* Threads but not processes. clone3 has its flags in memory, where a filter cannot read them: if it
 * fails with ENOSYS, the C library uses clone. A process may signal itself, as raise() does. */
static bool add_conditions(scmp_filter_ctx filter) {
    bool added = allow_masked(filter, SCMP_SYS(clone), 0, THREAD_FLAG, THREAD_FLAG) &&
                 !seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) &&
                 allow_masked(filter, SCMP_SYS(tgkill), 0, UINT32_MAX, (scmp_datum_t)getpid()) &&
                 allow_masked(filter, SCMP_SYS(ioctl), 1, UINT32_MAX, SIOCOUTQ) &&
                 allow_each(filter, SCMP_SYS(fcntl), 1, fcntls, sizeof fcntls / sizeof *fcntls) &&
                 allow_each(filter, SCMP_SYS(prctl), 0, prctls, sizeof prctls / sizeof *prctls);
    for (unsigned i = FIRST_OF_INTERFACES; added && i <= LAST_OF_INTERFACES; i += 16)
        added = allow_masked(filter, SCMP_SYS(ioctl), 1, SIXTEEN, i);
    return added;
}

/* The type of a socket has flags beside its kind. */
static bool add_sockets(scmp_filter_ctx filter, const struct sandbox_socket *sockets,
                        size_t count) {
    bool added = true;
    for (size_t i = 0; added && i < count; i++) {
        const struct scmp_arg_cmp compared[] = {
            {0, SCMP_CMP_EQ, (scmp_datum_t)sockets[i].family, 0},
            {1, SCMP_CMP_MASKED_EQ, 0xf, (scmp_datum_t)sockets[i].type}};
        added = !seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket),
                                        sockets[i].type ? 2 : 1, compared);
    }
    return added;
}

static bool add_requests(scmp_filter_ctx filter, const struct sandbox_request *requests,
                         size_t count) {
    bool added = true;
    for (size_t i = 0; added && i < count; i++)
        added = allow_masked(filter, SCMP_SYS(ioctl), 1, requests[i].mask, requests[i].value);
    return added;
}

/* A parent may have set that readable memory is executable, which would break the rule for memory.
 */
static void forget_personality(void) {
    int now = personality(0xffffffff);
    if (now >= 0 && now & READ_IMPLIES_EXEC)
        personality((unsigned long)now & ~(unsigned long)READ_IMPLIES_EXEC);
}

/* A process of another architecture, whose call numbers differ, is killed: the filter would read
 * them wrongly. */
bool sandbox_open_calls(const struct sandbox_needs *needs) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return false;
    forget_personality();
    bool loaded =
        !seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) &&
        add_calls(filter, SCMP_ACT_ALLOW, allowed, sizeof allowed / sizeof *allowed) &&
        add_calls(filter, SCMP_ACT_ALLOW, needs->calls, needs->call_count) &&
        add_calls(filter, SCMP_ACT_KILL_PROCESS, deadly, sizeof deadly / sizeof *deadly) &&
        add_memory(filter) && add_conditions(filter) &&
        add_sockets(filter, needs->sockets, needs->socket_count) &&
        add_requests(filter, needs->requests, needs->request_count) && !seccomp_load(filter);
    seccomp_release(filter);
    return loaded;
}
