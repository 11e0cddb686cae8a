/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks at line rate: the same bytes as common/block.h, but whole words at once, because the
 * generic functions would take longer than the send itself. Both are compared byte for byte in
 * test/test_block_fast.c. */
#ifndef WIRETALE_BLOCK_FAST_H
#define WIRETALE_BLOCK_FAST_H

#include <endian.h>

#include "common/block.h"

/* Magic "WTC1" of blocks that contain a file in place of the pattern. Readers of BLOCK_MAGIC ignore
 * them, so a file is never reported as a damaged pattern. The header is that of block.h. */
#define CONTENT_MAGIC 0x57544331u

static inline void block_put_header(uint8_t *bytes, uint32_t magic, const struct block_header *h) {
    uint64_t words[4] = {
        htobe64((uint64_t)magic << 32 | h->run),
        htobe64((uint64_t)h->stream << 48 | (uint64_t)h->flags << 32 | h->length),
        htobe64(h->sequence),
        htobe64(h->sent_ns),
    };
    memcpy(bytes, words, sizeof words);
}

/* Decodes 32 bytes without checks and returns the magic; the caller compares both with the block
 * that it expects. */
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

/* Writes the pattern of bytes [from, from + count) of a block to `buf`, as block_fill_pattern(). */
void block_fill(uint8_t *buf, const struct block_header *header, size_t from, size_t count);

/* Returns whether these bytes are the pattern of the block, as block_check_pattern(). */
bool block_is_right(const uint8_t *bytes, const struct block_header *header, size_t from,
                    size_t count);

#endif
