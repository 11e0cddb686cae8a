/* SPDX-License-Identifier: Apache-2.0 */
#include "index/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/log.h"
#include "common/unnamed_file.h"

#define PIECE      (256u << 10)
#define ZSTD_MAGIC 0xFD2FB528u

static bool write_all(int fd, const uint8_t *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t more = write(fd, bytes + done, size - done);
        if (more < 0 && errno != EINTR)
            return false;
        done += more > 0 ? (size_t)more : 0;
    }
    return true;
}

/* Returns false if the bytes cannot be written; what is before damage is enough. */
static bool decompress(ZSTD_DCtx *context, int from, int to) {
    uint8_t *pieces = malloc(2 * PIECE);
    ssize_t size;
    bool done = pieces != NULL, is_damaged = false;
    for (off_t at = 0; done && !is_damaged && (size = pread(from, pieces, PIECE, at)) > 0;
         at += size) {
        ZSTD_inBuffer in = {pieces, (size_t)size, 0};
        ZSTD_outBuffer out = {pieces + PIECE, PIECE, 0};
        do {
            out.pos = 0;
            is_damaged = ZSTD_isError(ZSTD_decompressStream(context, &out, &in));
            done = write_all(to, pieces + PIECE, out.pos);
        } while (done && !is_damaged && (in.pos < in.size || out.pos == out.size));
    }
    free(pieces);
    return done;
}

int plain_bytes(int fd) {
    uint32_t magic = 0;
    if (pread(fd, &magic, sizeof magic, 0) != sizeof magic || magic != ZSTD_MAGIC)
        return fd;
    int to = unnamed_file("/tmp");
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (to < 0 || !context || !decompress(context, fd, to))
        fail(EXIT_IO, "cannot decompress into $TMPDIR: %s", strerror(errno));
    ZSTD_freeDCtx(context);
    close(fd);
    return to;
}
