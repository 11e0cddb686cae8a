/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are parked and extended, as a merge of many files does, against the bytes of the
 * file. */
#include "input/input_stream.h"

#include <string.h>
#include <zlib.h>

#include "common/test/scratch.h"

#define SIZE   (200u << 10)
#define WINDOW (64u << 10)

static uint8_t content[SIZE];

static void write_plain(const char *path, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(content, 1, size, file) == size && !fclose(file));
}

static void write_gzip(const char *path) {
    gzFile file = gzopen(path, "wb");
    CHECK(file && gzwrite(file, content, SIZE) == (int)SIZE && gzclose(file) == Z_OK);
}

/* Parked before each fill, the stream continues at the same byte. */
static void check_parked(const char *path) {
    struct input_stream stream;
    CHECK_INT(input_stream_open(&stream, path, WINDOW), INPUT_READY);
    for (size_t at = 0; at < SIZE; at += 1000) {
        size_t need = SIZE - at < 1000 ? SIZE - at : 1000;
        input_stream_park(&stream);
        CHECK_INT(stream.source.file, -1);
        CHECK_INT(input_stream_fill(&stream, need), INPUT_READY);
        CHECK_INT(input_stream_offset(&stream), at);
        CHECK(!memcmp(stream.cursor, content + at, need));
        stream.cursor += need;
    }
    CHECK_INT(input_stream_fill(&stream, 1), INPUT_ENDED);
    input_stream_close(&stream);
}

/* An extension leaves the bytes at hand where they are, and never exceeds the window. */
static void check_extended(const char *path) {
    struct input_stream stream;
    enum input_state state;
    CHECK_INT(input_stream_open(&stream, path, WINDOW), INPUT_READY);
    CHECK_INT(input_stream_fill(&stream, 1), INPUT_READY);
    const uint8_t *first = stream.cursor;
    while ((state = input_stream_extend(&stream)) == INPUT_READY)
        continue;
    CHECK_INT(state, INPUT_WAITING);
    CHECK(stream.cursor == first);
    CHECK_INT(input_stream_available(&stream), stream.capacity);
    CHECK(!memcmp(first, content, stream.capacity));
    input_stream_close(&stream);
}

/* The window of a small file is small, and its end is found without a move. */
static void check_small(const char *path) {
    struct input_stream stream;
    write_plain(path, 5000);
    CHECK_INT(input_stream_open(&stream, path, WINDOW), INPUT_READY);
    CHECK(stream.capacity < 6000);
    CHECK_INT(input_stream_fill(&stream, 5000), INPUT_READY);
    const uint8_t *first = stream.cursor;
    stream.cursor += 5000;
    CHECK_INT(input_stream_extend(&stream), INPUT_ENDED);
    CHECK(stream.cursor == first + 5000 && !memcmp(first, content, 5000));
    input_stream_close(&stream);
}

/* A parked file that is gone, or replaced by another one, ends the stream: bytes of another file
 * must not continue it. */
static void check_replaced(const char *path, const char *other) {
    struct input_stream stream;
    for (int replaced = 0; replaced < 2; replaced++) {
        write_plain(path, SIZE);
        write_plain(other, SIZE);
        CHECK_INT(input_stream_open(&stream, path, WINDOW), INPUT_READY);
        input_stream_park(&stream);
        CHECK(replaced ? !rename(other, path) : !unlink(path));
        CHECK_INT(input_stream_fill(&stream, WINDOW), INPUT_FAILED);
        CHECK(strstr(stream.error, replaced ? "replaced by another file" : "No such file"));
        CHECK(!memcmp(stream.cursor, content, input_stream_available(&stream)));
        CHECK_INT(input_stream_fill(&stream, WINDOW), INPUT_FAILED);
        input_stream_close(&stream);
    }
}

int main(void) {
    char plain[SCRATCH_SIZE], compressed[SCRATCH_SIZE], other[SCRATCH_SIZE];
    uint32_t random = 1;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 28);
    scratch_path(plain, "plain");
    scratch_path(compressed, "compressed");
    scratch_path(other, "other");
    write_plain(plain, SIZE);
    write_gzip(compressed);
    check_parked(plain);
    check_parked(compressed);
    check_extended(plain);
    check_extended(compressed);
    check_small(other);
    check_replaced(plain, other);
    return 0;
}
