/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file or of standard input, decompressed, seen through a window that moves on.
 *
 * The window is read(2) into, not mapped: mapped pages would count as the process's memory. It
 * grows only when a caller asks for more than it holds, and only as far as data really arrive.
 */
#ifndef WIRETALE_INPUT_STREAM_H
#define WIRETALE_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/decompressor.h"

#define INPUT_WINDOW     (256u << 10) /* bytes; stays in a core's second-level cache */
#define INPUT_ERROR_MAX  160
#define INPUT_WAIT_MS    200         /* a pipe without data gives the caller a turn this often */
#define INPUT_FIRST_READ (16u << 10) /* a file that is only looked into is not read far */

enum input_state {
    INPUT_READY,
    INPUT_ENDED,       /* fewer bytes are left than asked for, and no more will come */
    INPUT_WAITING,     /* a pipe has no data yet */
    INPUT_INTERRUPTED, /* a signal arrived */
    INPUT_FAILED,      /* `error` says why */
};

struct input_stream {
    const uint8_t *cursor, *end; /* the unread bytes in the window; the reader moves the cursor */
    uint64_t end_offset;         /* of `end` in the decompressed stream */
    uint8_t *window;
    size_t capacity;
    int file;
    bool owns_file, regular;
    uint64_t bytes_read;  /* as they lie on disk */
    uint64_t bytes_total; /* 0 unknown */
    size_t read_size;
    enum input_state last; /* INPUT_ENDED or INPUT_FAILED once the source is used up */
    const struct codec *codec;
    void *decoder;
    enum codec_state codec_state;
    bool output_pending; /* the decoder filled the window and may hold more */
    uint8_t *compressed;
    const uint8_t *compressed_cursor;
    size_t compressed_size;
    char error[INPUT_ERROR_MAX];
};

/* Opens a path ("-" is standard input) and tells its compression; INPUT_READY, or INPUT_FAILED or
 * INPUT_INTERRUPTED. A pipe is waited for. Close it in any case. */
enum input_state input_stream_open(struct input_stream *stream, const char *path);
void input_stream_close(struct input_stream *stream);

/* Makes at least `need` bytes available at the cursor. Pointers into the window are invalid then.
 */
enum input_state input_stream_fill(struct input_stream *stream, size_t need);

static inline size_t input_stream_available(const struct input_stream *stream) {
    return (size_t)(stream->end - stream->cursor);
}

static inline uint64_t input_stream_offset(const struct input_stream *stream) {
    return stream->end_offset - input_stream_available(stream);
}

#endif
