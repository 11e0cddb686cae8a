/* SPDX-License-Identifier: Apache-2.0 */
/* block.h for speed: the same bytes, many words at once. */
#ifndef WIRETALE_BLOCK_FAST_H
#define WIRETALE_BLOCK_FAST_H

#include <endian.h>

#include "common/block.h"

/* The blocks of a file have its bytes in place of the pattern, and this magic ("WTC1"), so that
 * nobody takes them for damaged. All else is as in block.h. */
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

/* What the 32 bytes say, to be compared with what is expected; returns the magic. */
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

/* As block_fill_pattern(). */
void block_fill(uint8_t *buf, const struct block_header *header, size_t from, size_t count);

/* As block_check_pattern(): whether all is right. */
bool block_is_right(const uint8_t *bytes, const struct block_header *header, size_t from,
                    size_t count);

#endif
