/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of the file makes the points: a step of the decoder ends at each boundary and deflate
 * block, and the first such place that is a spacing or more behind the last point becomes one. If
 * none came for a whole stretch, all bytes up to the next point go to the store. If there are too
 * many points, the spacing doubles and those nearer to each other are dropped: a stretch of the old
 * points and the new spacing are shorter than a new stretch, so no byte is farther than a stretch
 * from its point. Dropped windows stay in the store.
 *
 * A read begins at the last point before its offset, and goes on at a copied piece if it meets one.
 */
#include "input/seek_points.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/arena.h"

#define FILE_BUFFER (128u << 10)
#define LEVEL       3 /* of zstd, for windows and pieces */

/* The file, of which compressed bytes are at hand, its decoder, and the store. */
struct source {
    int file, store;
    uint8_t *bytes;
    const uint8_t *cursor;
    size_t left;
    uint64_t end;              /* offset in the file behind those that were read */
    const struct codec *codec; /* NULL if it is not compressed */
    void *decoder;
    enum codec_state state;
    bool pending;   /* the decoder may hold more output */
    uint8_t *piece; /* SEEK_PIECE decompressed bytes */
    uint8_t *packed;
    size_t packed_room;
};

/* Returns the bytes read at an offset, up to `size`; fewer at the end of the file or on an error.
 */
static size_t read_at(int file, uint8_t *bytes, size_t size, uint64_t offset) {
    size_t got = 0;
    while (got < size && offset <= INT64_MAX - size) {
        ssize_t count = pread(file, bytes + got, size - got, (off_t)(offset + got));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        got += (size_t)count;
    }
    return got;
}

static bool open_source(struct source *source, const char *path, int store, struct error *error) {
    uint8_t magic[CODEC_MAGIC_MAX];
    *source = (struct source){.file = open(path, O_RDONLY | O_CLOEXEC), .store = store};
    if (source->file < 0)
        return error_set(error, ERROR_UNREADABLE, "%s: %s", path, strerror(errno));
    source->bytes = malloc(FILE_BUFFER);
    source->piece = malloc(SEEK_PIECE);
    source->packed_room = ZSTD_compressBound(SEEK_PIECE);
    source->packed = malloc(source->packed_room);
    if (!source->bytes || !source->piece || !source->packed)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    source->codec = codec_find(magic, read_at(source->file, magic, sizeof magic, 0));
    return true;
}

static void close_decoder(struct source *source) {
    if (source->decoder)
        source->codec->close(source->decoder);
    source->decoder = NULL;
}

static void close_source(struct source *source) {
    close_decoder(source);
    if (source->file >= 0)
        close(source->file);
    free(source->bytes);
    free(source->piece);
    free(source->packed);
}

static bool refill(struct source *source) {
    source->cursor = source->bytes;
    source->left = read_at(source->file, source->bytes, FILE_BUFFER, source->end);
    source->end += source->left;
    return source->left > 0;
}

/* Returns whether a step may give more bytes. */
static bool can_step(struct source *source) {
    return source->state != CODEC_FAILED && (source->pending || source->left || refill(source));
}

/* Runs one step of the decoder; returns the bytes that it gave. If the room is filled, the decoder
 * may hold more output. */
static size_t step(struct source *source, uint8_t *place, size_t room) {
    struct codec_buffers buffers = {source->cursor, source->left, place, room};
    const char *problem = NULL;
    source->state = source->codec->step(source->decoder, &buffers, &problem);
    source->cursor = buffers.in;
    source->left = buffers.in_size;
    source->pending = source->state == CODEC_WITHIN && !buffers.out_size;
    return (size_t)(buffers.out - place);
}

/* --- making ------------------------------------------------------------------------------------
 */

struct builder {
    struct seek_list *list;
    struct source source;
    uint64_t stored;  /* bytes in the store */
    uint64_t out;     /* decompressed bytes so far */
    uint64_t spacing; /* bytes */
    size_t most;
    size_t restarts;  /* points that are no copies */
    uint64_t restart; /* offset in the stream of the last of them */
    size_t copied;    /* bytes of the piece that are to be stored */
    struct codec_restart state;
};

/* Returns 0, or the errno of a failure. */
static int write_all(int out, const uint8_t *bytes, size_t size) {
    while (size) {
        ssize_t written = write(out, bytes, size);
        if (written >= 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Compresses bytes into the store, and notes their place in the point. */
static bool store_bytes(struct builder *b, struct seek_point *point, const uint8_t *bytes,
                        size_t size, struct error *error) {
    struct source *source = &b->source;
    size_t packed = ZSTD_compress(source->packed, source->packed_room, bytes, size, LEVEL);
    if (ZSTD_isError(packed))
        return error_set(error, ERROR_MEMORY, "out of memory");
    b->list->write_error = write_all(source->store, source->packed, packed);
    if (b->list->write_error)
        return false;
    point->stored = b->stored;
    point->stored_size = packed;
    b->stored += packed;
    return true;
}

static bool add_point(struct builder *b, const struct seek_point *point, struct error *error) {
    struct seek_list *list = b->list;
    if (!list_grow(&list->points, &list->room, list->count + 1, sizeof *list->points))
        return error_set(error, ERROR_MEMORY, "out of memory");
    list->points[list->count++] = *point;
    return true;
}

static bool store_piece(struct builder *b, struct error *error) {
    struct seek_point point = {.out = b->out - b->copied, .kind = SEEK_COPY};
    if (!b->copied)
        return true;
    if (!store_bytes(b, &point, b->source.piece, b->copied, error))
        return false;
    b->copied = 0;
    return add_point(b, &point, error);
}

/* Doubles the spacing and drops the points that are too near to each other. One behind a copied
 * piece stays, because its bytes would be at no other point; a stretch is before it, so there are
 * few such points. */
static void thin(struct builder *b) {
    struct seek_point *points = b->list->points;
    size_t kept = 1;
    b->spacing *= 2;
    b->restarts = 1;
    b->restart = points[0].out;
    for (size_t i = 1; i < b->list->count; i++) {
        bool copy = points[i].kind == SEEK_COPY;
        bool behind_copy = points[kept - 1].kind == SEEK_COPY;
        if (!copy && !behind_copy && points[i].out - b->restart < b->spacing)
            continue;
        if (!copy) {
            b->restart = points[i].out;
            b->restarts++;
        }
        points[kept++] = points[i];
    }
    b->list->count = kept;
}

static bool add_restart(struct builder *b, bool boundary, struct error *error) {
    struct seek_point point = {.out = b->out,
                               .in = b->source.end - b->source.left,
                               .kind = boundary ? SEEK_BOUNDARY : SEEK_BLOCK};
    if (!boundary) {
        point.bits = b->state.bits;
        if (!store_bytes(b, &point, b->state.window, b->state.window_size, error))
            return false;
    }
    if (!add_point(b, &point, error))
        return false;
    b->restart = b->out;
    if (++b->restarts >= b->most)
        thin(b);
    return true;
}

/* Decompresses once. The first stretch behind a point is only counted. */
static void decode_some(struct builder *b) {
    uint64_t copy_from = b->restart + SEEK_STRETCH * b->spacing;
    bool copying = b->out >= copy_from;
    size_t room = SEEK_PIECE - b->copied;
    if (!copying && copy_from - b->out < room)
        room = (size_t)(copy_from - b->out);
    size_t made = step(&b->source, b->source.piece + b->copied, room);
    b->out += made;
    if (copying)
        b->copied += made;
}

/* A boundary at the end of the file is no point. */
static bool can_restart(struct builder *b) {
    struct source *source = &b->source;
    if (source->state == CODEC_BOUNDARY)
        return source->left || refill(source);
    return source->state == CODEC_WITHIN && source->codec->between_blocks &&
           source->codec->between_blocks(source->decoder, &b->state);
}

static bool take_points(struct builder *b, struct error *error) {
    if (!add_restart(b, true, error))
        return false;
    while (can_step(&b->source)) {
        decode_some(b);
        bool boundary = b->source.state == CODEC_BOUNDARY;
        bool restarts = b->out - b->restart >= b->spacing && can_restart(b);
        if ((restarts || b->copied == SEEK_PIECE) && !store_piece(b, error))
            return false;
        if (restarts && !add_restart(b, boundary, error))
            return false;
    }
    return store_piece(b, error);
}

bool seek_points_make(struct seek_list *list, const char *path, int store,
                      const struct seek_bounds *bounds, struct error *error) {
    *list = (struct seek_list){0};
    struct builder *b = calloc(1, sizeof *b);
    if (!b)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    *b = (struct builder){.list = list, .spacing = bounds->spacing, .most = bounds->most};
    struct source *source = &b->source;
    bool made = open_source(source, path, store, error);
    if (made && source->codec) {
        source->decoder = source->codec->open();
        if (source->decoder && source->codec->stop_at_blocks)
            source->codec->stop_at_blocks(source->decoder);
        made = source->decoder ? take_points(b, error)
                               : error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    }
    close_source(source);
    free(b);
    return made;
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* Returns the last point at or before an offset; NULL if there is none. */
static const struct seek_point *point_before(const struct seek_list *list, uint64_t offset) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->points[middle].out <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &list->points[low - 1] : NULL;
}

/* Returns the bytes of a window or piece that the store has; 0 if they are damaged. */
static size_t stored_bytes(struct source *source, const struct seek_point *point, uint8_t *bytes,
                           size_t room) {
    if (point->stored_size > source->packed_room)
        return 0;
    size_t size = read_at(source->store, source->packed, (size_t)point->stored_size, point->stored);
    size_t count = ZSTD_decompress(bytes, room, source->packed, size);
    return ZSTD_isError(count) ? 0 : count;
}

/* Returns a decoder that begins at a point, NULL if it cannot. */
static void *decoder_at(struct source *source, const struct seek_point *point) {
    struct codec_restart *restart;
    source->left = 0;
    source->end = point->in;
    source->state = CODEC_BOUNDARY;
    source->pending = false;
    if (point->kind != SEEK_BLOCK)
        return source->codec->open();
    if (!source->codec->reopen || !(restart = calloc(1, sizeof *restart)))
        return NULL;
    restart->bits = (unsigned)(point->bits & 7);
    restart->window_size = stored_bytes(source, point, restart->window, sizeof restart->window);
    void *decoder = NULL;
    if (!restart->bits || read_at(source->file, &restart->byte, 1, point->in - 1) == 1)
        decoder = source->codec->reopen(restart);
    free(restart);
    return decoder;
}

/* Decompresses from a point up to the offset `end`, and keeps the bytes from `begin` on. Returns
 * their number. */
static size_t decode_range(struct source *source, const struct seek_point *point, uint64_t begin,
                           uint64_t end, uint8_t *out) {
    uint64_t at = point->out;
    source->decoder = decoder_at(source, point);
    while (source->decoder && at < end && can_step(source)) {
        bool before = at < begin;
        uint64_t left = (before ? begin : end) - at;
        size_t room = before && left > SEEK_PIECE ? SEEK_PIECE : (size_t)left;
        at += step(source, before ? source->piece : out + (at - begin), room);
    }
    bool decoded = source->decoder && at > begin;
    close_decoder(source);
    return decoded ? (size_t)(at - begin) : 0;
}

/* Returns bytes of the stream up to the end of a piece, or the begin of one. */
static size_t read_some(struct source *source, const struct seek_list *list, uint64_t offset,
                        uint8_t *out, size_t size) {
    const struct seek_point *point = point_before(list, offset);
    const struct seek_point *end = list->points + list->count;
    if (!point)
        return 0;
    if (point->kind != SEEK_COPY) {
        const struct seek_point *next = point + 1;
        while (next < end && next->kind != SEEK_COPY && next->out < offset + size)
            next++;
        uint64_t most = offset + size;
        if (next < end && next->kind == SEEK_COPY && next->out < most)
            most = next->out;
        return most > offset ? decode_range(source, point, offset, most, out) : 0;
    }
    size_t count = stored_bytes(source, point, source->piece, SEEK_PIECE);
    uint64_t skipped = offset - point->out;
    if (skipped >= count)
        return 0;
    count -= (size_t)skipped;
    if (count > size)
        count = size;
    memcpy(out, source->piece + skipped, count);
    return count;
}

bool seek_points_read(const struct seek_list *list, const char *path, int store, uint64_t offset,
                      uint8_t *out, size_t size, size_t *got, struct error *error) {
    struct source source;
    *got = 0;
    bool ready = open_source(&source, path, store, error);
    if (ready && !source.codec)
        ready = error_set(error, ERROR_UNREADABLE, "%s: expected a compressed file", path);
    while (ready && *got < size && offset <= UINT64_MAX - size) {
        size_t count = read_some(&source, list, offset + *got, out + *got, size - *got);
        if (!count)
            break;
        *got += count;
    }
    close_source(&source);
    return ready;
}
