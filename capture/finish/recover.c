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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer/pcapng.h"
#include "common/log.h"
#include "directory/path.h"

#define CUT_COMMENT "the capture was killed: later packets and the numbers of drops are unknown"

#define NUMBERS_TRIED 10 /* of temporary files with one name */

/* Opens a regular file. O_NONBLOCK avoids waiting for a FIFO of that name. */
static int open_regular(int directory_fd, const char *name, int mode) {
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
    int fd = open_regular(directory_fd, temporary, O_RDWR);
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
    int other = open_regular(directory_fd, name, O_RDONLY);
    if (other < 0)
        return false;
    bool same = is_compressed_copy(whole ? other : fd, whole ? fd : other, whole);
    close(other);
    return same;
}

/* Returns whether NAME.zst holds the same bytes: the run was killed after it published that file.
 * Another capture's file of this name is no reason to remove this one. */
static bool is_published_compressed(const struct finished_file *file) {
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

/* Maps the file and walks it. An empty file gives an empty result. */
static bool walk_file(struct finished_file *file, struct recovered *found) {
    struct stat info;
    if (fstat(file->fd, &info))
        return false;
    file->bytes = (uint64_t)info.st_size;
    *found = (struct recovered){0};
    if (!file->bytes)
        return true;
    void *data = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED)
        return false;
    recover_walk(found, data, file->bytes);
    munmap(data, file->bytes);
    return true;
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
                          CUT_COMMENT);
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

/* Decides what to do with a leftover. Returns false if there is nothing to publish, because it is
 * in use, removed, obsolete or not of this program. */
static bool recover(struct finished_file *file) {
    struct recovered found;
    if (!directory_final_name(file->temporary, file->name) ||
        (file->fd = open_left(file->directory_fd, file->temporary)) < 0)
        return false;
    bool obsolete = path_ends_with(file->name, COMPRESSED);
    if (obsolete && !is_half_compressed(file)) { /* it may be the only copy */
        log_warning("%s has no uncompressed original: not changed", file->temporary);
        return false;
    }
    if (!obsolete && !walk_file(file, &found)) {
        log_warning("cannot read %s: %s", file->temporary, strerror(errno));
        return false;
    }
    if (!obsolete && !found.ours && file->bytes) {
        log_warning("%s was not written by this program: not changed", file->temporary);
        return false;
    }
    /* killed while it was compressed, before the first byte, or after it was compressed */
    if (obsolete || !found.ours || is_published_compressed(file)) {
        unlinkat(file->directory_fd, file->temporary, 0);
        return false;
    }
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
        if (!recover(file)) {
            finished_file_free(file);
            file = NULL;
        }
    }
    free(temporary);
    if (recover_is_done(left)) {
        free(left->names);
        close(left->directory_fd);
        *left = (struct leftovers){.directory_fd = -1};
    }
    return file;
}
