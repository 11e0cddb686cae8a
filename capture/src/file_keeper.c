/* SPDX-License-Identifier: Apache-2.0 */
#include "file_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "descriptors.h"
#include "sandbox.h"

struct answer {
    int reason; /* 0: done */
    char name[NAME_ROOM];
};

static struct identity owner_of(const struct folder *folder) {
    struct identity owner = {
        .changes = folder->owner != 0, .user = folder->owner, .group = folder->group};
    const struct passwd *user = getpwuid(folder->owner);
    if (user)
        snprintf(owner.name, sizeof owner.name, "%s", user->pw_name);
    return owner;
}

/* A capture that ended before its first packet leaves no empty file. */
static void remove_empty(const struct finished *file) {
    struct stat told;
    if (!fstatat(file->folder_fd, file->temporary, &told, AT_SYMLINK_NOFOLLOW) && !told.st_size)
        unlinkat(file->folder_fd, file->temporary, 0);
}

/* The capture may not remove its lock file. Another one may hold it by now. */
static void remove_lock(const struct folder *folder) {
    struct folder copy = *folder;
    copy.lock_fd = -1;
    if (folder_lock(&copy))
        folder_unlock(&copy);
}

static _Noreturn void keep(int fd, const struct finisher *finisher, const struct folder *folder,
                           struct finished *file) {
    char asked;
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    prctl(PR_SET_NAME, "wiretale-file");
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN); /* to the group: it ends with the capture */
    const struct identity owner = owner_of(folder);
    const int kept[] = {fd, folder->fd};
    descriptors_keep(kept, 2);
    privilege_drop_all(&owner);
    sandbox_files(&(struct folder){.fd = folder->fd});
    sandbox_calls();
    while (read(fd, &asked, 1) == 1) {
        struct answer answer = {.reason = file_publish(finisher, file) ? 0 : errno};
        snprintf(answer.name, sizeof answer.name, "%s", file->name);
        if (write(fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
            break;
    }
    remove_empty(file);
    remove_lock(folder);
    _exit(0);
}

void file_keeper_start(struct file_keeper *keeper, struct finisher *finisher, struct folder *folder,
                       const struct identity *identity) {
    struct finished file = {.folder_fd = folder->fd, .asked_for = true};
    int ends[2];
    folder_next_name(folder, realtime_ns(), file.name);
    folder->number = 0;
    int made = folder_create(folder, file.name, file.temporary);
    if (made < 0 || fchown(made, identity->user, identity->group) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        fail(EXIT_IO, "no file can be made in %s: %s", folder->path, strerror(errno));
    if (folder->lock_fd >= 0 && fchown(folder->lock_fd, folder->owner, folder->group))
        log_warning("the lock of %s stays root's: %s", folder->path, strerror(errno));
    finisher->begun_ns = realtime_ns();
    pid_t pid = fork();
    if (pid < 0)
        fail(EXIT_IO, "no process: %s", strerror(errno));
    if (!pid)
        keep(ends[1], finisher, folder, &file);
    close(ends[1]);
    keeper->fd = ends[0];
    folder->sealed = true;
    folder->sealed_fd = made;
    strcpy(folder->sealed_name, file.temporary);
    finisher->keeper = keeper;
}

bool file_keeper_publish(const struct file_keeper *keeper, struct finished *file) {
    struct answer answer = {.reason = EPIPE};
    if (send(keeper->fd, "", 1, MSG_NOSIGNAL) == 1 &&
        recv(keeper->fd, &answer, sizeof answer, 0) != (ssize_t)sizeof answer)
        answer.reason = EPIPE;
    if (!answer.reason)
        snprintf(file->name, sizeof file->name, "%.*s", NAME_ROOM - 1, answer.name);
    errno = answer.reason;
    return !answer.reason;
}
