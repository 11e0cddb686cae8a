/* SPDX-License-Identifier: Apache-2.0 */
#include "file_compress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

bool file_compress(struct finished *file) {
    char temporary[NAME_ROOM], name[NAME_ROOM];
    if (snprintf(name, sizeof name, "%s" COMPRESSED, file->name) >= NAME_ROOM ||
        snprintf(temporary, sizeof temporary, ".%s" TEMPORARY, name) >= NAME_ROOM) {
        errno = ENAMETOOLONG;
        return false;
    }
    int to = openat(file->folder_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0640);
    if (to < 0 || flock(to, LOCK_EX | LOCK_NB))
        return false;
    uint64_t written;
    if (!compress_into(file->fd, to, &written) || fdatasync(to)) {
        int reason = errno;
        unlinkat(file->folder_fd, temporary, 0);
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
