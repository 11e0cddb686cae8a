/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a source through a moving window.
 *
 * The window is filled by read(2) instead of mapped, because mapped pages count as memory of the
 * process, and pipes cannot be mapped. It grows only if a caller needs more than it holds, and
 * only as far as data arrive. */
#ifndef WIRETALE_INPUT_STREAM_H
#define WIRETALE_INPUT_STREAM_H

#include "input/byte_source.h"

#define INPUT_WINDOW (256u << 10) /* bytes; stays in a core's second-level cache */

struct read_ahead;
struct ahead_stream;

struct input_stream {
    const uint8_t *cursor, *end; /* the unread bytes in the window; the reader moves the cursor */
    uint64_t end_offset;         /* of `end` in the decompressed stream */
    uint8_t *window;
    size_t capacity;
    size_t chunk;          /* bytes by which a compressed file is read */
    uint64_t bytes_read;   /* of the source, up to `end` or further (compressed) */
    enum input_state last; /* INPUT_ENDED or INPUT_FAILED once the source is exhausted */
    const char *error;     /* why, after INPUT_FAILED */
    struct byte_source source;
    struct ahead_stream *ahead; /* another thread may read the source */
};

/* Opens a path ("-" is standard input), which must live as long as the stream, and detects its
 * compression. The window has `most` bytes, or fewer if the file is smaller. Waits for a pipe.
 * Returns INPUT_READY, INPUT_FAILED or INPUT_INTERRUPTED; the stream must be closed in each case.
 */
enum input_state input_stream_open(struct input_stream *stream, const char *path, size_t most);
void input_stream_close(struct input_stream *stream);

/* Lets threads decompress the file ahead of the reader from now on, if it is regular, compressed
 * and large enough to be worth it; the stream must not move in memory any more. Returns whether
 * they will. The bytes that a fill makes available do not depend on it. */
bool input_stream_read_ahead(struct input_stream *stream, struct read_ahead *threads);

/* Makes at least `need` bytes available at the cursor and returns INPUT_READY; otherwise the
 * reason, and the bytes that are there stay available. After INPUT_WAITING or INPUT_INTERRUPTED the
 * caller should try again. Invalidates pointers into the window. */
enum input_state input_stream_fill(struct input_stream *stream, size_t need);

/* Reads once behind the bytes at hand, so that pointers into the window stay valid. Returns
 * INPUT_READY if it may be called again, INPUT_WAITING if only a fill can read further. */
enum input_state input_stream_extend(struct input_stream *stream);

/* Exchanges the window for one of the same size, which has the unread bytes: pointers into the old
 * one stay valid. `*window` has `*size` bytes and may be made anew. Returns false without memory.
 */
bool input_stream_exchange(struct input_stream *stream, uint8_t **window, size_t *size);

/* Closes the descriptor of a regular file until the next read, unless another thread may read. */
void input_stream_park(struct input_stream *stream);

/* Returns whether the stream has the descriptor of a regular file that can be parked. */
static inline bool input_stream_has_descriptor(const struct input_stream *stream) {
    return !stream->ahead && stream->source.regular && stream->source.file >= 0;
}

/* Returns the bytes that can be read at the cursor without a fill. */
static inline size_t input_stream_available(const struct input_stream *stream) {
    return (size_t)(stream->end - stream->cursor);
}

/* Returns the place of the cursor in the decompressed stream, in bytes; errors name it. */
static inline uint64_t input_stream_offset(const struct input_stream *stream) {
    return stream->end_offset - input_stream_available(stream);
}

#endif
