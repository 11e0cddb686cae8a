/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file is recovered if this process can lock it: a running capture holds the lock.
 * Order matters if compression was interrupted. If a compressed file was published, its
 * uncompressed one is removed; if a compressed one is incomplete, it is removed, because the
 * uncompressed one still exists. Both decisions compare contents, since any file may have the name.
 */
#include "finish/recover.h"

#include <dirent.h>
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
#include "finish/finished_file.h"

#define CUT_COMMENT "the capture was killed: later packets and the numbers of drops are unknown"

#define NUMBERS_TRIED 10 /* of temporary files with one name */

/* Opens and locks a leftover. Returns -1 if it is in use or not a regular file. */
static int open_left(int directory_fd, const char *temporary) {
    struct stat info;
    int fd = openat(directory_fd, temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == EACCES)
            log_warning("%s is of an earlier run by another user: not changed", temporary);
        else if (errno != ENOENT && errno != ELOOP && errno != ENXIO)
            log_warning("cannot open %s: %s; left for the next start", temporary, strerror(errno));
        return -1;
    }
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && !flock(fd, LOCK_EX | LOCK_NB))
        return fd;
    close(fd);
    return -1;
}

static bool is_compressed(const char *name) {
    return strlen(name) > 4 && !strcmp(name + strlen(name) - 4, COMPRESSED);
}

/* Opens a file for reading if it is a regular one. O_NONBLOCK avoids waiting for a FIFO of that
 * name. */
static int open_regular(int directory_fd, const char *name) {
    struct stat info;
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (!fstat(fd, &info) && S_ISREG(info.st_mode)))
        return fd;
    close(fd);
    return -1;
}

/* Returns whether NAME.zst holds the same bytes: the run was killed after it published that file.
 * Another capture's file of this name is no reason to remove this one. */
static bool is_published_compressed(const struct finished_file *file) {
    char compressed[NAME_SIZE + 8];
    snprintf(compressed, sizeof compressed, "%s" COMPRESSED, file->name);
    int fd = open_regular(file->directory_fd, compressed);
    bool same = fd >= 0 && is_compressed_copy(fd, file->fd, true);
    if (fd >= 0)
        close(fd);
    return same;
}

/* Returns whether the plain file begins with the content of the compressed one. */
static bool has_beginning(int directory_fd, int compressed_fd, const char *plain) {
    int fd = open_regular(directory_fd, plain);
    bool same = fd >= 0 && is_compressed_copy(compressed_fd, fd, false);
    if (fd >= 0)
        close(fd);
    return same;
}

/* Returns whether the uncompressed original of an incomplete compressed file exists, as .NAME.part,
 * .NAME.1.part or NAME. */
static bool is_half_compressed(int directory_fd, int fd, const char *name) {
    char plain[NAME_SIZE + 16];
    int length = (int)(strlen(name) - strlen(COMPRESSED));
    snprintf(plain, sizeof plain, "%.*s", length, name);
    bool found = has_beginning(directory_fd, fd, plain);
    snprintf(plain, sizeof plain, ".%.*s" TEMPORARY, length, name);
    found = found || has_beginning(directory_fd, fd, plain);
    for (int i = 1; !found && i < NUMBERS_TRIED; i++) {
        snprintf(plain, sizeof plain, ".%.*s.%d" TEMPORARY, length, name, i);
        found = has_beginning(directory_fd, fd, plain);
    }
    return found;
}

/* Adds a name if it has the form of a temporary file. If memory is short, the file is left for the
 * next start. */
static void add_name(struct leftovers *left, const char *temporary) {
    char name[NAME_SIZE];
    if (strlen(temporary) >= NAME_SIZE || !directory_final_name(temporary, name))
        return;
    if (left->count == left->capacity) {
        size_t capacity = 2 * left->capacity + 64;
        char **names = realloc(left->names, capacity * sizeof *names);
        if (!names)
            return;
        left->names = names;
        left->capacity = capacity;
    }
    if ((left->names[left->count] = strdup(temporary)))
        left->count++;
}

/* Compressed ones come first, while their originals still have their names. */
static int by_name(const void *a, const void *b) {
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    int order = (strstr(other, COMPRESSED ".") != NULL) - (strstr(one, COMPRESSED ".") != NULL);
    return order ? order : strcmp(one, other);
}

/* Only lists names. Files are opened by recover_next(). */
void recover_find(struct leftovers *left, const struct directory *directory) {
    *left = (struct leftovers){.directory_fd = fcntl(directory->fd, F_DUPFD_CLOEXEC, 0)};
    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing)
        return;
    for (struct dirent *entry; (entry = readdir(listing));)
        add_name(left, entry->d_name);
    closedir(listing);
    if (left->count)
        qsort(left->names, left->count, sizeof *left->names, by_name);
}

bool recover_is_done(const struct leftovers *left) {
    return left->next == left->count;
}

/* Maps the file and walks it. An empty file gives an empty result. */
static bool walk_file(const struct finished_file *file, struct recovered *found) {
    struct stat info;
    if (fstat(file->fd, &info))
        return false;
    *found = (struct recovered){0};
    if (!info.st_size)
        return true;
    size_t size = (size_t)info.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED)
        return false;
    recover_walk(found, data, size);
    munmap(data, size);
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
    bool whole = written == (ssize_t)buffer.fill;
    if (whole)
        file->bytes += buffer.fill;
    else if (ftruncate(file->fd, (off_t)found->whole))
        whole = false;
    pcapng_free(&buffer);
    return true;
}

/* Closes a file that is not recovered. Returns false, for the caller to return. */
static bool leave(struct finished_file *file) {
    close(file->fd);
    close(file->directory_fd);
    return false;
}

/* Decides what to do with an open leftover. Returns false if there is nothing to publish; the file
 * is then closed. */
static bool recover(struct finished_file *file) {
    struct recovered found;
    if (!walk_file(file, &found)) {
        log_warning("cannot read %s: %s", file->temporary, strerror(errno));
        return leave(file);
    }
    struct stat info;
    if (!found.ours) {
        /* killed before the first byte, or not made by this program */
        if (!fstat(file->fd, &info) && !info.st_size)
            unlinkat(file->directory_fd, file->temporary, 0);
        else
            log_warning("%s was not written by this program: not changed", file->temporary);
        return leave(file);
    }
    if (is_published_compressed(file)) {
        unlinkat(file->directory_fd, file->temporary, 0);
        return leave(file);
    }
    if (!recover_cut(file, &found)) {
        log_warning("cannot recover %s: %s", file->temporary, strerror(errno));
        return leave(file);
    }
    log_info("recovered %s of a killed run: %llu packets", file->name,
             (unsigned long long)found.packets);
    return true;
}

/* Removes an incomplete compressed file if its original exists; else it may be the only copy and
 * stays. */
static void drop_half_compressed(int directory_fd, int fd, const char *temporary,
                                 const char *name) {
    if (is_half_compressed(directory_fd, fd, name))
        unlinkat(directory_fd, temporary, 0);
    else
        log_warning("%s has no uncompressed original: not changed", temporary);
    close(fd);
}

/* Returns false if the file is in use, removed or obsolete. */
static bool open_file(struct finished_file *file, int directory_fd, const char *temporary) {
    if (!directory_final_name(temporary, file->name) ||
        (file->fd = open_left(directory_fd, temporary)) < 0)
        return false;
    if (is_compressed(file->name)) {
        drop_half_compressed(directory_fd, file->fd, temporary, file->name);
        return false;
    }
    snprintf(file->temporary, sizeof file->temporary, "%s", temporary);
    file->directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
    file->recovered = true;
    return true;
}

struct finished_file *recover_next(struct leftovers *left) {
    char *temporary = left->names[left->next++];
    struct finished_file *file = calloc(1, sizeof *file);
    if (file && (!open_file(file, left->directory_fd, temporary) || !recover(file))) {
        free(file);
        file = NULL;
    }
    free(temporary);
    if (recover_is_done(left)) {
        free(left->names);
        close(left->directory_fd);
        *left = (struct leftovers){.directory_fd = -1};
    }
    return file;
}
