/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a transfer: read at the sender, written at the receiver, hashed at both ends. The
 * hash is computed as bytes pass; if blocks arrive out of order, the receiver reads the file again
 * at the end.
 *
 * The name comes from the network, so a receiver writes only regular files inside one directory,
 * never follows a symbolic link, and writes to a temporary name first: ".wiretale-RUN.part". It is
 * renamed once both hashes agree and the bytes are on the disk, and removed otherwise. A lock marks
 * it as in use, so that content_sweep() removes only parts of receivers that were killed.
 *
 * The thread of the stream reads or writes the bytes, then hashes, flushes and renames the file, so
 * that the exchange is free. `error` is atomic, because the exchange looks at it meanwhile. */
#include "transfer/content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/utf8.h"

#define DIGEST_BYTES 32u
#define PART_BEGIN   ".wiretale-"
#define PART_END     ".part"
#define PART_DIGITS  8u

static bool begin(struct content *content, char *error, size_t room) {
    *content = (struct content){.is_used = true, .fd = -1, .folder = -1, .in_order = true};
    if (sodium_init() >= 0 && !crypto_generichash_init(&content->digest, NULL, 0, DIGEST_BYTES))
        return true;
    snprintf(error, room, "libsodium does not work");
    return false;
}

/* Standard input is duplicated, because content_end() closes the descriptor. The size of a regular
 * file is noted, because the block that reaches it must be marked as the last; bytes that are
 * appended later may be left out. */
bool content_open(struct content *content, const char *path, char *error, size_t room) {
    struct stat status;
    bool is_stdin = !strcmp(path, "-");
    if (!begin(content, error, room))
        return false;
    content->fd = is_stdin ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (content->fd < 0 || fstat(content->fd, &status)) {
        snprintf(error, room, "%s: %s", path, strerror(errno));
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        snprintf(error, room, "%s is a folder", path);
        return false;
    }
    content->left_known = S_ISREG(status.st_mode) && !is_stdin;
    content->left = content->left_known ? (uint64_t)status.st_size : 0;
    const char *slash = strrchr(path, '/');
    snprintf(content->name, sizeof content->name, "%s",
             is_stdin ? "stdin"
             : slash  ? slash + 1
                      : path);
    return true;
}

/* Loops over the short reads of a pipe, because a block must be full unless the input ends. */
size_t content_read(struct content *content, uint8_t *bytes, size_t count) {
    size_t have = 0;
    while (have < count) {
        ssize_t got = read(content->fd, bytes + have, count - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            content->error = errno;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    crypto_generichash_update(&content->digest, bytes, have);
    content->bytes += have;
    content->left -= content->left < have ? content->left : have;
    return have;
}

/* Returns whether the name stays within its directory, and is neither hidden nor able to steer a
 * terminal. */
static bool is_plain_name(const char *name) {
    if (!*name || name[0] == '.' || strlen(name) > 240)
        return false;
    for (; *name; name++)
        if (*name == '/' || *name == '\\' || (unsigned char)*name < ' ' || *name == 0x7f)
            return false;
    return true;
}

/* Returns whether a file may have the name: `rm *` must not take it for an option, and it reads as
 * what it is, because no character of it is malformed, invisible or turns others. */
static bool is_safe_name(const char *name) {
    char shown[NAME_MAX + 1];
    utf8_copy_printable(shown, sizeof shown, name, strlen(name));
    return name[0] != '-' && !strcmp(shown, name);
}

/* Returns whether the name may be given to the received file: only a regular file is ever replaced.
 */
static bool is_free(const struct content *content, char *error, size_t room) {
    struct stat status;
    if (fstatat(content->folder, content->name, &status, AT_SYMLINK_NOFOLLOW))
        return true;
    if (content->target->overwrite && S_ISREG(status.st_mode))
        return true;
    snprintf(error, room,
             content->target->overwrite
                 ? "%.100s exists at the receiver and is not a regular file"
                 : "%.100s exists at the receiver, which runs without --overwrite",
             content->name);
    return false;
}

/* content_sweep() may remove the file before it is locked; then it is created again. On a file
 * system without locks nothing is swept. */
static int make_locked(const struct content *content) {
    struct stat status;
    for (;;) {
        int fd = openat(content->folder, content->temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 || flock(fd, LOCK_EX) || fstat(fd, &status) || status.st_nlink)
            return fd;
        close(fd);
    }
}

static bool open_temporary(struct content *content, const char *folder, char *error, size_t room) {
    content->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (content->folder >= 0 && !is_free(content, error, room))
        return false;
    if (content->folder >= 0 && !(content->has_room = folder_room_begin(
                                      content->target->room, content->folder, error, room)))
        return false;
    if (content->folder >= 0)
        content->fd = make_locked(content);
    if (content->fd < 0)
        snprintf(error, room, "the receiver's output folder: %s", strerror(errno));
    return content->fd >= 0;
}

bool content_receive(struct content *content, const struct content_target *target, const char *name,
                     uint32_t run, char *error, size_t room) {
    if (!begin(content, error, room))
        return false;
    content->target = target;
    if (!is_plain_name(name) || (target->folder && !is_safe_name(name))) {
        snprintf(
            error, room,
            "a file's name must be printable UTF-8 without a folder, and not begin with . or -");
        return false;
    }
    snprintf(content->name, sizeof content->name, "%s", name);
    if (!target->folder || target->to_stdout)
        return true;
    snprintf(content->temporary, sizeof content->temporary, PART_BEGIN "%08x" PART_END, run);
    return open_temporary(content, target->folder, error, room);
}

static bool is_part_name(const char *name) {
    size_t begin = sizeof PART_BEGIN - 1;
    return !strncmp(name, PART_BEGIN, begin) &&
           strspn(name + begin, "0123456789abcdef") == PART_DIGITS &&
           !strcmp(name + begin + PART_DIGITS, PART_END);
}

/* Removes the file if it is a regular file of this user that no receiver has locked. */
static void sweep_one(int folder, const char *name) {
    struct stat status;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(folder, name, 0);
    close(fd);
}

void content_sweep(const char *folder) {
    DIR *listing = opendir(folder);
    if (!listing)
        return;
    for (struct dirent *entry; (entry = readdir(listing));)
        if (is_part_name(entry->d_name))
            sweep_one(dirfd(listing), entry->d_name);
    closedir(listing);
}

/* A file is written at the offset, because datagrams may come in any order; standard output gets
 * bytes as they arrive. */
static void write_all(struct content *content, uint64_t offset, const uint8_t *bytes,
                      size_t count) {
    if (content->has_room && !content->error) {
        content->room_bytes += count;
        content->error = folder_room_take(content->target->room, content->folder, count);
    }
    while (count && !content->error) {
        ssize_t done = content->target->to_stdout
                           ? write(1, bytes, count)
                           : pwrite(content->fd, bytes, count, (off_t)offset);
        if (done <= 0) {
            content->error = done ? errno : EIO;
            return;
        }
        bytes += done;
        offset += (uint64_t)done;
        count -= (size_t)done;
    }
}

/* Once bytes come out of order, the running hash is given up and content_finish_sum() must read the
 * file. */
void content_take(struct content *content, uint64_t offset, const uint8_t *bytes, size_t count) {
    if (offset != content->next)
        content->in_order = false;
    content->next = offset + count;
    content->bytes += count;
    if (content->in_order)
        crypto_generichash_update(&content->digest, bytes, count);
    if (content->target->to_stdout || content->fd >= 0)
        write_all(content, offset, bytes, count);
}

/* Hashes the file from its start. */
static bool sum_again(struct content *content) {
    static const size_t room = 65536;
    uint8_t bytes[65536];
    ssize_t got;
    off_t at = 0;
    crypto_generichash_init(&content->digest, NULL, 0, DIGEST_BYTES);
    while ((got = pread(content->fd, bytes, room, at)) > 0) {
        crypto_generichash_update(&content->digest, bytes, (size_t)got);
        at += got;
    }
    return !got;
}

/* `own` stays empty after an error, or if blocks were reordered and there is no file to read. */
void content_finish_sum(struct content *content) {
    unsigned char digest[DIGEST_BYTES];
    if (content->error || (!content->in_order && (content->fd < 0 || !sum_again(content))))
        return;
    crypto_generichash_final(&content->digest, digest, sizeof digest);
    sodium_bin2hex(content->own, sizeof content->own, digest, sizeof digest);
}

/* Without --overwrite, RENAME_NOREPLACE keeps a file that appeared since is_free(). Some file
 * systems do not support it; link() is as safe. */
static bool give_name(const struct content *content) {
    int at = content->folder;
    if (content->target->overwrite)
        return !renameat(at, content->temporary, at, content->name);
    if (!renameat2(at, content->temporary, at, content->name, RENAME_NOREPLACE))
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    return !linkat(at, content->temporary, at, content->name, 0) &&
           !unlinkat(at, content->temporary, 0);
}

/* Flushes the bytes before the rename and the directory after it, so that a crash leaves the old
 * file or the whole new one. */
static bool keep(struct content *content) {
    if (fsync(content->fd))
        return false;
    content->kept = give_name(content);
    if (!content->kept)
        return false;
    return !fsync(content->folder) ||
           errno == EINVAL; /* some file systems cannot flush a directory */
}

/* If the file was not opened, one with the temporary name belongs to another transfer. */
void content_settle(struct content *content, bool complete) {
    if (content->folder < 0 || content->fd < 0 || content->has_settled)
        return;
    content->has_settled = true;
    bool is_whole =
        complete && content->own[0] && !content->error && !strcmp(content->own, content->peer);
    if (is_whole && !keep(content))
        content->error = errno;
    if (!content->kept)
        unlinkat(content->folder, content->temporary, 0);
}

void content_end(struct content *content) {
    if (!content->is_used)
        return;
    content_settle(content, false);
    if (content->has_room)
        folder_room_end(content->target->room, content->kept ? 0 : content->room_bytes);
    if (content->fd >= 0)
        close(content->fd);
    if (content->folder >= 0)
        close(content->folder);
    content->is_used = false;
}
