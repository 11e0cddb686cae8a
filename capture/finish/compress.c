/* SPDX-License-Identifier: Apache-2.0 */
/* zstd compression of finished files. The compressed file is written beside the uncompressed one,
 * which is removed only after the compressed one is published. After a kill between these steps
 * both exist; recovery compares them byte for byte and removes one (recover.c). */
#include "finish/finished_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/clock.h"

#define LEVEL      3
#define PART_BYTES (256u << 10)

/* Of the finishing thread, which alone calls these functions. */
static uint8_t input[PART_BYTES], output[PART_BYTES], plain[PART_BYTES];

/* A write that is interrupted or short is continued. */
static bool write_all(int fd, const uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t more = write(fd, data + done, size - done);
        if (more < 0 && errno != EINTR)
            return false;
        done += more > 0 ? (size_t)more : 0;
    }
    return true;
}

/* Reads by offset, because the file was also written by offset. With ZSTD_e_end the library must be
 * called until it has no output left. */
static bool compress_into(ZSTD_CCtx *context, int from, int to, const _Atomic int64_t *until_ns) {
    ssize_t size = 1;
    for (off_t at = 0; size; at += size) {
        errno = ETIMEDOUT;
        if (monotonic_ns() >= *until_ns)
            return false;
        size = pread(from, input, sizeof input, at);
        if (size < 0)
            return false;
        ZSTD_inBuffer in = {input, (size_t)size, 0};
        size_t left;
        do {
            ZSTD_outBuffer out = {output, sizeof output, 0};
            left = ZSTD_compressStream2(context, &out, &in, size ? ZSTD_e_continue : ZSTD_e_end);
            errno = ENOMEM;
            if (ZSTD_isError(left) || !write_all(to, output, out.pos))
                return false;
        } while (size ? in.pos < in.size : left);
    }
    return true;
}

/* The compressed file must be on the disk before the original is removed, so it is synced here. The
 * checksum lets zstd detect damage, which pcapng itself cannot. */
bool compress_file(struct finished_file *file, const _Atomic int64_t *until_ns) {
    struct directory directory = {.fd = file->directory_fd};
    char temporary[NAME_SIZE], name[NAME_SIZE];
    if (snprintf(name, sizeof name, "%s" COMPRESSED, file->name) >= NAME_SIZE) {
        errno = ENAMETOOLONG;
        return false;
    }
    int to = directory_create(&directory, name, temporary);
    if (to < 0)
        return false;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    errno = ENOMEM;
    bool done = context &&
                !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL)) &&
                !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) &&
                compress_into(context, file->fd, to, until_ns) && !fdatasync(to);
    int reason = errno;
    ZSTD_freeCCtx(context);
    if (!done) {
        unlinkat(file->directory_fd, temporary, 0);
        close(to);
        errno = reason;
        return false;
    }
    close(file->fd);
    file->fd = to;
    file->bytes = (uint64_t)lseek(to, 0, SEEK_CUR);
    strcpy(file->original, file->temporary);
    strcpy(file->temporary, temporary);
    strcpy(file->name, name);
    return true;
}

/* Decompresses part by part and compares each with the bytes at the same place of the plain file.
 * If `whole`, the frame must be complete and the plain file must end with it; else a truncated
 * frame is enough. `left` is the hint of the library; 0: the frame is complete. */
static bool is_same(ZSTD_DCtx *context, int compressed_fd, int plain_fd, bool whole) {
    struct stat info;
    ssize_t size;
    size_t left = 0;
    off_t from = 0, at = 0;
    for (; (size = pread(compressed_fd, input, sizeof input, from)) > 0; from += size) {
        ZSTD_inBuffer in = {input, (size_t)size, 0};
        ZSTD_outBuffer out;
        do {
            out = (ZSTD_outBuffer){output, sizeof output, 0};
            left = ZSTD_decompressStream(context, &out, &in);
            if (ZSTD_isError(left) || pread(plain_fd, plain, out.pos, at) != (ssize_t)out.pos ||
                memcmp(plain, output, out.pos) != 0)
                return false;
            at += (off_t)out.pos;
        } while (in.pos < in.size || (left && out.pos == out.size));
    }
    if (size < 0 || fstat(plain_fd, &info))
        return false;
    return whole ? from && !left && at == info.st_size : !from || at;
}

/* A comparison costs a full decompression, but it only runs in recovery, for files whose names
 * collide. */
bool is_compressed_copy(int compressed_fd, int plain_fd, bool whole) {
    ZSTD_DCtx *context = ZSTD_createDCtx();
    bool same = context && is_same(context, compressed_fd, plain_fd, whole);
    ZSTD_freeDCtx(context);
    return same;
}
