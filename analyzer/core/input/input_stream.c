/* SPDX-License-Identifier: Apache-2.0 */
/* Plain files are read directly into the window, compressed ones through a second buffer.
 *
 * The window holds the unread bytes [cursor, end). A fill moves them to the front, reads until
 * `need` bytes are there, and doubles the window only if it is full. The move is cheap, because a
 * reader leaves less than a record. Reads begin at 16 kB and double up to the window, so that a
 * file that is only probed costs little; the window of a small file is as small as the file. `last`
 * keeps the end or the failure: later fills return it without another read. A parked stream has no
 * descriptor; its next read opens the file again and continues at the same byte. */
#include "input/input_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPRESSED_BUFFER (128u << 10)
#define WINDOW_SPARE      64u /* bytes behind a small file, so that its end is found without a move */

/* Sets the error, `problem: why` or `problem` alone, and makes the failure final. */
static enum input_state fail(struct input_stream *stream, const char *problem, const char *why) {
    snprintf(stream->error, sizeof stream->error, "%s%s%s", problem, why ? ": " : "",
             why ? why : "");
    return stream->last = INPUT_FAILED;
}

/* Waits at most INPUT_WAIT_MS, so that the caller can handle signals and show progress. EINTR goes
 * to the caller, because a signal handler of Python runs only there. */
static enum input_state wait_for_data(const struct input_stream *stream) {
    struct pollfd waited = {.fd = stream->file, .events = POLLIN};
    int ready = poll(&waited, 1, INPUT_WAIT_MS);
    if (ready > 0)
        return INPUT_READY;
    if (ready == 0)
        return INPUT_WAITING;
    return errno == EINTR ? INPUT_INTERRUPTED : INPUT_READY; /* read() reports the error */
}

/* Opens a parked file where its bytes were left. Another file under its name is an error, because
 * its bytes would continue the first one. */
static enum input_state unpark(struct input_stream *stream) {
    struct stat status;
    stream->file = open(stream->path, O_RDONLY | O_CLOEXEC);
    if (stream->file < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (stream->file < 0 || fstat(stream->file, &status) < 0)
        return fail(stream, "could not be opened again", strerror(errno));
    if (status.st_dev != stream->device || status.st_ino != stream->inode)
        return fail(stream, "was replaced by another file while it was read", NULL);
    if (lseek(stream->file, (off_t)stream->bytes_read, SEEK_SET) < 0)
        return fail(stream, "could not be read further", strerror(errno));
    return INPUT_READY;
}

/* Calls read(2) once. A pipe is polled first, so that a signal just before does not block the
 * read. */
static enum input_state read_some(struct input_stream *stream, uint8_t *place, size_t room,
                                  size_t *got) {
    *got = 0;
    enum input_state state = stream->file < 0  ? unpark(stream)
                             : stream->regular ? INPUT_READY
                                               : wait_for_data(stream);
    if (state != INPUT_READY)
        return state;
    size_t size = room < stream->read_size ? room : stream->read_size;
    ssize_t count = read(stream->file, place, size);
    if (count < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return INPUT_WAITING;
    if (count < 0)
        return fail(stream, "reading failed", strerror(errno));
    if (count == 0)
        return stream->last = INPUT_ENDED;
    if (stream->read_size < stream->capacity)
        stream->read_size *= 2;
    *got = (size_t)count;
    stream->bytes_read += *got;
    return INPUT_READY;
}

/* Reads the next compressed bytes. The end of the file is the end of the stream only at a boundary
 * of members or frames. */
static enum input_state fill_compressed(struct input_stream *stream) {
    size_t got;
    enum input_state state = read_some(stream, stream->compressed, stream->compressed_room, &got);
    stream->compressed_cursor = stream->compressed;
    stream->compressed_size = got;
    if (state != INPUT_ENDED || stream->codec_state == CODEC_BOUNDARY)
        return state;
    fail(stream, stream->codec->name, "the compressed stream is cut short");
    return INPUT_FAILED;
}

static size_t window_room(const struct input_stream *stream) {
    return (size_t)(stream->window + stream->capacity - stream->end);
}

/* Runs one step. If the decoder filled the window it may hold more output, so no input is awaited
 * before the next step. */
static enum input_state decompress_some(struct input_stream *stream) {
    if (!stream->compressed_size && !stream->output_pending) {
        enum input_state state = fill_compressed(stream);
        if (state != INPUT_READY)
            return state;
    }
    struct codec_buffers buffers = {stream->compressed_cursor, stream->compressed_size,
                                    stream->window + (stream->end - stream->window),
                                    window_room(stream)};
    const char *error = NULL;
    stream->codec_state = stream->codec->step(stream->decoder, &buffers, &error);
    stream->compressed_cursor = buffers.in;
    stream->compressed_size = buffers.in_size;
    stream->end_offset += (uint64_t)(buffers.out - stream->end);
    stream->end = buffers.out;
    stream->output_pending = !buffers.out_size && stream->codec_state == CODEC_WITHIN;
    return error ? fail(stream, stream->codec->name, error) : INPUT_READY;
}

/* `end` is const for readers of the stream; the sum makes it writable. */
static enum input_state read_plain(struct input_stream *stream) {
    size_t got;
    uint8_t *place = stream->window + (stream->end - stream->window);
    enum input_state state = read_some(stream, place, window_room(stream), &got);
    stream->end += got;
    stream->end_offset += got;
    return state;
}

static void move_to_front(struct input_stream *stream) {
    size_t left = input_stream_available(stream);
    if (stream->cursor == stream->window)
        return;
    memmove(stream->window, stream->cursor, left);
    stream->cursor = stream->window;
    stream->end = stream->window + left;
}

/* The cursor must be at the start of the window. realloc() keeps the old window if it fails, so the
 * stream stays valid. */
static bool grow_window(struct input_stream *stream) {
    size_t left = input_stream_available(stream);
    uint8_t *wider = realloc(stream->window, stream->capacity * 2);
    if (!wider)
        return false;
    stream->window = wider;
    stream->capacity *= 2;
    stream->cursor = wider;
    stream->end = wider + left;
    return true;
}

enum input_state input_stream_fill(struct input_stream *stream, size_t need) {
    if (input_stream_available(stream) >= need)
        return INPUT_READY;
    move_to_front(stream);
    /* An end is reported only if fewer than `need` bytes are left. */
    while (input_stream_available(stream) < need) {
        if (stream->last != INPUT_READY)
            return stream->last;
        if (!window_room(stream) && !grow_window(stream))
            return fail(stream, "out of memory", NULL);
        enum input_state state = stream->codec ? decompress_some(stream) : read_plain(stream);
        if (state == INPUT_WAITING || state == INPUT_INTERRUPTED)
            return state;
    }
    return INPUT_READY;
}

enum input_state input_stream_extend(struct input_stream *stream) {
    if (stream->last != INPUT_READY)
        return stream->last;
    if (!stream->regular || !window_room(stream))
        return INPUT_WAITING;
    return stream->codec ? decompress_some(stream) : read_plain(stream);
}

void input_stream_park(struct input_stream *stream) {
    if (!stream->regular || !stream->owns_file || stream->file < 0)
        return;
    close(stream->file);
    stream->file = -1;
}

/* Standard input is not closed and may be a file: then its size is known. Read-ahead is a hint, so
 * its failure does not matter. */
static enum input_state open_file(struct input_stream *stream, const char *path) {
    stream->owns_file = strcmp(path, "-") != 0;
    stream->file = stream->owns_file ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (stream->file < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (stream->file < 0)
        return fail(stream, strerror(errno), NULL);
    struct stat status;
    if (fstat(stream->file, &status) < 0)
        return fail(stream, strerror(errno), NULL);
    if (S_ISDIR(status.st_mode))
        return fail(stream, "expected a file, found a folder", NULL);
    stream->regular = S_ISREG(status.st_mode);
    if (!stream->regular)
        return INPUT_READY;
    stream->bytes_total = (uint64_t)status.st_size;
    stream->device = status.st_dev;
    stream->inode = status.st_ino;
    (void)posix_fadvise(stream->file, 0, 0, POSIX_FADV_SEQUENTIAL);
    return INPUT_READY;
}

/* Returns the lesser of a size and `most`, which counts alone if the size of the file is unknown:
 * files of /proc have size 0. */
static size_t size_within(const struct input_stream *stream, uint64_t size, size_t most) {
    return stream->regular && stream->bytes_total && size < most ? (size_t)size : most;
}

static bool make_window(struct input_stream *stream, size_t capacity) {
    uint8_t *window = realloc(stream->window, capacity);
    if (!window)
        return false;
    stream->window = window;
    stream->capacity = capacity;
    stream->cursor = stream->end = window;
    return true;
}

/* The bytes that were read to detect the compression are the first input of the decoder. Data grow
 * about four times; a window that turns out too small grows. */
static enum input_state start_decoder(struct input_stream *stream, size_t most) {
    size_t left = input_stream_available(stream);
    stream->codec = codec_find(stream->cursor, left);
    if (!stream->codec)
        return INPUT_READY;
    size_t room = size_within(stream, stream->bytes_total, COMPRESSED_BUFFER);
    size_t window = size_within(stream, 4 * stream->bytes_total, most);
    stream->decoder = stream->codec->open();
    stream->compressed_room = room > left ? room : left;
    stream->compressed = malloc(stream->compressed_room);
    if (!stream->decoder || !stream->compressed)
        return fail(stream, "out of memory", NULL);
    memcpy(stream->compressed, stream->cursor, left);
    stream->compressed_cursor = stream->compressed;
    stream->compressed_size = left;
    stream->codec_state = CODEC_WITHIN;
    if (!make_window(stream, window > stream->capacity ? window : stream->capacity))
        return fail(stream, "out of memory", NULL);
    stream->end_offset = 0;
    /* A short file may have ended while it was probed; its end is found again after the decoder has
     * used these bytes. */
    stream->last = INPUT_READY;
    return INPUT_READY;
}

enum input_state input_stream_open(struct input_stream *stream, const char *path, size_t most) {
    *stream = (struct input_stream){.file = -1, .path = path, .read_size = INPUT_FIRST_READ};
    enum input_state state = open_file(stream, path);
    if (state != INPUT_READY)
        return state;
    if (!make_window(stream, size_within(stream, stream->bytes_total + WINDOW_SPARE, most)))
        return fail(stream, "out of memory", NULL);
    do
        state = input_stream_fill(stream, CODEC_MAGIC_MAX);
    while (state == INPUT_WAITING);
    if (state == INPUT_FAILED || state == INPUT_INTERRUPTED)
        return state;
    return start_decoder(stream, most);
}

void input_stream_close(struct input_stream *stream) {
    if (stream->decoder)
        stream->codec->close(stream->decoder);
    free(stream->compressed);
    free(stream->window);
    if (stream->owns_file && stream->file >= 0)
        close(stream->file);
    *stream = (struct input_stream){.file = -1};
}
