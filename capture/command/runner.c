/* SPDX-License-Identifier: Apache-2.0 */
/* Each command has a process group of its own and a limit of time, and none outlives the capture:
 * whoever leaves its group or its parent is found as a child of this process, which is their
 * subreaper. If this process is killed, the kernel kills the commands. */
#include "command/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "directory/path.h"

#define MAX_WORDS       64
#define PLACEHOLDER     "{}"
#define PATIENCE_NS     (2 * NS_PER_S) /* between SIGTERM and SIGKILL */
#define EXIT_NO_PROGRAM 127            /* as of a shell */

struct child {
    pid_t pid; /* 0: the place is free */
    uint32_t number;
    int64_t until_ns; /* of the next signal */
    bool is_late;
};

static struct {
    char *words[MAX_WORDS + 2];
    int fd, child_fd; /* socket to the capture; signalfd of SIGCHLD */
    struct child children[COMMAND_PLACES];
    unsigned running;
    int64_t limit_ns;
    bool asked_to_end, gone; /* by COMMAND_END, or by the end of the socket */
} runner;

/* Returns `word` with each {} replaced by the path, or NULL. */
static char *fill_in(const char *word, const char *path) {
    size_t holders = 0;
    for (const char *at = word; (at = strstr(at, PLACEHOLDER)); at += 2)
        holders++;
    char *filled = calloc(1, strlen(word) + holders * strlen(path) + 1), *to = filled;
    if (!filled)
        return NULL;
    for (const char *next; (next = strstr(word, PLACEHOLDER)); word = next + 2)
        to += sprintf(to, "%.*s%s", (int)(next - word), word, path);
    strcpy(to, word);
    return filled;
}

/* In the child: becomes the command. It is not run by a shell, so that a name cannot contain
 * commands. */
static _Noreturn void become_command(pid_t parent, const char *path) {
    char *words[MAX_WORDS + 2] = {NULL};
    bool names_file = false;
    unsigned count = 0;
    sigset_t none;
    for (; runner.words[count]; count++) {
        words[count] = fill_in(runner.words[count], path);
        names_file |= strstr(runner.words[count], PLACEHOLDER) != NULL;
    }
    if (!names_file)
        words[count] = strdup(path); /* without {}, the path is the last argument */
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NO_PROGRAM);
    execvp(words[0], words);
    log_warning("--on-close %s: %s", words[0], strerror(errno));
    _exit(EXIT_NO_PROGRAM);
}

static void answer(const struct child *child, int status) {
    struct command_answer answer = {child->number, status, child->is_late};
    send(runner.fd, &answer, sizeof answer, MSG_NOSIGNAL);
}

static void start(const struct command_request *request) {
    struct child *child = runner.children;
    while (child < runner.children + COMMAND_PLACES && child->pid)
        child++;
    if (child == runner.children + COMMAND_PLACES)
        return; /* more than the capture ever asks for */
    pid_t self = getpid();
    *child = (struct child){.number = request->number, .pid = fork()};
    if (!child->pid)
        become_command(self, request->path);
    if (child->pid < 0) {
        log_warning("cannot start --on-close: %s", strerror(errno));
        child->pid = 0;
        answer(child, EXIT_NO_PROGRAM << 8);
        return;
    }
    setpgid(child->pid, child->pid); /* whoever of the two comes first */
    child->until_ns = runner.limit_ns ? monotonic_ns() + runner.limit_ns : INT64_MAX;
    runner.running++;
}

/* Takes one message. Returns false if there is none. */
static bool take_request(void) {
    struct command_request request;
    ssize_t size = recv(runner.fd, &request, sizeof request - 1, MSG_DONTWAIT);
    if (size <= 0) {
        runner.gone = size == 0 || (errno != EAGAIN && errno != EINTR);
        return false;
    }
    if ((size_t)size <= offsetof(struct command_request, path)) {
        runner.asked_to_end = true;
        return false;
    }
    ((char *)&request)[size] = '\0';
    start(&request);
    return true;
}

/* Adopted children of commands are collected, too. */
static void collect_ended(void) {
    struct signalfd_siginfo signals[8];
    int status;
    pid_t pid;
    (void)!read(runner.child_fd, signals, sizeof signals);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (struct child *child = runner.children; child < runner.children + COMMAND_PLACES;
             child++)
            if (child->pid == pid) {
                if (child->is_late)
                    kill(-pid, SIGKILL); /* those of its group that ignored SIGTERM */
                answer(child, status);
                child->pid = 0;
                runner.running--;
            }
}

/* Commands that take too long get SIGTERM, then SIGKILL. Returns when the next one does. */
static int64_t end_late(int64_t now) {
    int64_t next = INT64_MAX;
    for (struct child *child = runner.children; child < runner.children + COMMAND_PLACES; child++) {
        if (!child->pid)
            continue;
        if (now >= child->until_ns) {
            kill(-child->pid, child->is_late ? SIGKILL : SIGTERM);
            child->is_late = true;
            child->until_ns = now + PATIENCE_NS;
        }
        next = child->until_ns < next ? child->until_ns : next;
    }
    return next;
}

/* Waits for a message, the end of a command or the limit of one. */
static void run_round(bool wants_requests) {
    int64_t now = monotonic_ns(), next = end_late(now);
    int wait_ms =
        next == INT64_MAX || next - now > NS_PER_S ? 1000 : (int)((next - now) / NS_PER_MS) + 1;
    struct pollfd ready[] = {{.fd = runner.child_fd, .events = POLLIN},
                             {.fd = wants_requests ? runner.fd : -1, .events = POLLIN}};
    poll(ready, 2, wait_ms);
    while (ready[1].revents && take_request())
        continue;
    collect_ended();
}

/* Kills the children that are left, which left their group or were adopted. The list of the kernel
 * has only direct ones, so that there may be several rounds. */
static void kill_adopted(void) {
    char path[64], list[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < 100; round++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        ssize_t size = read(fd, list, sizeof list - 1);
        close(fd);
        if (size <= 0)
            return;
        list[size] = '\0';
        for (char *word = strtok(list, " "); word; word = strtok(NULL, " "))
            if (atoi(word) > 1)
                kill(atoi(word), SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        poll(NULL, 0, 1);
    }
}

static void end_commands(void) {
    int64_t now = monotonic_ns();
    for (size_t i = 0; i < COMMAND_PLACES; i++)
        runner.children[i].until_ns = now;
    while (runner.running)
        run_round(false);
    kill_adopted();
}

/* A later run may have bound a new socket with this name, even with the same inode number. If the
 * capture was killed, a changed ctime indicates that; while it is alive, a change can only be a
 * chgrp(1). */
static void remove_status(const struct command_begin *begin, bool killed) {
    const struct stat *was = &begin->status_is;
    struct stat is;
    if (!*begin->status || lstat(begin->status, &is) || !S_ISSOCK(is.st_mode))
        return;
    bool changed =
        is.st_ctim.tv_sec != was->st_ctim.tv_sec || is.st_ctim.tv_nsec != was->st_ctim.tv_nsec;
    if (is_same_file(&is, was) && !(killed && changed))
        unlink(begin->status);
}

/* Of signals, only the end of a child is wanted. */
static void open_signals(void) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    runner.child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (runner.child_fd < 0)
        fail(EXIT_IO, "cannot open a signalfd for --on-close: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Before the identity arrives, the process has all privileges, but it reads nothing else and starts
 * nothing. */
_Noreturn void runner_run(int fd, char *text) {
    struct command_begin begin;
    runner.fd = fd; /* closed by exec */
    /* Replaces stdin, and closes all that the capture inherited from a shell or supervisor. */
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        fail(EXIT_IO, "cannot open /dev/null for --on-close: %s", strerror(errno));
    close_other_descriptors(&fd, 1);
    open_signals();
    /* Quotes have no meaning: a command that needs them should be a script. */
    char *word = text ? strtok(text, " ") : NULL;
    for (unsigned count = 0; word && count < MAX_WORDS; word = strtok(NULL, " "))
        runner.words[count++] = word;
    if (recv(runner.fd, &begin, sizeof begin, 0) != (ssize_t)sizeof begin)
        _exit(0); /* the capture ended before it began */
    runner.limit_ns = begin.limit_ns;
    privilege_drop(&begin.identity, false);
    while (!runner.gone && !runner.asked_to_end)
        run_round(true);
    remove_status(&begin, runner.gone);
    end_commands();
    _exit(0);
}
