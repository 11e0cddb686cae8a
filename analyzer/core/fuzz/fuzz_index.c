/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that is indexed, as a compressed file with seek points, and as the content
 * of one: reading from a point must give the same bytes as reading from the beginning. Points and
 * their store are damaged too, as a folder that others can write may be. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>
#include <zlib.h>

#include "format/frame_index.h"
#include "fuzz/memory_file.h"
#include "input/input_stream.h"
#include "input/seek_points.h"

#define EVERY     3         /* frames between checkpoints */
#define PLAIN_MAX (1 << 20) /* bytes that are compared */
#define READ_SIZE 300       /* bytes */

static void check_index(const char *path) {
    struct frame_index index;
    struct error error;
    const struct checkpoint *before = NULL;
    bool made = frame_index_make(&index, path, EVERY, &error);
    for (size_t i = 0; made && i < index.count; before = &index.checkpoints[i++]) {
        const struct checkpoint *here = &index.checkpoints[i];
        check(here->frame <= index.frames);
        check(!before || (here->frame > before->frame && here->offset > before->offset));
    }
    for (size_t i = 0; made && i < index.headers.count; i++)
        check(index.headers.places[i].frame <= index.frames);
    frame_index_free(&index);
}

/* Returns the bytes of a file by reading from its beginning, PLAIN_MAX at most. */
static size_t read_plain(const char *path, uint8_t *plain) {
    struct input_stream stream;
    size_t size = 0;
    if (input_stream_open(&stream, path, INPUT_WINDOW) == INPUT_READY) {
        input_stream_fill(&stream, PLAIN_MAX);
        size = input_stream_available(&stream);
        size = size < PLAIN_MAX ? size : PLAIN_MAX;
        memcpy(plain, stream.cursor, size);
    }
    input_stream_close(&stream);
    return size;
}

/* Changes a byte of the points, which are then read at all their places. */
static void read_damaged(struct seek_list *list, const char *path, int store, size_t seed) {
    uint8_t out[READ_SIZE], *bytes = (uint8_t *)list->points;
    struct error error;
    size_t got;
    bytes[seed * 7 % (list->count * sizeof *list->points)] ^= (uint8_t)(1u << seed % 8);
    check(!ftruncate(store, (off_t)(seed % 64)));
    for (size_t i = 0; i < list->count && i < 16; i++)
        seek_points_read(list, path, store, list->points[i].out + seed % 3, out, sizeof out, &got,
                         &error);
}

static void check_points(const char *path, size_t seed) {
    static uint8_t plain[PLAIN_MAX];
    const struct seek_bounds bounds = {1 + seed % 1000, 2 + seed % 30};
    struct seek_list list;
    struct error error;
    int store = memfd_create("store", 0);
    bool made = seek_points_make(&list, path, store, &bounds, &error) && list.count;
    size_t size = made ? read_plain(path, plain) : 0;
    for (size_t at = 0; at < size; at += size / 16 + 1) {
        uint8_t out[READ_SIZE];
        size_t got, whole = size - at < READ_SIZE ? size - at : READ_SIZE;
        check(seek_points_read(&list, path, store, at, out, whole, &got, &error));
        check(got == whole && !memcmp(out, plain + at, whole));
    }
    if (made)
        read_damaged(&list, path, store, seed);
    free(list.points);
    close(store);
}

/* Compresses the bytes with gzip, in blocks of different sizes. */
static int make_compressed(const uint8_t *data, size_t size, char path[CAPTURE_PATH_SIZE]) {
    z_stream stream = {0};
    uLong room = compressBound(size) + size + 1024; /* blocks of a few bytes */
    uint8_t *packed = malloc(room);
    check(packed && deflateInit2(&stream, 1 + (int)(size % 9), Z_DEFLATED, 31, 8, 0) == Z_OK);
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    for (size_t at = 0, next = 64 + size % 500; at < size; at += next) {
        stream.next_in = (uint8_t *)data + at;
        stream.avail_in = (uInt)(size - at < next ? size - at : next);
        check(deflate(&stream, Z_BLOCK) == Z_OK);
    }
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    int file = make_capture_file(packed, stream.total_out, path);
    deflateEnd(&stream);
    free(packed);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[CAPTURE_PATH_SIZE];
    int file = make_capture_file(data, size, path);
    check_index(path);
    check_points(path, size);
    close(file);
    file = make_compressed(data, size, path);
    check_points(path, size);
    close(file);
    return 0;
}
