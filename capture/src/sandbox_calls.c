/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sandbox.h"

/* By what they are for. A call that is not here fails with EPERM; those that only an intruder makes
 * end the process. */
static const int allowed[] = {
    /* packets */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(setsockopt),
    SCMP_SYS(getsockopt),
    SCMP_SYS(bind),
    SCMP_SYS(ioctl),
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
    SCMP_SYS(fcntl),
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
    SCMP_SYS(mmap),
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
    SCMP_SYS(prctl),
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

static const int families[] = {AF_PACKET, AF_UNIX, AF_INET, AF_NETLINK};

#define THREAD_FLAG 0x00010000 /* CLONE_THREAD */
#define EXECUTABLE  0x4        /* PROT_EXEC */

/* Calls that a machine does not have are negative. */
static bool add_calls(scmp_filter_ctx filter) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (allowed[i] >= 0 && seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0))
            return false;
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        if (deadly[i] >= 0 && seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0))
            return false;
    return true;
}

/* Allows a call whose argument, as far as the mask goes, has a value. */
static bool allow_masked(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t mask,
                         scmp_datum_t value) {
    struct scmp_arg_cmp compared = {argument, SCMP_CMP_MASKED_EQ, mask, value};
    return !seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compared);
}

/* Threads but no processes, memory but no new code, sockets of the kinds that libpcap uses. clone3
 * keeps its flags where a filter cannot look: without it the C library takes clone. */
static bool add_conditions(scmp_filter_ctx filter) {
    bool added = allow_masked(filter, SCMP_SYS(clone), 0, THREAD_FLAG, THREAD_FLAG) &&
                 !seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) &&
                 allow_masked(filter, SCMP_SYS(mprotect), 2, EXECUTABLE, 0);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        added = added &&
                allow_masked(filter, SCMP_SYS(socket), 0, UINT32_MAX, (scmp_datum_t)families[i]);
    return added;
}

bool sandbox_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return false;
    bool loaded = add_calls(filter) && add_conditions(filter) && !seccomp_load(filter);
    seccomp_release(filter);
    return loaded;
}
