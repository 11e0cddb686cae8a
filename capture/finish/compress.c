/* SPDX-License-Identifier: Apache-2.0 */
/* zstd compression of finished files. The compressed file is written beside the uncompressed one,
 * which is removed only after the compressed one is published. After a kill between these steps
 * both exist; recovery compares them byte for byte and removes one (recover.c). */
#include "finish/finished_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL       3
#define INPUT_BYTES (256u << 10)

struct compression {
    ZSTD_CCtx *context;
    uint8_t *input, *output;
    size_t output_room;
    int from, to;
    uint64_t written;
};

/* Writes the output buffer. A write that is interrupted or short is continued. */
static bool write_all(struct compression *work, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t more = write(work->to, work->output + done, size - done);
        if (more < 0 && errno != EINTR)
            return false;
        done += more > 0 ? (size_t)more : 0;
    }
    work->written += size;
    return true;
}

/* Compresses one buffer of input. With ZSTD_e_end it must be called until the library has no output
 * left. */
static bool compress_part(struct compression *work, size_t size, ZSTD_EndDirective end) {
    ZSTD_inBuffer in = {work->input, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {work->output, work->output_room, 0};
        left = ZSTD_compressStream2(work->context, &out, &in, end);
        if (ZSTD_isError(left)) {
            errno = ENOMEM;
            return false;
        }
        if (!write_all(work, out.pos))
            return false;
    } while (end == ZSTD_e_end ? left : in.pos < in.size);
    return true;
}

/* Reads by offset, because the file was also written by offset. */
static bool compress_all(struct compression *work) {
    off_t at = 0;
    for (;;) {
        ssize_t size = pread(work->from, work->input, INPUT_BYTES, at);
        if (size < 0)
            return false;
        if (!compress_part(work, (size_t)size, size ? ZSTD_e_continue : ZSTD_e_end))
            return false;
        if (!size)
            return true;
        at += size;
    }
}

/* The checksum lets zstd detect damage, which pcapng itself cannot. */
static bool compress_into(int from, int to, uint64_t *written) {
    struct compression work = {.context = ZSTD_createCCtx(),
                               .input = malloc(INPUT_BYTES),
                               .output_room = ZSTD_CStreamOutSize(),
                               .from = from,
                               .to = to};
    work.output = malloc(work.output_room);
    bool done = false;
    errno = ENOMEM;
    if (work.context && work.input && work.output) {
        ZSTD_CCtx_setParameter(work.context, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(work.context, ZSTD_c_checksumFlag, 1);
        done = compress_all(&work);
    }
    int reason = errno;
    ZSTD_freeCCtx(work.context);
    free(work.input);
    free(work.output);
    *written = work.written;
    errno = reason;
    return done;
}

/* The compressed file must be on the disk before the original is removed, so it is synced here. */
bool compress_file(struct finished_file *file) {
    struct directory directory = {.fd = file->directory_fd};
    char temporary[NAME_SIZE], name[NAME_SIZE];
    if (snprintf(name, sizeof name, "%s" COMPRESSED, file->name) >= NAME_SIZE) {
        errno = ENAMETOOLONG;
        return false;
    }
    int to = directory_create(&directory, name, temporary);
    if (to < 0)
        return false;
    uint64_t written;
    if (!compress_into(file->fd, to, &written) || fdatasync(to)) {
        int reason = errno;
        unlinkat(file->directory_fd, temporary, 0);
        close(to);
        errno = reason;
        return false;
    }
    close(file->fd);
    file->fd = to;
    file->bytes = written;
    strcpy(file->original, file->temporary);
    strcpy(file->temporary, temporary);
    strcpy(file->name, name);
    return true;
}

/* State of a comparison; the buffers are allocated once for the file. */
struct comparison {
    ZSTD_DCtx *context;
    uint8_t *input, *output, *plain;
    size_t output_room;
    int compressed_fd, plain_fd;
    off_t at;    /* bytes of the plain file that are equal so far */
    size_t left; /* hint of the library; 0: the frame is complete */
};

/* Decompresses a part and compares it with the bytes at the same place of the plain file. */
static bool is_same_part(struct comparison *work, size_t size) {
    ZSTD_inBuffer in = {work->input, size, 0};
    ZSTD_outBuffer out;
    do {
        out = (ZSTD_outBuffer){work->output, work->output_room, 0};
        work->left = ZSTD_decompressStream(work->context, &out, &in);
        if (ZSTD_isError(work->left) ||
            pread(work->plain_fd, work->plain, out.pos, work->at) != (ssize_t)out.pos ||
            memcmp(work->plain, work->output, out.pos) != 0)
            return false;
        work->at += (off_t)out.pos;
    } while (in.pos < in.size || (work->left && out.pos == out.size));
    return true;
}

/* Compares the whole compressed file. If `whole`, the frame must be complete and the plain file
 * must end with it; else a truncated frame is enough. */
static bool is_same(struct comparison *work, bool whole) {
    struct stat plain;
    ssize_t size;
    off_t at = 0;
    while ((size = pread(work->compressed_fd, work->input, INPUT_BYTES, at)) > 0) {
        if (!is_same_part(work, (size_t)size))
            return false;
        at += size;
    }
    if (size < 0 || fstat(work->plain_fd, &plain))
        return false;
    return whole ? at && !work->left && work->at == plain.st_size : !at || work->at;
}

/* A comparison costs a full decompression, but it only runs in recovery, for files whose names
 * collide. */
bool is_compressed_copy(int compressed_fd, int plain_fd, bool whole) {
    struct comparison work = {.context = ZSTD_createDCtx(),
                              .input = malloc(INPUT_BYTES),
                              .output_room = ZSTD_DStreamOutSize(),
                              .compressed_fd = compressed_fd,
                              .plain_fd = plain_fd};
    work.output = malloc(work.output_room);
    work.plain = malloc(work.output_room);
    bool same = work.context && work.input && work.output && work.plain && is_same(&work, whole);
    ZSTD_freeDCtx(work.context);
    free(work.input);
    free(work.output);
    free(work.plain);
    return same;
}
