/* SPDX-License-Identifier: Apache-2.0 */
#include "file_recover.h"

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

#include "block.h"
#include "say.h"

#define CUT_COMMENT                                                                                \
    "the capture was ended by force: packets after the last one here and the numbers of drops "    \
    "are "                                                                                         \
    "not known"

/* Opened and locked, so that a running capture's file is left alone; -1 when it is none of ours. */
static int open_left(const struct folder *folder, const char *temporary) {
    struct stat told;
    int fd = openat(folder->fd, temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == EACCES)
            warn_of("%s is of an earlier run that was another user's: it is left as it is",
                    temporary);
        return -1;
    }
    if (!fstat(fd, &told) && S_ISREG(told.st_mode) && !flock(fd, LOCK_EX | LOCK_NB))
        return fd;
    close(fd);
    return -1;
}

static bool is_compressed(const char *name) {
    return strlen(name) > 4 && !strcmp(name + strlen(name) - 4, COMPRESSED);
}

static bool is_published_compressed(const struct folder *folder, const char *name) {
    char compressed[NAME_ROOM + 8];
    struct stat told;
    snprintf(compressed, sizeof compressed, "%s" COMPRESSED, name);
    return !fstatat(folder->fd, compressed, &told, AT_SYMLINK_NOFOLLOW);
}

static struct finished *add_left(const struct folder *folder, const char *temporary,
                                 struct finished *others) {
    struct finished *left = calloc(1, sizeof *left);
    if (!left || !folder_final_name(temporary, left->name)) {
        free(left);
        return others;
    }
    left->fd = open_left(folder, temporary);
    if (left->fd < 0) {
        free(left);
        return others;
    }
    /* What was being compressed is there uncompressed, or compressed and published. */
    if (is_compressed(left->name) || is_published_compressed(folder, left->name)) {
        unlinkat(folder->fd, temporary, 0);
        close(left->fd);
        free(left);
        return others;
    }
    snprintf(left->temporary, sizeof left->temporary, "%s", temporary);
    left->folder_fd = fcntl(folder->fd, F_DUPFD_CLOEXEC, 0);
    left->next = others;
    return left;
}

struct finished *file_recover_find(const struct folder *folder) {
    struct finished *found = NULL;
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing)
        return NULL;
    for (struct dirent *entry; (entry = readdir(listing));)
        if (strlen(entry->d_name) < NAME_ROOM)
            found = add_left(folder, entry->d_name, found);
    closedir(listing);
    return found;
}

static bool walk_file(const struct finished *file, struct recovered *found) {
    struct stat told;
    if (fstat(file->fd, &told))
        return false;
    *found = (struct recovered){0};
    if (!told.st_size)
        return true;
    size_t size = (size_t)told.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED)
        return false;
    file_recover_walk(found, data, size);
    munmap(data, size);
    return true;
}

static void add_statistics(struct block_buffer *buffer, const struct recovered *found) {
    for (uint32_t i = 0; i < found->interfaces; i++) {
        const struct recovered_interface *of = &found->of[i];
        block_statistics(buffer,
                         &(struct block_statistics){.interface = i,
                                                    .start_ns = of->first_ns,
                                                    .end_ns = of->last_ns,
                                                    .delivered = of->packets},
                         CUT_COMMENT);
    }
}

/* A disk too full for the statistics keeps the packets. */
static bool cut(struct finished *file, const struct recovered *found) {
    struct block_buffer buffer = {0};
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
    block_free(&buffer);
    return true;
}

static bool leave(struct finished *file) {
    close(file->fd);
    close(file->folder_fd);
    return false;
}

bool file_recover(struct finished *file) {
    struct recovered found;
    if (!walk_file(file, &found)) {
        warn_of("%s cannot be read: %s", file->temporary, strerror(errno));
        return leave(file);
    }
    struct stat told;
    if (!found.ours) {
        /* Killed before the first byte, or not from here. */
        if (!fstat(file->fd, &told) && !told.st_size)
            unlinkat(file->folder_fd, file->temporary, 0);
        else
            warn_of("%s does not begin as files of this program do: it is left as it is",
                    file->temporary);
        return leave(file);
    }
    if (!cut(file, &found)) {
        warn_of("%s cannot be mended: %s", file->temporary, strerror(errno));
        return leave(file);
    }
    say("%s, left by a run that was ended by force, has %llu packets", file->name,
        (unsigned long long)found.packets);
    return true;
}
