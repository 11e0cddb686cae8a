/* SPDX-License-Identifier: Apache-2.0 */
#include "close_command.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privilege.h"
#include "say.h"

#define AT_ONCE      4
#define WORDS_MOST   64
#define WAITING_MOST 1024u
#define PLACEHOLDER  "{}"

extern char **environ;

struct runner {
    char *words[WORDS_MOST + 2];
    int fd;
    unsigned running;
    char *waiting[WAITING_MOST];
    unsigned first, count;
    bool ended; /* no more will come */
    posix_spawnattr_t attributes;
};

static unsigned split(char *text, char **words) {
    unsigned count = 0;
    for (char *word = strtok(text, " "); word && count < WORDS_MOST; word = strtok(NULL, " "))
        words[count++] = word;
    return count;
}

/* `word` with each {} replaced. */
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

static bool names_file(char **words) {
    for (; *words; words++)
        if (strstr(*words, PLACEHOLDER))
            return true;
    return false;
}

static void run_for(struct runner *runner, char *path) {
    char *words[WORDS_MOST + 2] = {NULL};
    unsigned count = 0;
    pid_t pid;
    for (; runner->words[count]; count++)
        words[count] = fill_in(runner->words[count], path);
    if (!names_file(runner->words))
        words[count] = strdup(path); /* as its last argument, then */
    if (!count || !words[0])
        return free(path);
    int failed = posix_spawnp(&pid, words[0], NULL, &runner->attributes, words, environ);
    if (failed)
        warn_of("--on-close %s: %s", words[0], strerror(failed));
    else
        runner->running++;
    for (unsigned i = 0; words[i]; i++)
        free(words[i]);
    free(path);
}

static void collect_ended(struct runner *runner) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        runner->running--;
        if (status)
            warn_of("--on-close %s: process %d ended with %s %d", runner->words[0], (int)pid,
                    WIFSIGNALED(status) ? "signal" : "exit code",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

static void take_request(struct runner *runner) {
    char path[PATH_MAX + 1];
    ssize_t size = recv(runner->fd, path, sizeof path - 1, MSG_DONTWAIT);
    if (size <= 0) {
        runner->ended = size == 0 || (errno != EAGAIN && errno != EINTR);
        return;
    }
    path[size] = '\0';
    runner->waiting[(runner->first + runner->count++) % WAITING_MOST] = strdup(path);
}

/* Full of waiting files it takes no more; the socket fills, and the capture says so. */
static void run_round(struct runner *runner) {
    bool takes = !runner->ended && runner->count < WAITING_MOST;
    struct pollfd ready = {.fd = takes ? runner->fd : -1, .events = POLLIN};
    poll(&ready, 1, runner->running ? 50 : 1000);
    if (ready.revents)
        take_request(runner);
    collect_ended(runner);
    while (runner->count && runner->running < AT_ONCE) {
        char *path = runner->waiting[runner->first];
        runner->first = (runner->first + 1) % WAITING_MOST;
        runner->count--;
        if (path)
            run_for(runner, path);
    }
}

/* A signal to the group is for the capture: what it closes still has its command run. The commands
 * get signals as usual. */
static void ignore_signals(posix_spawnattr_t *attributes) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], SIG_IGN);
        sigaddset(&usual, signals[i]);
    }
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigdefault(attributes, &usual);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

static _Noreturn void run(int fd, char *text) {
    static struct runner runner;
    runner.fd = fd;
    split(text, runner.words);
    prctl(PR_SET_NAME, "wiretale-close");
    ignore_signals(&runner.attributes);
    while (!runner.ended || runner.count || runner.running)
        run_round(&runner);
    _exit(0);
}

void close_command_start(struct close_command *command, const char *text,
                         const struct identity *identity) {
    int ends[2];
    char *copy = strdup(text);
    if (!copy || !text[strspn(text, " ")])
        fail(EXIT_USAGE, "--on-close needs a command");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        fail(EXIT_UNREADABLE, "no socket for --on-close: %s", strerror(errno));
    command->pid = fork();
    if (command->pid < 0)
        fail(EXIT_UNREADABLE, "no process for --on-close: %s", strerror(errno));
    if (!command->pid) {
        close(ends[0]);
        privilege_drop_all(identity);
        run(ends[1], copy);
    }
    free(copy);
    close(ends[1]);
    command->fd = ends[0];
}

void close_command_run(struct close_command *command, const char *folder, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length >= (int)sizeof path)
        return;
    bool sent = send(command->fd, path, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
    if (!sent && !command->behind)
        warn_of("--on-close cannot keep up or is gone: it is not run for %s and maybe others",
                name);
    command->behind = !sent;
}

void close_command_end(struct close_command *command, int seconds) {
    close(command->fd);
    for (int i = 0; i < seconds * 20; i++) {
        if (waitpid(command->pid, NULL, WNOHANG))
            return;
        poll(NULL, 0, 50);
    }
}
