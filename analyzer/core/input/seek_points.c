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

/* The compressed bytes of the file. */
struct source {
    int file;
    uint8_t *bytes;
    const uint8_t *cursor;
    size_t left;
    uint64_t end; /* offset in the file behind those that were read */
};

static bool open_source(struct source *source, const char *path, struct error *error) {
    *source = (struct source){.file = open(path, O_RDONLY | O_CLOEXEC)};
    if (source->file < 0)
        return error_set(error, ERROR_UNREADABLE, "%s: %s", path, strerror(errno));
    source->bytes = malloc(FILE_BUFFER);
    return source->bytes || error_set(error, ERROR_MEMORY, "%s: out of memory", path);
}

static void close_source(struct source *source) {
    if (source->file >= 0)
        close(source->file);
    free(source->bytes);
}

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

static bool refill(struct source *source) {
    source->cursor = source->bytes;
    source->left = read_at(source->file, source->bytes, FILE_BUFFER, source->end);
    source->end += source->left;
    return source->left > 0;
}

static const struct codec *codec_of(const struct source *source) {
    uint8_t magic[CODEC_MAGIC_MAX];
    return codec_find(magic, read_at(source->file, magic, sizeof magic, 0));
}

/* --- making ------------------------------------------------------------------------------------
 */

struct builder {
    struct seek_list *list;
    struct source source;
    const struct codec *codec;
    void *decoder;
    int store;
    uint64_t stored;  /* bytes in the store */
    uint64_t out;     /* decompressed bytes so far */
    uint64_t spacing; /* bytes */
    size_t most;
    size_t restarts;  /* points that are no copies */
    uint64_t restart; /* offset in the stream of the last of them */
    uint8_t *piece;   /* decompressed bytes, of which `copied` are to be stored */
    size_t copied;
    uint8_t *packed;
    size_t packed_room;
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
    size_t packed = ZSTD_compress(b->packed, b->packed_room, bytes, size, LEVEL);
    if (ZSTD_isError(packed))
        return error_set(error, ERROR_MEMORY, "out of memory");
    b->list->write_error = write_all(b->store, b->packed, packed);
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
    if (!store_bytes(b, &point, b->piece, b->copied, error))
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

/* Runs one step of the decoder. The first stretch behind a point is only counted. If the room is
 * filled, the decoder may hold more output. */
static enum codec_state decode_some(struct builder *b, bool *pending) {
    uint64_t copy_from = b->restart + SEEK_STRETCH * b->spacing;
    bool copying = b->out >= copy_from;
    size_t room = SEEK_PIECE - b->copied;
    if (!copying && copy_from - b->out < room)
        room = (size_t)(copy_from - b->out);
    uint8_t *place = b->piece + b->copied;
    struct codec_buffers buffers = {b->source.cursor, b->source.left, place, room};
    const char *problem = NULL;
    enum codec_state state = b->codec->step(b->decoder, &buffers, &problem);
    b->source.cursor = buffers.in;
    b->source.left = buffers.in_size;
    size_t made = (size_t)(buffers.out - place);
    b->out += made;
    if (copying)
        b->copied += made;
    *pending = state == CODEC_WITHIN && made == room;
    return state;
}

/* A boundary at the end of the file is no point. */
static bool can_restart(struct builder *b, enum codec_state state) {
    if (state == CODEC_BOUNDARY)
        return b->source.left || refill(&b->source);
    return state == CODEC_WITHIN && b->codec->between_blocks &&
           b->codec->between_blocks(b->decoder, &b->state);
}

static bool take_points(struct builder *b, struct error *error) {
    enum codec_state state = CODEC_BOUNDARY;
    bool pending = false;
    if (!add_restart(b, true, error))
        return false;
    while (state != CODEC_FAILED && (pending || b->source.left || refill(&b->source))) {
        state = decode_some(b, &pending);
        bool boundary = state == CODEC_BOUNDARY;
        bool restarts = b->out - b->restart >= b->spacing && can_restart(b, state);
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
    *b = (struct builder){
        .list = list, .store = store, .spacing = bounds->spacing, .most = bounds->most};
    bool made = open_source(&b->source, path, error);
    b->codec = made ? codec_of(&b->source) : NULL;
    if (b->codec) {
        b->packed_room = ZSTD_compressBound(SEEK_PIECE);
        b->decoder = b->codec->open();
        b->piece = malloc(SEEK_PIECE);
        b->packed = malloc(b->packed_room);
        made = b->decoder && b->piece && b->packed;
        if (!made)
            error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    }
    if (made && b->codec) {
        if (b->codec->stop_at_blocks)
            b->codec->stop_at_blocks(b->decoder);
        made = take_points(b, error);
    }
    if (b->decoder)
        b->codec->close(b->decoder);
    close_source(&b->source);
    free(b->piece);
    free(b->packed);
    free(b);
    return made;
}

/* --- reading -----------------------------------------------------------------------------------
 */

struct seek {
    const struct seek_list *list;
    struct source source;
    const struct codec *codec;
    int store;
    uint8_t *room; /* SEEK_PIECE bytes: of a piece, or those before the offset */
    uint8_t *packed;
    size_t packed_room;
};

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
static size_t stored_bytes(struct seek *s, const struct seek_point *point, uint8_t *bytes,
                           size_t room) {
    if (point->stored_size > s->packed_room)
        return 0;
    size_t size = read_at(s->store, s->packed, (size_t)point->stored_size, point->stored);
    size_t count = ZSTD_decompress(bytes, room, s->packed, size);
    return ZSTD_isError(count) ? 0 : count;
}

static void *open_decoder(struct seek *s, const struct seek_point *point) {
    struct codec_restart *restart;
    s->source.left = 0;
    s->source.end = point->in;
    if (point->kind != SEEK_BLOCK)
        return s->codec->open();
    if (!s->codec->reopen || !(restart = calloc(1, sizeof *restart)))
        return NULL;
    restart->bits = (unsigned)(point->bits & 7);
    restart->window_size = stored_bytes(s, point, restart->window, sizeof restart->window);
    void *decoder = NULL;
    if (!restart->bits || read_at(s->source.file, &restart->byte, 1, point->in - 1) == 1)
        decoder = s->codec->reopen(restart);
    free(restart);
    return decoder;
}

/* Decompresses from a point up to the offset `end`, and keeps the bytes from `begin` on. Returns
 * their number. */
static size_t decode_range(struct seek *s, const struct seek_point *point, uint64_t begin,
                           uint64_t end, uint8_t *out) {
    uint64_t at = point->out;
    const char *problem = NULL;
    enum codec_state state = CODEC_BOUNDARY;
    bool pending = false;
    void *decoder = open_decoder(s, point);
    if (!decoder)
        return 0;
    while (at < end && state != CODEC_FAILED && (pending || s->source.left || refill(&s->source))) {
        bool before = at < begin;
        uint64_t left = (before ? begin : end) - at;
        size_t room = before && left > SEEK_PIECE ? SEEK_PIECE : (size_t)left;
        uint8_t *place = before ? s->room : out + (at - begin);
        struct codec_buffers buffers = {s->source.cursor, s->source.left, place, room};
        state = s->codec->step(decoder, &buffers, &problem);
        s->source.cursor = buffers.in;
        s->source.left = buffers.in_size;
        at += (uint64_t)(buffers.out - place);
        pending = state == CODEC_WITHIN && !buffers.out_size;
    }
    s->codec->close(decoder);
    return at > begin ? (size_t)(at - begin) : 0;
}

/* Returns bytes of the stream up to the end of a piece, or the begin of one. */
static size_t read_some(struct seek *s, uint64_t offset, uint8_t *out, size_t size) {
    const struct seek_point *point = point_before(s->list, offset);
    const struct seek_point *end = s->list->points + s->list->count;
    if (!point)
        return 0;
    if (point->kind != SEEK_COPY) {
        const struct seek_point *next = point + 1;
        while (next < end && next->kind != SEEK_COPY && next->out < offset + size)
            next++;
        uint64_t most = offset + size;
        if (next < end && next->kind == SEEK_COPY && next->out < most)
            most = next->out;
        return most > offset ? decode_range(s, point, offset, most, out) : 0;
    }
    size_t count = stored_bytes(s, point, s->room, SEEK_PIECE);
    uint64_t skipped = offset - point->out;
    if (skipped >= count)
        return 0;
    count -= (size_t)skipped;
    if (count > size)
        count = size;
    memcpy(out, s->room + skipped, count);
    return count;
}

bool seek_points_read(const struct seek_list *list, const char *path, int store, uint64_t offset,
                      uint8_t *out, size_t size, size_t *got, struct error *error) {
    struct seek s = {.list = list, .store = store, .packed_room = ZSTD_compressBound(SEEK_PIECE)};
    *got = 0;
    bool ready = open_source(&s.source, path, error);
    if (ready) {
        s.codec = codec_of(&s.source);
        s.room = malloc(SEEK_PIECE);
        s.packed = malloc(s.packed_room);
        if (!s.codec)
            ready = error_set(error, ERROR_UNREADABLE, "%s: expected a compressed file", path);
        else if (!s.room || !s.packed)
            ready = error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    }
    while (ready && *got < size && offset <= UINT64_MAX - size) {
        size_t count = read_some(&s, offset + *got, out + *got, size - *got);
        if (!count)
            break;
        *got += count;
    }
    close_source(&s.source);
    free(s.room);
    free(s.packed);
    return ready;
}
