/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks at line rate: the same bytes as common/block.h, but whole words at once, because the
 * generic functions would take longer than the send itself. Both are compared byte for byte in
 * test/test_block_fast.c. */
#ifndef WIRETALE_BLOCK_FAST_H
#define WIRETALE_BLOCK_FAST_H

#include "common/block.h"

/* Magic "WTC1" of blocks that contain a file in place of the pattern. Readers of BLOCK_MAGIC ignore
 * them, so a file is never reported as a damaged pattern. The header is that of block.h. */
#define CONTENT_MAGIC 0x57544331u

/* Writes the pattern of bytes [from, from + count) of a block to `buf`, as block_fill_pattern(). */
void block_fill(uint8_t *buf, const struct block_header *header, size_t from, size_t count);

/* Returns whether these bytes are the pattern of the block, as block_check_pattern(). */
bool block_is_right(const uint8_t *bytes, const struct block_header *header, size_t from,
                    size_t count);

/* Writes the code of an authenticated block of `length` bytes to its end: BLAKE2b-128 of the bytes
 * before it, with a key of 32 bytes. */
void block_sign(uint8_t *bytes, size_t length, const uint8_t *key);

/* Returns whether the code is right, in constant time. */
bool block_is_authentic(const uint8_t *bytes, size_t length, const uint8_t *key);

#endif
