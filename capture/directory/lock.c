/* SPDX-License-Identifier: Apache-2.0 */
/* One capture for a directory and a prefix: two would count, and remove, each other's files.
 *
 * The lock is on a hidden file, .PREFIX.SUFFIX.lock. The kernel releases it when the program ends,
 * however it ends; the file itself is removed at every end but a kill, and then used again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/directory.h"

#define LOCK_FILE_MODE 0644 /* it has no content, and the next run may be another user's */
#define TRIES          10   /* the one that holds it may end, and remove the file, at every step */

static void lock_name(const struct directory *directory, char name[NAME_SIZE]) {
    snprintf(name, NAME_SIZE, ".%s%s.lock", directory->prefix, directory->suffix);
}

static bool is_named(const struct directory *directory, int fd, const char *name) {
    struct stat there, opened;
    return !fstat(fd, &opened) && !fstatat(directory->fd, name, &there, AT_SYMLINK_NOFOLLOW) &&
           there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
}

/* Another user's file, of a run that was killed, can only be read. It is locked all the same, for
 * which a network file system alone wants it open for writing: so that is tried first. The mode of
 * a file that was there is never changed: it may be anything that was given this name. */
static int open_lock(const struct directory *directory, const char *name) {
    static const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(directory->fd, name, O_RDWR | O_CREAT | O_EXCL | flags, LOCK_FILE_MODE);
    if (fd >= 0) {
        fchmod(fd, LOCK_FILE_MODE); /* the umask left less; a confined capture leaves it so */
        return fd;
    }
    if (errno != EEXIST)
        return -1;
    fd = openat(directory->fd, name, O_RDWR | flags);
    if (fd < 0 && errno == EACCES)
        fd = openat(directory->fd, name, O_RDONLY | flags);
    if (fd < 0 && errno == ENOENT)
        errno = EAGAIN; /* removed meanwhile */
    return fd;
}

bool directory_lock_is_stuck(const struct directory *directory, char name[NAME_SIZE]) {
    struct stat info;
    lock_name(directory, name);
    return directory->lock_fd < 0 && !fstatat(directory->fd, name, &info, AT_SYMLINK_NOFOLLOW);
}

bool directory_lock(struct directory *directory) {
    char name[NAME_SIZE];
    if (directory->lock_fd >= 0)
        return true;
    lock_name(directory, name);
    for (int i = 0; i < TRIES; i++) {
        int fd = open_lock(directory, name);
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
        if (is_named(directory, fd, name)) {
            directory->lock_fd = fd;
            return true;
        }
        close(fd);
    }
    errno = EBUSY;
    return false;
}

void directory_unlock(struct directory *directory) {
    char name[NAME_SIZE];
    if (directory->lock_fd < 0)
        return;
    lock_name(directory, name);
    if (is_named(directory, directory->lock_fd, name))
        unlinkat(directory->fd, name, 0);
    close(directory->lock_fd);
    directory->lock_fd = -1;
}
