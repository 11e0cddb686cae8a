/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
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

static const int families[] = {AF_PACKET, AF_UNIX, AF_NETLINK};

/* By their high bytes: SIOC…, of interfaces, and those of usbmon. Others are of terminals (TIOCSTI
 * types into one), of disks and so on. */
static const scmp_datum_t kinds_of_ioctl[] = {0x8900, 0x9200};
#define IOCTL_KIND 0xff00

/* What the C library does for itself: names of threads and of memory. */
static const scmp_datum_t prctls[] = {PR_SET_NAME, 0x53564d41 /* PR_SET_VMA */};

#define THREAD_FLAG 0x00010000 /* CLONE_THREAD */

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

/* Memory, but no code beside that of the program: what is mapped here can't be executed. */
static bool add_memory(scmp_filter_ctx filter) {
    return allow_masked(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0) &&
           allow_masked(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
}

/* Threads but no processes, sockets and control calls of the kinds that libpcap uses. clone3 keeps
 * its flags where a filter cannot look: without it the C library takes clone. */
static bool add_conditions(scmp_filter_ctx filter) {
    bool added = allow_masked(filter, SCMP_SYS(clone), 0, THREAD_FLAG, THREAD_FLAG) &&
                 !seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (size_t i = 0; added && i < sizeof families / sizeof *families; i++)
        added = allow_masked(filter, SCMP_SYS(socket), 0, UINT32_MAX, (scmp_datum_t)families[i]);
    for (size_t i = 0; added && i < sizeof kinds_of_ioctl / sizeof *kinds_of_ioctl; i++)
        added = allow_masked(filter, SCMP_SYS(ioctl), 1, IOCTL_KIND, kinds_of_ioctl[i]);
    added = added && allow_masked(filter, SCMP_SYS(ioctl), 1, UINT32_MAX, SIOCOUTQ); /* --status */
    for (size_t i = 0; added && i < sizeof prctls / sizeof *prctls; i++)
        added = allow_masked(filter, SCMP_SYS(prctl), 0, UINT32_MAX, prctls[i]);
    return added;
}

/* A parent may have asked for memory that can be executed wherever it can be read: no longer. */
static void forget_personality(void) {
    int now = personality(0xffffffff);
    if (now >= 0 && now & READ_IMPLIES_EXEC)
        personality((unsigned long)now & ~(unsigned long)READ_IMPLIES_EXEC);
}

bool sandbox_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return false;
    forget_personality();
    bool loaded = !seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) &&
                  add_calls(filter) && add_memory(filter) && add_conditions(filter) &&
                  !seccomp_load(filter);
    seccomp_release(filter);
    return loaded;
}
