/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression as a stream: gzip (RFC 1952), zstd (RFC 8878) and the lz4 frame format. */
#ifndef WIRETALE_DECOMPRESSOR_H
#define WIRETALE_DECOMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#define CODEC_MAGIC_MAX 4

/* Unread compressed bytes and free room; step() advances both. */
struct codec_buffers {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
};

/* If the input ends at CODEC_WITHIN, the file was truncated. */
enum codec_state {
    CODEC_WITHIN,   /* the current member or frame continues */
    CODEC_BOUNDARY, /* all input is decompressed; the stream may end here */
    CODEC_FAILED,
};

/* The functions of a format. A decoder must be closed, also after CODEC_FAILED. */
struct codec {
    const char *name;
    void *(*open)(void); /* NULL without memory */
    void (*close)(void *decoder);
    /* Decompresses as much as fits. Sets `*error` if it returns CODEC_FAILED. */
    enum codec_state (*step)(void *decoder, struct codec_buffers *buffers, const char **error);
};

/* Returns the codec of a file that begins with these bytes; NULL if they are not compressed. */
const struct codec *codec_find(const uint8_t *first, size_t size);

#endif
