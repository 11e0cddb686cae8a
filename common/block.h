/* SPDX-License-Identifier: Apache-2.0 */
/* A block on the wire, which the generator sends and the analyzer recognizes.
 *
 *     OFFSET SIZE  FIELD     in network byte order
 *          0    4  magic     "WTB1", 0x57544231
 *          4    4  run       random number of the test
 *          8    2  stream    within the run
 *         10    2  flags     senders must leave others 0, readers must ignore them:
 *                            bit 0: the first block of the stream
 *                            bit 1: the last
 *                            bit 2: the pattern is tiled
 *                            bit 3: sent late, in catching up with the rate
 *                            bit 4: the block ends in a code (traffic/README.md)
 *         12    4  length    bytes of the whole block with this header, 32 to 2^30
 *         16    8  sequence  of the block in its stream, from 0, below 2^63
 *         24    8  sent_ns   CLOCK_REALTIME of the sender, ns since the epoch, below 2^63
 *         32    -  pattern   to the end of the block, or to its code of 16 bytes
 *
 * A datagram is one block; a TCP stream is one block after the other.
 *
 * The pattern comes from the output of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
 * Number Generators, OOPSLA 2014), in words of 8 bytes, each in network byte order, the last one
 * cut off at the end of the block. All arithmetic is modulo 2^64:
 *
 *     mix(z):  z ^= z >> 30; z *= 0xbf58476d1ce4e5b9;
 *              z ^= z >> 27; z *= 0x94d049bb133111eb;  z ^ (z >> 31)
 *     seed   = mix(mix(run * 2^16 + stream) + sequence)
 *     step   = 0x9e3779b97f4a7c15
 *     tile j = mix((j + 1) * step), j from 0 to 63
 *     word i = tile (i mod 64) xor mix(seed + (i div 64) * step)     if the pattern is tiled
 *     word i = mix(seed + i * step)                                  if it is not
 *                                               at bytes 8i to 8i+7 of the block, i >= 4
 *
 * Each word can be computed without the ones before it, so a receiver can check any part of a
 * block. Senders must tile the pattern, because one xor per word costs less than a copy, while
 * SplitMix64 for each word costs as much as sending it. Captures of earlier versions have untiled
 * patterns. */
#ifndef WIRETALE_BLOCK_H
#define WIRETALE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/portable.h"

#define BLOCK_MAGIC        0x57544231u /* "WTB1" */
#define BLOCK_HEADER_BYTES 32u
#define BLOCK_LENGTH_MOST  (UINT32_C(1) << 30)
#define BLOCK_FIRST        1u /* flags */
#define BLOCK_LAST         2u
#define BLOCK_TILED        4u
#define BLOCK_CATCH_UP     8u
#define BLOCK_AUTHENTIC    16u
#define BLOCK_MAC_BYTES    16u
#define BLOCK_WORD_STEP    UINT64_C(0x9e3779b97f4a7c15)
#define BLOCK_TILE_WORDS   64u
#define BLOCK_ALL_RIGHT    SIZE_MAX /* of block_check_pattern() */

struct block_header {
    uint32_t run;
    uint16_t stream;
    uint16_t flags;
    uint32_t length; /* bytes, with the header */
    uint64_t sequence;
    uint64_t sent_ns; /* since the epoch */
};

/* Read and write big-endian integers of `count` bytes. */
static inline uint64_t block_load(const uint8_t *bytes, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

static inline void block_store(uint8_t *bytes, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * (count - 1 - i)));
}

/* Writes a header; `bytes` must have BLOCK_HEADER_BYTES. `magic` is BLOCK_MAGIC, or that of blocks
 * with another body. */
static inline void block_put_header(uint8_t *bytes, uint32_t magic, const struct block_header *h) {
    uint64_t words[4] = {
        htobe64((uint64_t)magic << 32 | h->run),
        htobe64((uint64_t)h->stream << 48 | (uint64_t)h->flags << 32 | h->length),
        htobe64(h->sequence),
        htobe64(h->sent_ns),
    };
    memcpy(bytes, words, sizeof words);
}

/* Decodes BLOCK_HEADER_BYTES without checks and returns the magic. */
static inline uint32_t block_get_header(const uint8_t *bytes, struct block_header *h) {
    uint64_t words[4];
    memcpy(words, bytes, sizeof words);
    uint64_t first = be64toh(words[0]), second = be64toh(words[1]);
    *h = (struct block_header){
        .run = (uint32_t)first,
        .stream = (uint16_t)(second >> 48),
        .flags = (uint16_t)(second >> 32),
        .length = (uint32_t)second,
        .sequence = be64toh(words[2]),
        .sent_ns = be64toh(words[3]),
    };
    return (uint32_t)(first >> 32);
}

/* Returns whether the `count` bytes begin with the header of a block. If not, `header` is
 * unchanged. A magic number alone does not suffice, because it may be part of any payload: all
 * fields with a limited range are checked, too. */
static inline bool block_read_header(struct block_header *header, const uint8_t *bytes,
                                     size_t count) {
    struct block_header read;
    if (count < BLOCK_HEADER_BYTES || block_get_header(bytes, &read) != BLOCK_MAGIC ||
        read.length < BLOCK_HEADER_BYTES || read.length > BLOCK_LENGTH_MOST ||
        read.sequence > INT64_MAX || read.sent_ns > INT64_MAX)
        return false;
    *header = read;
    return true;
}

/* The output function of SplitMix64. */
static inline uint64_t block_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns the seed of a block. It differs between blocks, so that a block at the wrong place in a
 * stream has a wrong pattern. */
static inline uint64_t block_seed(const struct block_header *header) {
    return block_mix(block_mix(((uint64_t)header->run << 16) + header->stream) + header->sequence);
}

static inline uint64_t block_tile(uint64_t number) {
    return block_mix((number % BLOCK_TILE_WORDS + 1) * BLOCK_WORD_STEP);
}

/* Returns the key that all words of one tile are combined with. */
static inline uint64_t block_tile_key(uint64_t seed, uint64_t number) {
    return block_mix(seed + number / BLOCK_TILE_WORDS * BLOCK_WORD_STEP);
}

/* Returns word `number` of the pattern; `seed` is block_seed(header). */
static inline uint64_t block_word(const struct block_header *header, uint64_t seed,
                                  uint64_t number) {
    if (header->flags & BLOCK_TILED)
        return block_tile(number) ^ block_tile_key(seed, number);
    return block_mix(seed + number * BLOCK_WORD_STEP);
}

/* Returns the end of the pattern, behind which a block with BLOCK_AUTHENTIC has its code. */
static inline size_t block_pattern_end(const struct block_header *header) {
    size_t code = header->flags & BLOCK_AUTHENTIC ? BLOCK_MAC_BYTES : 0;
    return header->length > BLOCK_HEADER_BYTES + code ? header->length - code : BLOCK_HEADER_BYTES;
}

/* Reduces bytes [from, from + count) of a block to its pattern: `count` becomes the size of that
 * part. Returns its distance from `from`. */
static inline size_t block_pattern_part(const struct block_header *header, size_t from,
                                        size_t *count) {
    size_t skip = from < BLOCK_HEADER_BYTES ? BLOCK_HEADER_BYTES - from : 0;
    size_t end = block_pattern_end(header), left = from < end ? end - from : 0;
    if (*count > left)
        *count = left;
    if (skip > *count)
        skip = *count;
    *count -= skip;
    return skip;
}

/* Writes the pattern of bytes [from, from + count) of the block; buf[0] is byte `from`. Bytes of
 * the header and after the end of the block are unchanged. */
static inline void block_fill_pattern(uint8_t *buf, const struct block_header *header, size_t from,
                                      size_t count) {
    uint64_t seed = block_seed(header);
    buf += block_pattern_part(header, from, &count);
    size_t offset = from < BLOCK_HEADER_BYTES ? BLOCK_HEADER_BYTES : from, end = offset + count;
    while (offset < end) {
        uint64_t word = htobe64(block_word(header, seed, offset / 8));
        size_t rest = 8 - offset % 8, size = rest < end - offset ? rest : end - offset;
        if (size == 8) /* a constant size compiles to one store */
            memcpy(buf, &word, 8);
        else
            memcpy(buf, (const uint8_t *)&word + offset % 8, size);
        buf += size;
        offset += size;
    }
}

/* Returns the first wrong offset among bytes [from, from + count) of the block, or BLOCK_ALL_RIGHT;
 * bytes[0] is byte `from`. Bytes of the header and after the end of the block are not checked. */
static inline size_t block_check_pattern(const uint8_t *bytes, const struct block_header *header,
                                         size_t from, size_t count) {
    uint8_t right[256];
    size_t skip = block_pattern_part(header, from, &count), end = skip + count, piece;
    for (size_t at = skip; at < end; at += piece) {
        piece = end - at < sizeof right ? end - at : sizeof right;
        block_fill_pattern(right, header, from + at, piece);
        for (size_t i = 0; i < piece; i++)
            if (bytes[at + i] != right[i])
                return from + at + i;
    }
    return BLOCK_ALL_RIGHT;
}

#endif
