/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file or of standard input, decompressed, from the first to the last. One thread at
 * a time may read. */
#ifndef WIRETALE_BYTE_SOURCE_H
#define WIRETALE_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/decompressor.h"

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

struct byte_source {
    const char *path;
    int file;               /* -1 while the source is parked */
    uint64_t device, inode; /* of a regular file */
    bool owns_file, regular;
    uint64_t bytes_read;  /* bytes read from disk (compressed) */
    uint64_t bytes_total; /* 0 if unknown */
    size_t read_size;
    const struct codec *codec; /* NULL if the bytes are not compressed */
    void *decoder;
    enum codec_state codec_state;
    bool light;          /* the decoder needs little memory */
    bool output_pending; /* the decoder filled its room and may hold more */
    uint8_t *compressed;
    const uint8_t *compressed_cursor;
    size_t compressed_size, compressed_room;
    char error[INPUT_ERROR_MAX];
};

/* Opens a path ("-" is standard input), which must live as long as the source; its compression is
 * not detected yet. Returns INPUT_READY, INPUT_FAILED or INPUT_INTERRUPTED; the source must be
 * closed in each case. */
enum input_state byte_source_open(struct byte_source *source, const char *path);
void byte_source_close(struct byte_source *source);

/* Decompresses from now on if the first bytes, which were read, are those of a compressed file:
 * they are then the first input of the decoder. Returns false without memory. */
bool byte_source_detect(struct byte_source *source, const uint8_t *first, size_t size);

/* Reads or decompresses once; also an end or a failure may come with bytes. Ends and failures are
 * final. After INPUT_WAITING or INPUT_INTERRUPTED the caller should try again. */
enum input_state byte_source_read(struct byte_source *source, uint8_t *place, size_t room,
                                  size_t *got);

/* The same until the room is full, so that the bytes that are returned depend on the file alone. */
enum input_state byte_source_read_full(struct byte_source *source, uint8_t *place, size_t room,
                                       size_t *got);

/* Closes the descriptor of a regular file until the next read. */
void byte_source_park(struct byte_source *source);

/* Returns the lesser of a size and `most`, which counts alone if the size of the file is unknown:
 * files of /proc have size 0. */
static inline size_t byte_source_size_within(const struct byte_source *source, uint64_t size,
                                             size_t most) {
    return source->regular && source->bytes_total && size < most ? (size_t)size : most;
}

#endif
