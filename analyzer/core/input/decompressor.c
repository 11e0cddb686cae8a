/* SPDX-License-Identifier: Apache-2.0 */
/* One adapter per library (zlib, zstd, lz4) with the same three functions. Concatenated members or
 * frames are one stream, as in gzip, zstd and lz4 themselves: the zstd and lz4 libraries begin the
 * next frame by themselves, zlib must be reset.
 *
 * A step uses up the input or fills the output, whichever comes first. The libraries verify the
 * checksums that the data have (CRC-32 in gzip, xxHash in zstd and lz4); an error is final. */
#include "input/decompressor.h"

#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define GZIP_WINDOW_BITS (15 + 16) /* zlib: the largest window, gzip framing only */

#define GZIP_TRAILER 8    /* bytes; CRC-32 and length of a member */
#define BLOCK_ENDED  0x80 /* bits of z_stream.data_type, see inflate() in zlib.h */
#define BLOCK_LAST   0x40
#define BLOCK_BITS   0x07

struct gzip_decoder {
    z_stream stream;
    bool between;     /* before a member */
    int flush;        /* Z_BLOCK: stop at blocks */
    bool reopened;    /* within a member: zlib decodes its blocks without header and trailer */
    unsigned trailer; /* bytes to skip behind such a member */
};

static void *open_gzip(void) {
    struct gzip_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return NULL;
    decoder->between = true;
    if (inflateInit2(&decoder->stream, GZIP_WINDOW_BITS) == Z_OK)
        return decoder;
    free(decoder);
    return NULL;
}

static void close_gzip(void *state) {
    struct gzip_decoder *decoder = state;
    inflateEnd(&decoder->stream);
    free(decoder);
}

static void stop_at_blocks(void *state) {
    ((struct gzip_decoder *)state)->flush = Z_BLOCK;
}

/* After the last block the member ends, which is a boundary. */
static bool between_blocks(void *state, struct codec_restart *restart) {
    struct gzip_decoder *decoder = state;
    int type = decoder->stream.data_type;
    uInt size = 0;
    if (decoder->between || (type & (BLOCK_ENDED | BLOCK_LAST)) != BLOCK_ENDED ||
        inflateGetDictionary(&decoder->stream, restart->window, &size) != Z_OK)
        return false;
    restart->bits = (unsigned)type & BLOCK_BITS;
    restart->window_size = size;
    return true;
}

/* The method of zran.c, an example of zlib: blocks are decoded without the header, and their bytes
 * are not verified, because the checksum is of the whole member. */
static void *reopen_gzip(const struct codec_restart *restart) {
    struct gzip_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return NULL;
    z_stream *z = &decoder->stream;
    decoder->reopened = true;
    int bits = (int)(restart->bits & BLOCK_BITS);
    bool ready = inflateInit2(z, -MAX_WBITS) == Z_OK;
    if (ready && inflatePrime(z, bits, restart->byte >> (8 - bits)) == Z_OK &&
        inflateSetDictionary(z, restart->window, (uInt)restart->window_size) == Z_OK)
        return decoder;
    if (ready)
        inflateEnd(z);
    free(decoder);
    return NULL;
}

/* gzip(1) skips zeros after a member too, which pad tape blocks. */
static enum codec_state start_next_member(struct gzip_decoder *decoder,
                                          struct codec_buffers *buffers, const char **error) {
    while (buffers->in_size && *buffers->in == 0) {
        buffers->in++;
        buffers->in_size--;
    }
    if (!buffers->in_size)
        return CODEC_BOUNDARY;
    if (*buffers->in != 0x1F) {
        *error = "unexpected bytes after the gzip stream";
        return CODEC_FAILED;
    }
    inflateReset2(&decoder->stream, GZIP_WINDOW_BITS);
    decoder->between = false;
    return CODEC_WITHIN;
}

/* Z_BUF_ERROR only means that neither input nor room was left: it is not an error of the data. The
 * trailer of a member (CRC-32 and length) is part of its input. */
static enum codec_state inflate_some(struct gzip_decoder *decoder, struct codec_buffers *buffers,
                                     const char **error) {
    z_stream *z = &decoder->stream;
    z->next_in = (Bytef *)(uintptr_t)buffers->in;
    z->avail_in = (uInt)buffers->in_size;
    z->next_out = buffers->out;
    z->avail_out = (uInt)buffers->out_size;
    int result = inflate(z, decoder->flush);
    *buffers = (struct codec_buffers){z->next_in, z->avail_in, z->next_out, z->avail_out};
    if (result == Z_STREAM_END && decoder->reopened) {
        decoder->reopened = false;
        decoder->trailer = GZIP_TRAILER;
        return CODEC_WITHIN;
    }
    decoder->between = result == Z_STREAM_END;
    if (result == Z_STREAM_END)
        return CODEC_BOUNDARY;
    if (result == Z_OK || result == Z_BUF_ERROR)
        return CODEC_WITHIN;
    *error = z->msg ? z->msg : "the gzip data are damaged";
    return CODEC_FAILED;
}

static enum codec_state skip_trailer(struct gzip_decoder *decoder, struct codec_buffers *buffers) {
    size_t skipped = buffers->in_size < decoder->trailer ? buffers->in_size : decoder->trailer;
    buffers->in += skipped;
    buffers->in_size -= skipped;
    decoder->trailer -= (unsigned)skipped;
    decoder->between = !decoder->trailer;
    return decoder->between ? CODEC_BOUNDARY : CODEC_WITHIN;
}

static enum codec_state step_gzip(void *state, struct codec_buffers *buffers, const char **error) {
    struct gzip_decoder *decoder = state;
    if (decoder->trailer)
        return skip_trailer(decoder, buffers);
    if (!decoder->between)
        return inflate_some(decoder, buffers, error);
    enum codec_state next = start_next_member(decoder, buffers, error);
    return next == CODEC_WITHIN ? inflate_some(decoder, buffers, error) : next;
}

static void *open_zstd(void) {
    return ZSTD_createDStream();
}

static void close_zstd(void *state) {
    ZSTD_freeDStream(state);
}

/* A result of 0 means that a frame is complete and its output is flushed. */
static enum codec_state step_zstd(void *state, struct codec_buffers *buffers, const char **error) {
    ZSTD_inBuffer in = {buffers->in, buffers->in_size, 0};
    ZSTD_outBuffer out = {buffers->out, buffers->out_size, 0};
    size_t result = ZSTD_decompressStream(state, &out, &in);
    buffers->in += in.pos;
    buffers->in_size -= in.pos;
    buffers->out += out.pos;
    buffers->out_size -= out.pos;
    if (!ZSTD_isError(result))
        return result == 0 ? CODEC_BOUNDARY : CODEC_WITHIN;
    *error = ZSTD_getErrorName(result);
    return CODEC_FAILED;
}

static void *open_lz4(void) {
    LZ4F_dctx *context;
    return LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL : context;
}

static void close_lz4(void *state) {
    LZ4F_freeDecompressionContext(state);
}

/* The sizes are inputs and results: bytes at hand before the call, bytes used after it. */
static enum codec_state step_lz4(void *state, struct codec_buffers *buffers, const char **error) {
    size_t in_size = buffers->in_size, out_size = buffers->out_size;
    size_t result = LZ4F_decompress(state, buffers->out, &out_size, buffers->in, &in_size, NULL);
    if (LZ4F_isError(result)) {
        *error = LZ4F_getErrorName(result);
        return CODEC_FAILED;
    }
    buffers->in += in_size;
    buffers->in_size -= in_size;
    buffers->out += out_size;
    buffers->out_size -= out_size;
    return result == 0 ? CODEC_BOUNDARY : CODEC_WITHIN;
}

static const struct codec gzip_codec = {.name = "gzip",
                                        .open = open_gzip,
                                        .close = close_gzip,
                                        .step = step_gzip,
                                        .stop_at_blocks = stop_at_blocks,
                                        .between_blocks = between_blocks,
                                        .reopen = reopen_gzip};
static const struct codec zstd_codec = {
    .name = "zstd", .open = open_zstd, .close = close_zstd, .step = step_zstd};
static const struct codec lz4_codec = {
    .name = "lz4", .open = open_lz4, .close = close_lz4, .step = step_lz4};

/* gzip needs little. zstd has its window in the descriptor of RFC 8878 section 3.1.1.1.2; a frame
 * of a single segment has none, and the content as its window. The buffers of lz4 hold two blocks,
 * of 4 MiB each by default. */
bool codec_is_light(const struct codec *codec, const uint8_t *first, size_t size) {
    enum { DESCRIPTOR = 4, SINGLE_SEGMENT = 0x20 };
    if (codec != &zstd_codec)
        return codec == &gzip_codec;
    if (size < DESCRIPTOR + 2 || first[0] != 0x28 || first[DESCRIPTOR] & SINGLE_SEGMENT)
        return false;
    unsigned window = first[DESCRIPTOR + 1];
    uint64_t base = UINT64_C(1) << (10 + (window >> 3));
    return base + base / 8 * (window & 7) <= CODEC_LIGHT;
}

/* A skippable frame (RFC 8878 section 3.1.2) may begin a zstd stream (as pzstd writes it) or an
 * lz4 stream. The magic numbers are the same, and only tools of zstd write it, so it counts as
 * zstd. */
static const struct {
    uint8_t magic[CODEC_MAGIC_MAX], mask[CODEC_MAGIC_MAX];
    size_t size;
    const struct codec *codec;
} magics[] = {
    {{0x1F, 0x8B}, {0xFF, 0xFF}, 2, &gzip_codec},
    {{0x28, 0xB5, 0x2F, 0xFD}, {0xFF, 0xFF, 0xFF, 0xFF}, 4, &zstd_codec},
    {{0x50, 0x2A, 0x4D, 0x18}, {0xF0, 0xFF, 0xFF, 0xFF}, 4, &zstd_codec},
    {{0x04, 0x22, 0x4D, 0x18}, {0xFF, 0xFF, 0xFF, 0xFF}, 4, &lz4_codec},
};

/* Compares under a mask, because the low nibble of a skippable frame's magic number is free. */
static bool match_magic(const uint8_t *first, const uint8_t *magic, const uint8_t *mask,
                        size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((first[i] & mask[i]) != magic[i])
            return false;
    return true;
}

const struct codec *codec_find(const uint8_t *first, size_t size) {
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (size >= magics[i].size &&
            match_magic(first, magics[i].magic, magics[i].mask, magics[i].size))
            return magics[i].codec;
    return NULL;
}
