/* SPDX-License-Identifier: Apache-2.0 */
/* Places of a compressed file from which it can be decompressed, so that any byte is near one.
 *
 * A member (gzip) or frame (zstd, lz4) can be decompressed on its own. Within a gzip member a point
 * between two deflate blocks needs the 32 KiB before it, which a store keeps. The state of a zstd
 * or lz4 decoder cannot be saved: of a frame larger than a stretch, the store keeps the
 * decompressed bytes behind the first stretch, in pieces compressed on their own. */
#ifndef WIRETALE_SEEK_POINTS_H
#define WIRETALE_SEEK_POINTS_H

#include "base/error.h"
#include "input/decompressor.h"

#define SEEK_STRETCH 4u         /* spacings that are decompressed from a point at most */
#define SEEK_PIECE   (1u << 20) /* bytes of the stream that a piece holds at most */

enum seek_kind {
    SEEK_BOUNDARY, /* a member or frame begins */
    SEEK_BLOCK,    /* a deflate block begins; the store has its window */
    SEEK_COPY,     /* the store has the bytes up to the next point */
};

/* Native 64-bit numbers, as they are kept in a file. */
struct seek_point {
    uint64_t out;    /* offset in the decompressed stream */
    uint64_t in;     /* offset in the file */
    uint64_t kind;   /* enum seek_kind */
    uint64_t bits;   /* of the byte before `in`, for SEEK_BLOCK */
    uint64_t stored; /* place in the store, and bytes there */
    uint64_t stored_size;
};

struct seek_list {
    struct seek_point *points; /* ascending; the first is the begin of the stream */
    size_t count, room;
    int write_error; /* errno if the store could not be written, else 0 */
};

/* How many points there may be: `spacing` > 0 decompressed bytes between two at least, and twice
 * that if there would be `most` > 1 points. */
struct seek_bounds {
    uint64_t spacing;
    size_t most;
};

/* Reads a compressed file up to its end or damage, and appends to the file descriptor `store`.
 * Returns false with `error` or list->write_error set if it cannot; the points must be freed with
 * free() in each case. A file that is not compressed has no points. */
bool seek_points_make(struct seek_list *list, const char *path, int store,
                      const struct seek_bounds *bounds, struct error *error);

/* Decompresses `size` bytes from `offset` on into `out`; `*got` is less at the end of the stream or
 * at damage. Points and store may be damaged: no size in them is trusted. Returns false with
 * `error` set if the file or the store cannot be read. */
bool seek_points_read(const struct seek_list *list, const char *path, int store, uint64_t offset,
                      uint8_t *out, size_t size, size_t *got, struct error *error);

#endif
