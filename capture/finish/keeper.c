/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper is forked while the capture still is root. It drops all privileges, but as the owner
 * of the directory instead of the capture's user, and confines itself to that directory. Its only
 * input is one byte, so that a captured packet that subverts the capture cannot make it do more
 * than to rename one file. It ends if the socket is closed. */
#include "finish/finished_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "confine/confine.h"

struct answer {
    int reason; /* errno; 0: published */
    char name[NAME_SIZE];
};

/* The keeper becomes the owner of the directory, who can rename in it without further rights. */
static struct identity owner_of(const struct directory *directory) {
    struct identity owner = {
        .changes = directory->owner != 0, .user = directory->owner, .group = directory->group};
    const struct passwd *user = getpwuid(directory->owner);
    if (user)
        snprintf(owner.name, sizeof owner.name, "%s", user->pw_name);
    return owner;
}

/* A capture that ended before its first packet must not leave an empty file. */
static void remove_empty(const struct finished_file *file) {
    struct stat info;
    if (!fstatat(file->directory_fd, file->temporary, &info, AT_SYMLINK_NOFOLLOW) && !info.st_size)
        unlinkat(file->directory_fd, file->temporary, 0);
}

/* The capture has no right to remove its lock file. If another capture holds it by now, it stays.
 */
static void remove_lock(const struct directory *directory) {
    struct directory copy = *directory;
    copy.lock_fd = -1;
    if (directory_lock(&copy))
        directory_unlock(&copy);
}

/* The main loop of the process: one byte asks it to publish the file. */
static _Noreturn void keep(int fd, const struct replacement *replacement,
                           const struct directory *directory, struct finished_file *file) {
    char asked;
    const struct identity owner = owner_of(directory);
    const int kept[] = {fd, directory->fd};
    close_other_descriptors(kept, 2);
    privilege_drop(&owner, false);
    sandbox_files(&(struct directory){.fd = directory->fd});
    sandbox_calls();
    while (read(fd, &asked, 1) == 1) {
        struct answer answer = {.reason = publish_file(file, replacement) ? 0 : errno};
        snprintf(answer.name, sizeof answer.name, "%s", file->name);
        if (write(fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
            break;
    }
    remove_empty(file);
    remove_lock(directory);
    _exit(0);
}

/* The temporary file is created here, while the process may still write to the directory, and given
 * to the user of the capture. */
void keeper_start(struct keeper *keeper, struct directory *directory,
                  const struct identity *identity, bool overwrite) {
    struct finished_file file = {.directory_fd = directory->fd, .asked_for = true};
    directory_next_name(directory, realtime_ns(), file.name);
    directory->number = 0;
    int made = directory_create(directory, file.name, file.temporary);
    if (made < 0 || fchown(made, identity->user, identity->group))
        fail(EXIT_IO, "cannot create a file in %s: %s", directory->path, strerror(errno));
    if (directory->lock_fd >= 0 && fchown(directory->lock_fd, directory->owner, directory->group))
        log_warning("root remains the owner of the lock in %s: %s", directory->path,
                    strerror(errno));
    struct replacement replacement = {.overwrite = overwrite, .begun_ns = realtime_ns()};
    if (!process_start("wiretale-file", &keeper->fd))
        keep(keeper->fd, &replacement, directory, &file);
    directory->sealed = true;
    directory->sealed_fd = made;
    strcpy(directory->sealed_name, file.temporary);
}

/* A keeper that has ended is reported as EPIPE, which is not worth a retry. */
bool keeper_publish(const struct keeper *keeper, struct finished_file *file) {
    struct answer answer = {.reason = EPIPE};
    if (send(keeper->fd, "", 1, MSG_NOSIGNAL) == 1 &&
        recv(keeper->fd, &answer, sizeof answer, 0) != (ssize_t)sizeof answer)
        answer.reason = EPIPE;
    if (!answer.reason)
        snprintf(file->name, sizeof file->name, "%.*s", NAME_SIZE - 1, answer.name);
    errno = answer.reason;
    return !answer.reason;
}
