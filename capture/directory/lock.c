/* SPDX-License-Identifier: Apache-2.0 */
/* One capture for a prefix in a directory: two would remove each other's files from the ring and
 * count them.
 *
 * The lock is a flock(2) on the hidden file .PREFIX.SUFFIX.lock. The kernel releases it when the
 * process ends in any way. The file is removed at each orderly end; after a kill it stays and is
 * used again. Because another process may remove the file between open and flock, a lock is valid
 * only if the name still leads to the locked file. */
#include "directory/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/path.h"

#define LOCK_FILE_MODE 0644 /* it is empty, and the next run may be another user's */
#define TRIES          10   /* its holder may end and remove the file at each step */

/* Returns whether the name still leads to the open file. */
static bool is_named(int directory_fd, const char *name, int fd) {
    struct stat there, opened;
    return !fstat(fd, &opened) && !fstatat(directory_fd, name, &there, AT_SYMLINK_NOFOLLOW) &&
           is_same_file(&there, &opened);
}

/* A file of another user can only be opened for reading, which suffices for flock(2), except on
 * network file systems: so writing is tried first. The mode of an existing file must not change,
 * because any file may have this name. */
static int open_lock(int directory_fd, const char *name) {
    static const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | flags, LOCK_FILE_MODE);
    if (fd >= 0) {
        fchmod(fd, LOCK_FILE_MODE); /* the umask removed bits; in the sandbox this fails, and they
                                       stay removed */
        return fd;
    }
    if (errno != EEXIST)
        return -1;
    fd = openat(directory_fd, name, O_RDWR | flags);
    if (fd < 0 && errno == EACCES)
        fd = openat(directory_fd, name, O_RDONLY | flags);
    if (fd < 0 && errno == ENOENT)
        errno = EAGAIN; /* removed meanwhile */
    return fd;
}

/* If the holder ends between the steps, the file may be removed or replaced: the loop then begins
 * again. */
int lock_file_take(int directory_fd, const char *name) {
    for (int i = 0; i < TRIES; i++) {
        int fd = open_lock(directory_fd, name);
        if (fd < 0 && errno == EAGAIN)
            continue;
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            int reason = errno == EWOULDBLOCK ? EBUSY : errno;
            close(fd);
            if (reason == EBUSY && i < TRIES / 2) {
                poll(NULL, 0, 1); /* it may be lock_file_is_held() */
                continue;
            }
            errno = reason;
            return -1;
        }
        if (is_named(directory_fd, name, fd))
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* The shared lock is held for a moment only, for which lock_file_take() waits. */
bool lock_file_is_held(int directory_fd, const char *name) {
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return is_held;
}

void lock_file_release(int directory_fd, const char *name, int fd) {
    if (is_named(directory_fd, name, fd))
        unlinkat(directory_fd, name, 0);
    close(fd);
}
