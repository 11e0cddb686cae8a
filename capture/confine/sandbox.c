/* SPDX-License-Identifier: Apache-2.0 */
/* What capturing needs of files and system calls (common/confine/sandbox.c), and the processes
 * beside it. */
#include "confine/confine.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/confine/sandbox.h"
#include "common/log.h"

/* A directory that is a stream or sealed needs no rule: its file is open already, and Landlock
 * checks only opening. */
bool sandbox_files(const struct directory *directory) {
    const struct sandbox_place places[] = {
        {"/sys/class/net", -1, SANDBOX_READING},
        {"/sys/devices", -1, SANDBOX_READING},
        {NULL, directory->fd, SANDBOX_WRITING},
    };
    return sandbox_open_files(places, directory->is_stream || directory->sealed ? 2 : 3);
}

/* Sockets of packets and of --status; ioctls of usbmon beside those of interfaces. Others concern
 * terminals (TIOCSTI types into one), disks and so on. */
bool sandbox_calls(void) {
    static const struct sandbox_socket sockets[] = {{AF_PACKET, 0}, {AF_UNIX, 0}, {AF_NETLINK, 0}};
    static const struct sandbox_request usbmon = {0xff00, 0x9200};
    /* They only read: setting needs CAP_SYS_TIME. */
    static const int clock_calls[] = {SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime)};
    const struct sandbox_needs needs = {.sockets = sockets,
                                        .socket_count = 3,
                                        .requests = &usbmon,
                                        .request_count = 1,
                                        .calls = clock_calls,
                                        .call_count = 2};
    return sandbox_open_calls(&needs);
}

pid_t process_start(const char *name, int *fd) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
    int ends[2];
    pid_t pid = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? -1 : fork();
    if (pid < 0)
        fail(EXIT_IO, "cannot start the process %s: %s", name, strerror(errno));
    *fd = ends[pid ? 0 : 1];
    close(ends[pid ? 1 : 0]);
    if (pid)
        return pid;
    prctl(PR_SET_NAME, name);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    return 0;
}

static void close_between(unsigned first, unsigned last) {
    if (first > last || !syscall(SYS_close_range, first, last, 0))
        return;
    for (int fd = (int)first; fd < getdtablesize() && (unsigned)fd <= last; fd++)
        close(fd); /* before Linux 5.9 */
}

/* Returns the smallest of them above `fd`, or ~0u. */
static unsigned next_kept(const int *kept, size_t count, unsigned fd) {
    unsigned next = ~0u;
    for (size_t i = 0; i < count; i++)
        if ((unsigned)kept[i] > fd && (unsigned)kept[i] < next)
            next = (unsigned)kept[i];
    return next;
}

/* Closes the ranges between the kept descriptors, in ascending order. */
void close_other_descriptors(const int *kept, size_t count) {
    unsigned from = STDERR_FILENO;
    while (from != ~0u) {
        unsigned next = next_kept(kept, count, from);
        close_between(from + 1, next == ~0u ? next : next - 1);
        from = next;
    }
}
