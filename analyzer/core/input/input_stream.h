/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file or of standard input, decompressed, through a moving window.
 *
 * The window is filled by read(2) instead of mapped, because mapped pages count as memory of the
 * process, and pipes cannot be mapped. It grows only if a caller needs more than it holds, and
 * only as far as data arrive. */
#ifndef WIRETALE_INPUT_STREAM_H
#define WIRETALE_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/decompressor.h"

#define INPUT_WINDOW     (256u << 10) /* bytes; stays in a core's second-level cache */
#define INPUT_ERROR_MAX  160
#define INPUT_WAIT_MS    200         /* ms; a pipe without data returns to the caller this often */
#define INPUT_FIRST_READ (16u << 10) /* bytes of a file that is only probed */

enum input_state {
    INPUT_READY,
    INPUT_ENDED,       /* fewer bytes are left than needed, and no more will come */
    INPUT_WAITING,     /* a pipe has no data yet */
    INPUT_INTERRUPTED, /* a signal arrived */
    INPUT_FAILED,      /* `error` has the reason */
};

struct input_stream {
    const uint8_t *cursor, *end; /* the unread bytes in the window; the reader moves the cursor */
    uint64_t end_offset;         /* of `end` in the decompressed stream */
    uint8_t *window;
    size_t capacity;
    const char *path;
    int file;               /* -1 while the stream is parked */
    uint64_t device, inode; /* of a regular file */
    bool owns_file, regular;
    uint64_t bytes_read;  /* bytes read from disk (compressed) */
    uint64_t bytes_total; /* 0 if unknown */
    size_t read_size;
    enum input_state last; /* INPUT_ENDED or INPUT_FAILED once the source is exhausted */
    const struct codec *codec;
    void *decoder;
    enum codec_state codec_state;
    bool output_pending; /* the decoder filled the window and may hold more */
    uint8_t *compressed;
    const uint8_t *compressed_cursor;
    size_t compressed_size, compressed_room;
    char error[INPUT_ERROR_MAX];
};

/* Opens a path ("-" is standard input), which must live as long as the stream, and detects its
 * compression. The window has `most` bytes, or fewer if the file is smaller. Waits for a pipe.
 * Returns INPUT_READY, INPUT_FAILED or INPUT_INTERRUPTED; the stream must be closed in each case.
 */
enum input_state input_stream_open(struct input_stream *stream, const char *path, size_t most);
void input_stream_close(struct input_stream *stream);

/* Makes at least `need` bytes available at the cursor and returns INPUT_READY; otherwise the
 * reason, and the bytes that are there stay available. After INPUT_WAITING or INPUT_INTERRUPTED the
 * caller should try again. Invalidates pointers into the window. */
enum input_state input_stream_fill(struct input_stream *stream, size_t need);

/* Reads once behind the bytes at hand, so that pointers into the window stay valid. Returns
 * INPUT_READY if it may be called again, INPUT_WAITING if only a fill can read further. */
enum input_state input_stream_extend(struct input_stream *stream);

/* Closes the descriptor of a regular file until the next read. */
void input_stream_park(struct input_stream *stream);

/* Returns the bytes that can be read at the cursor without a fill. */
static inline size_t input_stream_available(const struct input_stream *stream) {
    return (size_t)(stream->end - stream->cursor);
}

/* Returns the place of the cursor in the decompressed stream, in bytes; errors name it. */
static inline uint64_t input_stream_offset(const struct input_stream *stream) {
    return stream->end_offset - input_stream_available(stream);
}

#endif
