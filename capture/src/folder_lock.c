/* SPDX-License-Identifier: Apache-2.0 */
/* One capture for a folder and a prefix: two would count, and remove, each other's files.
 *
 * The lock is on a hidden file, .PREFIX.SUFFIX.lock. The kernel releases it when the program ends,
 * however it ends; the file itself is removed at every end but a kill, and then used again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"

#define LOCK_FILE_MODE 0644 /* it has no content, and the next run may be another user's */
#define TRIES          10   /* the one that holds it may end, and remove the file, at every step */

static void lock_name(const struct folder *folder, char name[NAME_ROOM]) {
    snprintf(name, NAME_ROOM, ".%s%s.lock", folder->prefix, folder->suffix);
}

static bool is_named(const struct folder *folder, int fd, const char *name) {
    struct stat there, opened;
    return !fstat(fd, &opened) && !fstatat(folder->fd, name, &there, AT_SYMLINK_NOFOLLOW) &&
           there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
}

/* Another user's file, of a run that was killed, can only be read. It is locked all the same, for
 * which a network file system alone wants it open for writing: so that is tried first. The mode of
 * a file that was there is never changed: it may be anything that was given this name. */
static int open_lock(const struct folder *folder, const char *name) {
    static const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | flags, LOCK_FILE_MODE);
    if (fd >= 0) {
        fchmod(fd, LOCK_FILE_MODE); /* the umask left less; a confined capture leaves it so */
        return fd;
    }
    if (errno != EEXIST)
        return -1;
    fd = openat(folder->fd, name, O_RDWR | flags);
    if (fd < 0 && errno == EACCES)
        fd = openat(folder->fd, name, O_RDONLY | flags);
    if (fd < 0 && errno == ENOENT)
        errno = EAGAIN; /* removed meanwhile */
    return fd;
}

bool folder_lock_is_stuck(const struct folder *folder, char name[NAME_ROOM]) {
    struct stat told;
    lock_name(folder, name);
    return folder->lock_fd < 0 && !fstatat(folder->fd, name, &told, AT_SYMLINK_NOFOLLOW);
}

bool folder_lock(struct folder *folder) {
    char name[NAME_ROOM];
    if (folder->lock_fd >= 0)
        return true;
    lock_name(folder, name);
    for (int i = 0; i < TRIES; i++) {
        int fd = open_lock(folder, name);
        if (fd < 0 && errno == EAGAIN)
            continue;
        if (fd < 0)
            return false;
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            int reason = errno == EWOULDBLOCK ? EBUSY : errno;
            close(fd);
            errno = reason;
            return false;
        }
        if (is_named(folder, fd, name)) {
            folder->lock_fd = fd;
            return true;
        }
        close(fd);
    }
    errno = EBUSY;
    return false;
}

void folder_unlock(struct folder *folder) {
    char name[NAME_ROOM];
    if (folder->lock_fd < 0)
        return;
    lock_name(folder, name);
    if (is_named(folder, folder->lock_fd, name))
        unlinkat(folder->fd, name, 0);
    close(folder->lock_fd);
    folder->lock_fd = -1;
}
