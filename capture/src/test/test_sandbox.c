/* SPDX-License-Identifier: Apache-2.0 */
/* What the confined program can no longer do. Each try is a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../analyzer/core/test/check.h"
#include "sandbox.h"

static char place[] = "/tmp/wiretale-test-XXXXXX";

static int status_of(int (*attempt)(const struct folder *folder), const struct folder *folder) {
    int status;
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(attempt(folder));
    }
    waitpid(child, &status, 0);
    return status;
}

static int write_in_folder(const struct folder *folder) {
    if (!sandbox_files(folder) || !sandbox_calls())
        return 9;
    char temporary[NAME_ROOM];
    int fd = folder_create(folder, "x.pcapng", temporary);
    if (fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 0))
        return 1;
    return renameat2(folder->fd, temporary, folder->fd, "x.pcapng", 0) ||
           unlinkat(folder->fd, "x.pcapng", 0);
}

static int read_elsewhere(const struct folder *folder) {
    if (!sandbox_files(folder))
        return 9;
    return open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES ? 0 : 1;
}

static int write_elsewhere(const struct folder *folder) {
    if (!sandbox_files(folder))
        return 9;
    return open("/var/tmp/wiretale-test", O_RDWR | O_CREAT, 0600) < 0 && errno == EACCES ? 0 : 1;
}

static int connect_out(const struct folder *folder) {
    (void)folder;
    if (!sandbox_calls())
        return 9;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd >= 0 || errno != EPERM)
        return 1;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    return fd < 0 ||
           !connect(fd, &(struct sockaddr){.sa_family = AF_INET}, sizeof(struct sockaddr)) ||
           errno != EPERM;
}

static int run_program(const struct folder *folder) {
    (void)folder;
    if (!sandbox_calls())
        return 9;
    execl("/bin/true", "true", NULL);
    return 1;
}

static int make_process(const struct folder *folder) {
    (void)folder;
    if (!sandbox_calls())
        return 9;
    return fork() < 0 ? 0 : 1;
}

static void check_done(int status, const char *what) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9) {
        fprintf(stderr, "%s: not tried, the kernel has no such confinement\n", what);
        return;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fprintf(stderr, "%s: status %x\n", what, status);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void) {
    struct folder folder;
    struct settings settings = {.output = place};
    CHECK(mkdtemp(place));
    folder_open(&folder, &settings, "eth0");
    check_done(status_of(write_in_folder, &folder), "a file in the folder");
    check_done(status_of(read_elsewhere, &folder), "reading elsewhere");
    check_done(status_of(write_elsewhere, &folder), "writing elsewhere");
    check_done(status_of(connect_out, &folder), "connections");
    check_done(status_of(make_process, &folder), "processes");
    int status = status_of(run_program, &folder);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSYS : WEXITSTATUS(status) == 9);
    rmdir(place);
    return 0;
}
