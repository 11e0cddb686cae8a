/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are parked and extended, as a merge of many files does, against the bytes of the
 * file. Streams that threads read ahead, against the same streams that are read in place: the same
 * bytes after each fill, the same end or error, whatever the number of threads. */
#include "input/input_stream.h"

#include <string.h>
#include <time.h>
#include <zlib.h>

#include "common/test/scratch.h"
#include "input/read_ahead.h"

#define SIZE       (5u << 20)
#define SIZE_SHORT (200u << 10)
#define WINDOW     (64u << 10)
#define STREAMS    4u

static uint8_t content[SIZE];

static void write_plain(const char *path, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(content, 1, size, file) == size && !fclose(file));
}

/* `mode` is that of gzopen(): T writes the bytes as they are. */
static void write_gzip(const char *path, const char *mode, size_t size) {
    gzFile file = gzopen(path, mode);
    CHECK(file && gzwrite(file, content, (unsigned)size) == (int)size && gzclose(file) == Z_OK);
}

/* --- parked and extended ---------------------------------------------------------------------- */

/* Parked before each fill, the stream continues at the same byte. */
static void check_parked(const char *path) {
    struct input_stream stream;
    CHECK_INT(input_stream_open(&stream, path, WINDOW), INPUT_READY);
    for (size_t at = 0; at < SIZE_SHORT; at += 1000) {
        size_t need = SIZE_SHORT - at < 1000 ? SIZE_SHORT - at : 1000;
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
        write_plain(path, SIZE_SHORT);
        write_plain(other, SIZE_SHORT);
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

/* --- read ahead ------------------------------------------------------------------------------- */

static off_t size_of(const char *path) {
    struct stat status;
    CHECK(!stat(path, &status));
    return status.st_size;
}

static void write_cut(const char *path) {
    write_gzip(path, "wb1", SIZE);
    CHECK(!truncate(path, size_of(path) / 2));
}

/* A block of the reserved type is in the middle. */
static void write_damaged(const char *path) {
    write_gzip(path, "wb1", SIZE);
    uint8_t wrong[64];
    memset(wrong, 0xFF, sizeof wrong);
    FILE *file = fopen(path, "r+b");
    CHECK(file && !fseek(file, size_of(path) / 2, SEEK_SET));
    CHECK(fwrite(wrong, sizeof wrong, 1, file) == 1 && !fclose(file));
}

/* Records of up to 8 kB, and one that is larger than a chunk with what may be before it. */
static size_t next_need(uint32_t *random) {
    *random = *random * 1664525u + 1013904223u;
    return *random >> 22 ? 1 + (*random >> 19) : 700u << 10;
}

static void check_same(const char *path, unsigned threads, enum input_state end) {
    struct input_stream alone, other;
    struct read_ahead *ahead = read_ahead_open(threads, STREAMS);
    enum input_state state;
    uint32_t random = 1;
    CHECK_INT(input_stream_open(&alone, path, INPUT_WINDOW), INPUT_READY);
    CHECK_INT(input_stream_open(&other, path, INPUT_WINDOW), INPUT_READY);
    CHECK(ahead && input_stream_read_ahead(&other, ahead));
    do {
        size_t need = next_need(&random);
        state = input_stream_fill(&alone, need);
        CHECK_INT(input_stream_fill(&other, need), state);
        CHECK_INT(input_stream_available(&other), input_stream_available(&alone));
        CHECK_INT(input_stream_offset(&other), input_stream_offset(&alone));
        CHECK_INT(other.bytes_read, alone.bytes_read);
        size_t there = input_stream_available(&alone), used = need < there ? need : there;
        CHECK(!memcmp(other.cursor, alone.cursor, there));
        CHECK(end == INPUT_FAILED ||
              !memcmp(other.cursor, content + input_stream_offset(&other), there));
        CHECK_INT(input_stream_extend(&other), input_stream_extend(&alone));
        alone.cursor += used;
        other.cursor += used;
    } while (state == INPUT_READY);
    CHECK_INT(state, end);
    CHECK(end == INPUT_ENDED ? alone.end_offset == SIZE : alone.end_offset > SIZE / 4);
    CHECK(end == INPUT_ENDED || !strcmp(other.error, alone.error));
    CHECK_INT(input_stream_fill(&other, SIZE), end);
    input_stream_close(&alone);
    input_stream_close(&other);
    read_ahead_close(ahead);
}

/* Closes streams at once, while a thread reads, and after it has read all that it may. */
static void check_closed(const char *path, unsigned threads, long wait_us) {
    struct input_stream streams[STREAMS + 1];
    struct read_ahead *ahead = read_ahead_open(threads, STREAMS);
    for (unsigned i = 0; i <= STREAMS; i++) {
        CHECK_INT(input_stream_open(&streams[i], path, INPUT_WINDOW), INPUT_READY);
        CHECK_INT(read_ahead_has_room(ahead), i < STREAMS);
        CHECK_INT(input_stream_read_ahead(&streams[i], ahead), i < STREAMS);
    }
    nanosleep(&(struct timespec){0, wait_us * 1000}, NULL);
    for (unsigned i = 0; i <= STREAMS; i++) {
        CHECK_INT(input_stream_fill(&streams[i], 1000 * i), INPUT_READY);
        CHECK(!memcmp(streams[i].cursor, content, 1000 * i));
        input_stream_close(&streams[i]);
    }
    CHECK(read_ahead_has_room(ahead));
    read_ahead_close(ahead);
}

/* A small file and one that is not compressed are read in place. */
static void check_in_place(const char *path, size_t size, bool compressed) {
    struct input_stream stream;
    struct read_ahead *ahead = read_ahead_open(1, STREAMS);
    write_gzip(path, compressed ? "wb" : "wbT", size);
    CHECK_INT(input_stream_open(&stream, path, INPUT_WINDOW), INPUT_READY);
    CHECK(!input_stream_read_ahead(&stream, ahead));
    CHECK_INT(input_stream_fill(&stream, size), INPUT_READY);
    CHECK(!memcmp(stream.cursor, content, size));
    input_stream_close(&stream);
    read_ahead_close(ahead);
}

int main(void) {
    char plain[SCRATCH_SIZE], compressed[SCRATCH_SIZE], other[SCRATCH_SIZE];
    char whole[SCRATCH_SIZE], cut[SCRATCH_SIZE], damaged[SCRATCH_SIZE];
    uint32_t random = 1;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 28);
    scratch_path(plain, "plain");
    scratch_path(compressed, "compressed");
    scratch_path(other, "other");
    scratch_path(whole, "whole");
    scratch_path(cut, "cut");
    scratch_path(damaged, "damaged");
    write_plain(plain, SIZE_SHORT);
    write_gzip(compressed, "wb", SIZE_SHORT);
    check_parked(plain);
    check_parked(compressed);
    check_extended(plain);
    check_extended(compressed);
    check_small(other);
    check_replaced(plain, other);
    write_gzip(whole, "wb1", SIZE);
    write_cut(cut);
    write_damaged(damaged);
    for (unsigned threads = 0; threads < 4; threads++) {
        check_same(whole, threads, INPUT_ENDED);
        check_same(cut, threads, INPUT_FAILED);
        check_same(damaged, threads, INPUT_FAILED);
        for (long wait_us = 0; wait_us <= 20000; wait_us += 500 + 4 * wait_us)
            check_closed(whole, threads, wait_us);
    }
    check_in_place(other, 10000, true);
    check_in_place(other, SIZE / 2, false);
    return 0;
}
