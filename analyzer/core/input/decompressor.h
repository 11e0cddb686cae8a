/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression as a stream: gzip (RFC 1952), zstd (RFC 8878) and the lz4 frame format. */
#ifndef WIRETALE_DECOMPRESSOR_H
#define WIRETALE_DECOMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#define CODEC_MAGIC_MAX 4

/* Unread compressed bytes and free room; a step moves both pointers on. */
struct codec_buffers {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
};

enum codec_state {
    CODEC_WITHIN,   /* more of the current member or frame is to come */
    CODEC_BOUNDARY, /* all that was read is decompressed, and the stream may end here */
    CODEC_FAILED,
};

struct codec {
    const char *name;
    void *(*open)(void); /* NULL without memory */
    void (*close)(void *decoder);
    /* Decompresses what fits; on CODEC_FAILED `*error` says why. */
    enum codec_state (*step)(void *decoder, struct codec_buffers *buffers, const char **error);
};

/* The codec of a file that begins with these bytes, or NULL when they are not compressed. */
const struct codec *codec_find(const uint8_t *first, size_t size);

#endif
