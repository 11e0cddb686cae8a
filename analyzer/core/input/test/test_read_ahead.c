/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that threads read ahead, against the same streams that are read in place: the same bytes
 * after each fill, the same end or error, whatever the number of threads. */
#include "input/read_ahead.h"

#include <string.h>
#include <time.h>
#include <zlib.h>

#include "common/test/scratch.h"
#include "input/input_stream.h"

#define SIZE    (5u << 20)
#define STREAMS 4u

static uint8_t content[SIZE];

static void write_gzip(const char *path) {
    gzFile file = gzopen(path, "wb1");
    CHECK(file && gzwrite(file, content, SIZE) == (int)SIZE && gzclose(file) == Z_OK);
}

static off_t size_of(const char *path) {
    struct stat status;
    CHECK(!stat(path, &status));
    return status.st_size;
}

static void write_cut(const char *path) {
    write_gzip(path);
    CHECK(!truncate(path, size_of(path) / 2));
}

/* A block of the reserved type is in the middle. */
static void write_damaged(const char *path) {
    write_gzip(path);
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
    gzFile file = gzopen(path, compressed ? "wb" : "wbT");
    CHECK(file && gzwrite(file, content, (unsigned)size) == (int)size && gzclose(file) == Z_OK);
    CHECK_INT(input_stream_open(&stream, path, INPUT_WINDOW), INPUT_READY);
    CHECK(!input_stream_read_ahead(&stream, ahead));
    CHECK_INT(input_stream_fill(&stream, size), INPUT_READY);
    CHECK(!memcmp(stream.cursor, content, size));
    input_stream_close(&stream);
    read_ahead_close(ahead);
}

int main(void) {
    char whole[SCRATCH_SIZE], cut[SCRATCH_SIZE], damaged[SCRATCH_SIZE], other[SCRATCH_SIZE];
    uint32_t random = 1;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 28);
    scratch_path(whole, "whole");
    scratch_path(cut, "cut");
    scratch_path(damaged, "damaged");
    scratch_path(other, "other");
    write_gzip(whole);
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
