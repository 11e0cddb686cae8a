/* SPDX-License-Identifier: Apache-2.0 */
/* The window holds the unread bytes [cursor, end). A fill moves them to the front, reads until
 * `need` bytes are there, and doubles the window only if it is full. The move is cheap, because a
 * reader leaves less than a record. The window of a small file is as small as the file. `last`
 * keeps the end or the failure: later fills return it without another read.
 *
 * A compressed regular file is read by chunks of one size behind the unread bytes, so that the
 * bytes of each fill do not depend on who decompressed them. If other threads do, the next chunk
 * comes in a window of its own, before which the unread bytes are copied. */
#include "input/input_stream.h"

#include <stdlib.h>
#include <string.h>

#include "input/read_ahead.h"

#define WINDOW_SPARE 64u /* bytes behind a small file, so that its end is found without a move */

/* Makes the failure final. */
static enum input_state fail(struct input_stream *stream, const char *error) {
    stream->error = error;
    return stream->last = INPUT_FAILED;
}

static size_t window_room(const struct input_stream *stream) {
    return (size_t)(stream->window + stream->capacity - stream->end);
}

/* `end` is const for readers of the stream; the sum makes it writable. */
static uint8_t *end_of(struct input_stream *stream) {
    return stream->window + (stream->end - stream->window);
}

/* Makes bytes behind the end available, and keeps a state that is final. */
static enum input_state take(struct input_stream *stream, size_t got, enum input_state state) {
    stream->end += got;
    stream->end_offset += got;
    if (state == INPUT_FAILED)
        return fail(stream, stream->source.error);
    return state == INPUT_ENDED ? stream->last = INPUT_ENDED : state;
}

static enum input_state read_behind(struct input_stream *stream) {
    size_t got;
    enum input_state state =
        stream->chunk
            ? byte_source_read_full(&stream->source, end_of(stream), stream->chunk, &got)
            : byte_source_read(&stream->source, end_of(stream), window_room(stream), &got);
    stream->bytes_read = stream->source.bytes_read;
    return take(stream, got, state);
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

/* Replaces the window by that of the next chunk. */
static void change_window(struct input_stream *stream, const struct chunk *chunk) {
    size_t left = input_stream_available(stream);
    uint8_t *place = chunk->buffer + CHUNK_BEFORE;
    memcpy(place - left, stream->cursor, left);
    free(stream->window);
    stream->window = chunk->buffer;
    stream->capacity = CHUNK_BUFFER;
    stream->cursor = place - left;
    stream->end = place;
}

/* Appends the next chunk, which other threads may have read. Many unread bytes stay where they
 * are. */
static enum input_state take_chunk(struct input_stream *stream) {
    struct chunk chunk = read_ahead_take(stream->ahead);
    stream->bytes_read = chunk.bytes_read;
    if (chunk.buffer && input_stream_available(stream) <= CHUNK_BEFORE) {
        change_window(stream, &chunk);
    } else if (chunk.buffer) {
        memcpy(end_of(stream), chunk.buffer + CHUNK_BEFORE, chunk.size);
        free(chunk.buffer);
    }
    return take(stream, chunk.size, chunk.state);
}

/* Makes room for what is read next behind the unread bytes, unless that has a window of its own. */
static bool make_room(struct input_stream *stream) {
    if (stream->ahead && input_stream_available(stream) <= CHUNK_BEFORE)
        return true;
    move_to_front(stream);
    while (window_room(stream) < (stream->chunk ? stream->chunk : 1))
        if (!grow_window(stream))
            return false;
    return true;
}

enum input_state input_stream_fill(struct input_stream *stream, size_t need) {
    /* An end is reported only if fewer than `need` bytes are left. */
    while (input_stream_available(stream) < need) {
        if (stream->last != INPUT_READY)
            return stream->last;
        if (!make_room(stream))
            return fail(stream, "out of memory");
        enum input_state state = stream->ahead ? take_chunk(stream) : read_behind(stream);
        if (state == INPUT_WAITING || state == INPUT_INTERRUPTED)
            return state;
    }
    return INPUT_READY;
}

enum input_state input_stream_extend(struct input_stream *stream) {
    if (stream->last != INPUT_READY)
        return stream->last;
    if (stream->chunk || !stream->source.regular || !window_room(stream))
        return INPUT_WAITING;
    return read_behind(stream);
}

bool input_stream_exchange(struct input_stream *stream, uint8_t **window, size_t *size) {
    size_t left = input_stream_available(stream);
    uint8_t *old = stream->window;
    if (*size != stream->capacity) {
        free(*window);
        *window = malloc(stream->capacity);
        *size = *window ? stream->capacity : 0;
    }
    if (!*window)
        return false;
    memcpy(*window, stream->cursor, left);
    stream->cursor = stream->window = *window;
    stream->end = stream->window + left;
    *window = old;
    return true;
}

void input_stream_park(struct input_stream *stream) {
    if (!stream->ahead)
        byte_source_park(&stream->source);
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
    struct byte_source *source = &stream->source;
    if (!byte_source_detect(source, stream->cursor, input_stream_available(stream)))
        return fail(stream, "out of memory");
    if (!source->codec)
        return INPUT_READY;
    size_t window = byte_source_size_within(source, 4 * source->bytes_total, most);
    if (!make_window(stream, window > stream->capacity ? window : stream->capacity))
        return fail(stream, "out of memory");
    stream->chunk = source->regular ? stream->capacity : 0;
    stream->end_offset = 0;
    /* A short file may have ended while it was probed; its end is found again after the decoder has
     * used these bytes. */
    stream->last = INPUT_READY;
    return INPUT_READY;
}

enum input_state input_stream_open(struct input_stream *stream, const char *path, size_t most) {
    *stream = (struct input_stream){.last = INPUT_READY};
    struct byte_source *source = &stream->source;
    enum input_state state = byte_source_open(source, path);
    if (state != INPUT_READY)
        return take(stream, 0, state);
    if (!make_window(stream,
                     byte_source_size_within(source, source->bytes_total + WINDOW_SPARE, most)))
        return fail(stream, "out of memory");
    do
        state = input_stream_fill(stream, CODEC_MAGIC_MAX);
    while (state == INPUT_WAITING);
    if (state == INPUT_FAILED || state == INPUT_INTERRUPTED)
        return state;
    return start_decoder(stream, most);
}

bool input_stream_read_ahead(struct input_stream *stream, struct read_ahead *threads) {
    if (!stream->ahead && stream->chunk > CHUNK_LEAST && stream->chunk <= CHUNK_MOST &&
        stream->last == INPUT_READY)
        stream->ahead = read_ahead_add(threads, &stream->source, stream->chunk);
    return stream->ahead != NULL;
}

void input_stream_close(struct input_stream *stream) {
    if (stream->ahead)
        read_ahead_remove(stream->ahead);
    byte_source_close(&stream->source);
    free(stream->window);
    *stream = (struct input_stream){.source.file = -1};
}
