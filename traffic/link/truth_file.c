/* SPDX-License-Identifier: Apache-2.0 */
#include "truth_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_one_of(uint32_t magic, const uint32_t *magics, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (magic == magics[i])
            return true;
    return false;
}

/* pcap in both byte orders: of microseconds and nanoseconds, Kuznetzov's and Navtel's; pcapng. */
static bool is_capture_magic(uint32_t magic) {
    static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34, 0xa1b234cd, 0x0a0d0d0a};
    size_t count = sizeof magics / sizeof *magics;
    return is_one_of(magic, magics, count) || is_one_of(__builtin_bswap32(magic), magics, count);
}

/* gzip, zstd and lz4. */
static bool is_compressed(const uint8_t bytes[4]) {
    return (bytes[0] == 0x1f && bytes[1] == 0x8b) || !memcmp(bytes, "\x28\xb5\x2f\xfd", 4) ||
           !memcmp(bytes, "\x04\x22\x4d\x18", 4);
}

static bool is_named_as_capture(const char *path) {
    char real[PATH_MAX];
    const char *name = realpath(path, real) ? real : path, *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    return strcasestr(name, ".pcap") || strcasestr(name, ".cap");
}

static bool is_capture(const char *path) {
    uint8_t bytes[4];
    uint32_t magic;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool has_magic = read(fd, bytes, sizeof bytes) == sizeof bytes;
    close(fd);
    if (!has_magic)
        return false;
    memcpy(&magic, bytes, sizeof magic);
    return is_capture_magic(magic) || (is_compressed(bytes) && is_named_as_capture(path));
}

const char *truth_file_problem(const char *path, const char *const *inputs, size_t count,
                               bool overwrite) {
    struct stat there, input;
    if (stat(path, &there))
        return NULL; /* it is not there: if it cannot be made either, opening fails */
    for (size_t i = 0; i < count; i++)
        if (inputs[i] && !stat(inputs[i], &input) && input.st_dev == there.st_dev &&
            input.st_ino == there.st_ino)
            return "expected another file than the input of trace=";
    if (!overwrite && S_ISREG(there.st_mode) && is_capture(path))
        return "this is a capture file: expected another file, or --overwrite to replace it";
    return NULL;
}

/* A new file beside the one at `path`, under its name, mode and owner. */
static int replace_file(const char *path, const struct stat *before) {
    char real[PATH_MAX], partial[PATH_MAX + 16];
    if (!realpath(path, real))
        return -1;
    snprintf(partial, sizeof partial, "%s.XXXXXX", real);
    int fd = mkostemp(partial, O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool is_same = !fchown(fd, before->st_uid, before->st_gid) &&
                   !fchmod(fd, before->st_mode & 07777) && !rename(partial, real);
    if (is_same)
        return fd;
    unlink(partial);
    close(fd);
    return -1;
}

FILE *truth_file_open(const char *path) {
    struct stat before;
    if (stat(path, &before) || !S_ISREG(before.st_mode))
        return fopen(path, "wbe");
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
        return NULL;
    int fd = replace_file(path, &before);
    /* Its folder may not be writable, or it is a mount point: then the file itself is. */
    return fd < 0 ? fopen(path, "wbe") : fdopen(fd, "wb");
}
