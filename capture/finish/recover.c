/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file is recovered if this process can lock it: a running capture holds the lock.
 * Order matters if compression was interrupted. If a compressed file was published, its
 * uncompressed one is removed; if a compressed one is incomplete, it is removed, because the
 * uncompressed one still exists. Both decisions compare contents, since any file may have the name.
 */
#include "finish/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer/pcapng.h"
#include "common/log.h"
#include "directory/path.h"

#define CUT_COMMENT "the capture was killed: later packets and the numbers of drops are unknown"

#define NUMBERS_TRIED 10 /* of temporary files with one name */
#define UNREADABLE    ".unreadable"
#define PIECE_BYTES   65536

/* Opens a regular file. O_NONBLOCK avoids waiting for a FIFO of that name. */
int recover_open(int directory_fd, const char *name, int mode) {
    struct stat info;
    int fd = openat(directory_fd, name, mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (!fstat(fd, &info) && S_ISREG(info.st_mode)))
        return fd;
    close(fd);
    errno = ENXIO;
    return -1;
}

/* Opens and locks a leftover. Returns -1 if it is in use or not a regular file. */
static int open_left(int directory_fd, const char *temporary) {
    int fd = recover_open(directory_fd, temporary, O_RDWR);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
        return fd;
    if (fd >= 0)
        close(fd);
    else if (errno == EACCES)
        log_warning("%s is of an earlier run by another user: not changed", temporary);
    else if (errno != ENOENT && errno != ELOOP && errno != ENXIO)
        log_warning("cannot open %s: %s; left for the next start", temporary, strerror(errno));
    return -1;
}

/* Compares an open file with the file `name`. If `whole`, that is the compressed one of the two and
 * must be complete; else the open one is, and may be a beginning. */
static bool is_copy(int fd, int directory_fd, const char *name, bool whole) {
    int other = recover_open(directory_fd, name, O_RDONLY);
    if (other < 0)
        return false;
    bool same = is_compressed_copy(whole ? other : fd, whole ? fd : other, whole);
    close(other);
    return same;
}

/* Another capture's file of this name is no reason to remove this one. */
bool recover_is_compressed(const struct finished_file *file) {
    char compressed[NAME_SIZE + 8];
    snprintf(compressed, sizeof compressed, "%s" COMPRESSED, file->name);
    return is_copy(file->fd, file->directory_fd, compressed, true);
}

/* Returns whether the uncompressed original of an incomplete compressed file exists, as NAME,
 * .NAME.part or .NAME.1.part. */
static bool is_half_compressed(const struct finished_file *file) {
    bool found = false;
    int length = (int)(strlen(file->name) - strlen(COMPRESSED));
    for (int i = -1; !found && i < NUMBERS_TRIED; i++) {
        char plain[NAME_SIZE + 16], number[16] = "";
        if (i > 0)
            snprintf(number, sizeof number, ".%d", i);
        snprintf(plain, sizeof plain, "%s%.*s%s%s", i < 0 ? "" : ".", length, file->name, number,
                 i < 0 ? "" : TEMPORARY);
        found = is_copy(file->fd, file->directory_fd, plain, false);
    }
    return found;
}

static int is_temporary(const struct dirent *entry) {
    char name[NAME_SIZE];
    return directory_final_name(entry->d_name, name);
}

/* Compressed ones come first, while their originals still have their names. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    const char *one = (*a)->d_name, *other = (*b)->d_name;
    int order = (strstr(other, COMPRESSED ".") != NULL) - (strstr(one, COMPRESSED ".") != NULL);
    return order ? order : strcmp(one, other);
}

/* Only lists names. Files are opened by recover_next(). If memory is short, they are left for the
 * next start. */
void recover_find(struct leftovers *left, const struct directory *directory) {
    *left = (struct leftovers){.directory_fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0)};
    int count = scandirat(directory->fd, ".", &left->names, is_temporary, by_name);
    left->count = count > 0 ? count : 0;
}

bool recover_is_done(const struct leftovers *left) {
    return left->next == left->count;
}

/* Reads a compressed file to its end, because its content is not needed. Sets error and readable.
 */
static void find_read_error(int fd, struct recovered *found) {
    uint8_t piece[PIECE_BYTES];
    ssize_t size;
    *found = (struct recovered){0};
    while ((size = pread(fd, piece, sizeof piece, (off_t)found->readable)) > 0)
        found->readable += (uint64_t)size;
    found->error = size < 0 ? errno : 0;
}

/* A file with a read error is not changed, because a program for damaged disks may still read the
 * bytes after it. It gets another name, so that no later start reads the bad sectors again. */
static void set_aside(struct leftovers *left, struct finished_file *file,
                      const struct recovered *found) {
    char cause[256], name[NAME_SIZE];
    snprintf(cause, sizeof cause, "cannot read %.160s at byte %llu: %s", file->temporary,
             (unsigned long long)found->readable, strerror(found->error));
    snprintf(name, sizeof name, "%s", file->name);
    if (snprintf(file->name, NAME_SIZE, "%s" UNREADABLE, name) < NAME_SIZE &&
        publish_file(file, &(struct replacement){0})) {
        left->unreadable++;
        log_warning("%s; renamed to %s", cause, file->name);
    } else {
        log_warning("%s; it cannot be renamed either: %s", cause, strerror(errno));
    }
}

/* Only the number of delivered packets is known; drops are left out. */
static void add_statistics(struct pcapng_buffer *buffer, const struct recovered *found) {
    for (uint32_t i = 0; i < found->interfaces; i++) {
        const struct recovered_interface *of = &found->of[i];
        pcapng_statistics(buffer,
                          &(struct pcapng_statistics){.interface = i,
                                                      .start_ns = of->first_ns,
                                                      .end_ns = of->last_ns,
                                                      .delivered = of->packets},
                          CUT_COMMENT, NULL);
    }
}

/* If the disk is too full for statistics, the packets are kept without them. */
bool recover_cut(struct finished_file *file, const struct recovered *found) {
    struct pcapng_buffer buffer = {0};
    if (ftruncate(file->fd, (off_t)found->whole))
        return false;
    file->bytes = found->whole;
    if (found->closed || found->classic)
        return true;
    add_statistics(&buffer, found);
    ssize_t written =
        buffer.failed ? 0 : pwrite(file->fd, buffer.data, buffer.fill, (off_t)found->whole);
    if (written == (ssize_t)buffer.fill)
        file->bytes += buffer.fill;
    pcapng_free(&buffer);
    return !ftruncate(file->fd, (off_t)file->bytes);
}

/* An incomplete compressed file is removed if its uncompressed original still exists; else it may
 * be the only copy. */
static void settle_compressed(struct leftovers *left, struct finished_file *file) {
    struct recovered found;
    if (is_half_compressed(file)) {
        unlinkat(file->directory_fd, file->temporary, 0);
        return;
    }
    find_read_error(file->fd, &found);
    if (found.error)
        set_aside(left, file, &found);
    else
        log_warning("%s has no readable uncompressed original: not changed", file->temporary);
}

/* Walks the file and decides what to do with it. Returns false if it must stay as it is, or is set
 * aside or removed. An empty file was killed before its first byte. */
static bool is_recoverable(struct leftovers *left, struct finished_file *file,
                           struct recovered *found) {
    struct stat info;
    int reason = fstat(file->fd, &info) ? errno : 0;
    if (!reason) {
        file->bytes = (uint64_t)info.st_size;
        recover_walk(found, file->fd, file->bytes);
        reason = found->error == ENOMEM ? ENOMEM : 0;
    }
    if (reason)
        log_warning("cannot read %s: %s; left for the next start", file->temporary,
                    strerror(reason));
    else if (found->error)
        set_aside(left, file, found);
    else if (!found->ours && file->bytes)
        log_warning("%s was not written by this program: not changed", file->temporary);
    else if (!found->ours || recover_is_compressed(file))
        unlinkat(file->directory_fd, file->temporary, 0);
    else
        return true;
    return false;
}

/* Returns false if there is nothing to publish. */
static bool recover(struct leftovers *left, struct finished_file *file) {
    struct recovered found;
    if (!directory_final_name(file->temporary, file->name) ||
        (file->fd = open_left(file->directory_fd, file->temporary)) < 0)
        return false;
    if (path_ends_with(file->name, COMPRESSED)) {
        settle_compressed(left, file);
        return false;
    }
    if (!is_recoverable(left, file, &found))
        return false;
    if (!recover_cut(file, &found)) {
        log_warning("cannot recover %s: %s", file->temporary, strerror(errno));
        return false;
    }
    log_info("recovered %s of a killed run: %llu packets", file->name,
             (unsigned long long)found.packets);
    return true;
}

struct finished_file *recover_next(struct leftovers *left) {
    struct dirent *temporary = left->names[left->next++];
    struct finished_file *file = calloc(1, sizeof *file);
    if (file) {
        strcpy(file->temporary, temporary->d_name);
        file->fd = -1;
        file->directory_fd = fcntl(left->directory_fd, F_DUPFD_CLOEXEC, 0);
        file->recovered = true;
        if (!recover(left, file)) {
            finished_file_free(file);
            file = NULL;
        }
    }
    free(temporary);
    if (recover_is_done(left)) {
        free(left->names);
        close(left->directory_fd);
        left->directory_fd = -1;
        left->names = NULL;
        left->count = left->next = 0;
    }
    return file;
}
