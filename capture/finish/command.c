/* SPDX-License-Identifier: Apache-2.0 */
#include "finish/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "confine/confine.h"
#include "directory/path.h"

/* Messages on the socket, in this order: one `struct runner_begin`, the path of each finished file,
 * and RUNNER_END at an orderly end.
 *
 * After RUNNER_END the process continues until all commands are done. If the socket is closed
 * without it, the capture was killed, and the process ends at once. Running commands then finish,
 * because they hold nothing of the capture; files whose command was not started are listed on
 * stderr. */
#define RUNNER_END "" /* one zero byte, which no path begins with */

struct runner_begin {
    struct identity identity;
    char status[108];      /* socket to remove at the end, or "" */
    struct stat status_is; /* must be unchanged, or it is a later run's socket */
};

/* The main loop of the process. Before the identity arrives it has all privileges, but it reads
 * nothing else and starts nothing. */

#define MAX_RUNNING 4
#define MAX_WORDS   64
#define MAX_WAITING 1024u /* more files stay in the socket */
#define MAX_QUEUED  4096u /* for those of the socket, too, after the capture was killed */
#define PLACEHOLDER "{}"

extern char **environ;

struct runner {
    char *words[MAX_WORDS + 2];
    int fd;
    unsigned running;
    char *waiting[MAX_QUEUED];
    unsigned first, count;
    bool asked_to_end, gone; /* by RUNNER_END, or by the end of the socket */
    posix_spawnattr_t attributes;
};

/* Returns `word` with each {} replaced by the path. The caller frees it. */
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

/* Starts the command for one file. It is not run by a shell, so that a name cannot contain
 * commands. */
static void run_for(struct runner *runner, char *path) {
    char *words[MAX_WORDS + 2] = {NULL};
    unsigned count = 0;
    bool names_file = false;
    pid_t pid;
    for (; runner->words[count]; count++) {
        words[count] = fill_in(runner->words[count], path);
        names_file |= strstr(runner->words[count], PLACEHOLDER) != NULL;
    }
    if (!names_file)
        words[count] = strdup(path); /* without {}, the path is the last argument */
    if (!count || !words[0])
        return free(path);
    int failed = posix_spawnp(&pid, words[0], NULL, &runner->attributes, words, environ);
    if (failed)
        log_warning("--on-close %s: %s", words[0], strerror(failed));
    else
        runner->running++;
    for (unsigned i = 0; words[i]; i++)
        free(words[i]);
    free(path);
}

/* A command that fails is reported; its file stays published. */
static void collect_ended(struct runner *runner) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        runner->running--;
        if (status)
            log_warning("--on-close %s: process %d ended with %s %d", runner->words[0], (int)pid,
                        WIFSIGNALED(status) ? "signal" : "exit code",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* Takes one message. Returns false if there is none. */
static bool take_request(struct runner *runner) {
    char path[PATH_MAX + 1];
    ssize_t size = recv(runner->fd, path, sizeof path - 1, MSG_DONTWAIT);
    if (size <= 0) {
        runner->gone = size == 0 || (errno != EAGAIN && errno != EINTR);
        return false;
    }
    path[size] = '\0';
    if (*path)
        runner->waiting[(runner->first + runner->count++) % MAX_QUEUED] = strdup(path);
    else
        runner->asked_to_end = true;
    return !runner->asked_to_end;
}

static char *next_waiting(struct runner *runner) {
    char *path = runner->waiting[runner->first];
    runner->first = (runner->first + 1) % MAX_QUEUED;
    runner->count--;
    return path;
}

/* If too many files wait, it takes no message, the socket fills, and the capture warns. POLLHUP is
 * noticed even then; messages that were sent before are taken first. */
static void run_round(struct runner *runner) {
    bool over = runner->asked_to_end;
    short wanted = runner->count < MAX_WAITING ? POLLIN : 0;
    struct pollfd ready = {.fd = over ? -1 : runner->fd, .events = wanted};
    poll(&ready, 1, runner->running ? 50 : 1000);
    if (ready.revents & POLLHUP)
        while (runner->count < MAX_QUEUED && take_request(runner))
            continue;
    else if (ready.revents)
        take_request(runner);
    runner->gone |= ready.revents & POLLHUP && runner->count == MAX_QUEUED;
    collect_ended(runner);
    while (runner->count && runner->running < MAX_RUNNING && !runner->gone) {
        char *path = next_waiting(runner);
        if (path)
            run_for(runner, path);
    }
}

/* Signals are ignored by the process, because files that the capture then closes still need their
 * command. Commands get the default handlers. */
static void set_default_signals(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &none, NULL);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

/* A later run may have bound a new socket with this name, even with the same inode number. If the
 * capture was killed, a changed ctime indicates that; while it is alive, a change can only be a
 * chgrp(1). */
static void remove_status(const struct runner_begin *begin, bool killed) {
    const struct stat *was = &begin->status_is;
    struct stat is;
    if (!*begin->status || lstat(begin->status, &is) || !S_ISSOCK(is.st_mode))
        return;
    bool changed =
        is.st_ctim.tv_sec != was->st_ctim.tv_sec || is.st_ctim.tv_nsec != was->st_ctim.tv_nsec;
    if (is_same_file(&is, was) && !(killed && changed))
        unlink(begin->status);
}

static _Noreturn void run_commands(int fd, char *text) {
    static struct runner runner;
    struct runner_begin begin;
    set_default_signals(&runner.attributes);
    runner.fd = fd; /* closed by exec */
    /* Replaces stdin, and closes all that the capture inherited from a shell or supervisor. */
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        fail(EXIT_IO, "cannot open /dev/null for --on-close: %s", strerror(errno));
    close_other_descriptors(&fd, 1);
    /* Quotes have no meaning: a command that needs them should be a script. */
    char *word = text ? strtok(text, " ") : NULL;
    for (unsigned count = 0; word && count < MAX_WORDS; word = strtok(NULL, " "))
        runner.words[count++] = word;
    if (recv(runner.fd, &begin, sizeof begin, 0) != (ssize_t)sizeof begin)
        _exit(0); /* the capture ended before it began */
    privilege_drop(&begin.identity, false);
    while (!runner.gone && !runner.asked_to_end)
        run_round(&runner);
    remove_status(&begin, runner.gone);
    while (!runner.gone && (runner.count || runner.running))
        run_round(&runner);
    while (runner.count) {
        char *path = next_waiting(&runner);
        log_warning("the capture was killed: --on-close is not run for %s", path ? path : "a file");
        free(path);
    }
    _exit(0);
}

void command_start(struct command *command, const char *text) {
    char *copy = text ? strdup(text) : NULL;
    if (text && (!copy || !text[strspn(text, " ")]))
        fail(EXIT_USAGE, "--on-close: expected a command");
    command->pid = process_start("wiretale-close", &command->fd);
    if (!command->pid)
        run_commands(command->fd, copy);
    free(copy);
}

/* The socket's status is taken before the sandbox is entered, so that the process can recognize the
 * file at the end. */
void command_become(struct command *command, const struct identity *identity, const char *status) {
    struct runner_begin begin = {.identity = *identity};
    if (status && !lstat(status, &begin.status_is))
        snprintf(begin.status, sizeof begin.status, "%s", status);
    if (send(command->fd, &begin, sizeof begin, MSG_NOSIGNAL) != (ssize_t)sizeof begin)
        fail(EXIT_IO, "the --on-close process has ended: %s", strerror(errno));
}

/* MSG_DONTWAIT, because the finishing thread must not wait for commands. */
void command_run(struct command *command, const char *directory, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length >= (int)sizeof path)
        return;
    bool sent = send(command->fd, path, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
    if (!sent && !command->behind)
        log_warning("--on-close is too slow or has ended: it is not run for %s and maybe others",
                    name);
    command->behind = !sent;
}

/* Sends RUNNER_END. If the socket is full, tries again until the time has elapsed; then the process
 * ends as if the capture were killed. */
static bool send_end(const struct command *command, int tries) {
    for (; tries; tries--) {
        if (send(command->fd, RUNNER_END, sizeof RUNNER_END, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            return true;
        if (errno != EAGAIN)
            return false;
        poll(NULL, 0, 50);
    }
    return false;
}

/* The capture waits for its commands, but not longer than a service manager would wait for the
 * capture. */
void command_end(struct command *command, int seconds) {
    int tries = seconds * 20;
    if (!send_end(command, tries))
        log_warning("--on-close is too slow or has ended: it is not run for all files");
    close(command->fd);
    for (; tries; tries--) {
        if (waitpid(command->pid, NULL, WNOHANG))
            return;
        poll(NULL, 0, 50);
    }
}
