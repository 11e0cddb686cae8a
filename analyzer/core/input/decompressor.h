/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression as a stream: gzip (RFC 1952), zstd (RFC 8878) and the lz4 frame format. */
#ifndef WIRETALE_DECOMPRESSOR_H
#define WIRETALE_DECOMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_MAGIC_MAX 4
#define CODEC_LIGHT     (4u << 20) /* bytes; about the window of zstd at levels up to 15 */

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

#define CODEC_WINDOW (32u << 10) /* bytes; the farthest distance of a match in deflate */

/* The state of a decoder between two deflate blocks of a member: the next block may begin within a
 * byte, and refers to the bytes before it. */
struct codec_restart {
    unsigned bits; /* of the last byte that belong to the next block, 0 to 7 */
    uint8_t byte;  /* the last byte before the input, if `bits` is not 0 */
    uint8_t window[CODEC_WINDOW];
    size_t window_size;
};

/* The functions of a format. A decoder must be closed, also after CODEC_FAILED. */
struct codec {
    const char *name;
    void *(*open)(void); /* NULL without memory */
    void (*close)(void *decoder);
    /* Decompresses as much as fits. Sets `*error` if it returns CODEC_FAILED. */
    enum codec_state (*step)(void *decoder, struct codec_buffers *buffers, const char **error);
    /* The rest is NULL if decoding can begin only at a boundary (zstd, lz4). */
    void (*stop_at_blocks)(void *decoder); /* a step ends at each block, too */
    /* Sets the state and returns true if the last step ended between two blocks. */
    bool (*between_blocks)(void *decoder, struct codec_restart *restart);
    void *(*reopen)(
        const struct codec_restart *restart); /* NULL without memory, or if it is wrong */
};

/* Returns whether a decoder of a file that begins with these bytes needs CODEC_LIGHT of memory at
 * most. */
bool codec_is_light(const struct codec *codec, const uint8_t *first, size_t size);
/* Returns the codec of a file that begins with these bytes; NULL if they are not compressed. */
const struct codec *codec_find(const uint8_t *first, size_t size);

#endif
