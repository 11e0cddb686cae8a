/* SPDX-License-Identifier: Apache-2.0 */
/* What the confined program still can do, and what ends it; test_escape.c has what it cannot. */
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

#include "common/test/check.h"
#include "confine/confine.h"

static char place[] = "/tmp/wiretale-test-XXXXXX";

static int status_of(int (*attempt)(struct directory *directory), struct directory *directory) {
    int status;
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(attempt(directory));
    }
    waitpid(child, &status, 0);
    return status;
}

static int write_in_directory(struct directory *directory) {
    if (!sandbox_files(directory) || !sandbox_calls())
        return 9;
    char temporary[NAME_SIZE];
    int fd = directory_create(directory, "x.pcapng", temporary);
    if (fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 0))
        return 1;
    return renameat2(directory->fd, temporary, directory->fd, "x.pcapng", 0) ||
           unlinkat(directory->fd, "x.pcapng", 0);
}

static int run_program(struct directory *directory) {
    (void)directory;
    if (!sandbox_calls())
        return 9;
    execl("/bin/true", "true", NULL);
    return 1;
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
    struct directory directory;
    struct settings settings = {.output = place};
    CHECK(mkdtemp(place));
    directory_open(&directory, &settings, "eth0");
    check_done(status_of(write_in_directory, &directory), "a file in the directory");
    int status = status_of(run_program, &directory);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSYS : WEXITSTATUS(status) == 9);
    rmdir(place);
    return 0;
}
