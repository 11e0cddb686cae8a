/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled pattern: the tile of 64 words is computed once, so that each word of a block costs a
 * load, an xor and a store. Loops over a whole tile have a constant length, which lets the compiler
 * vectorize them; pieces at the ends of a range go through block.h, and so do untiled patterns of
 * earlier versions. */
#include "stream/block_fast.h"

#include <sodium.h>

#define VECTORIZED __attribute__((optimize("O3")))

static uint64_t tile[BLOCK_TILE_WORDS]; /* in network byte order */

/* Runs before main(), so that no thread can see an incomplete tile. */
__attribute__((constructor)) static void make_tile(void) {
    for (unsigned i = 0; i < BLOCK_TILE_WORDS; i++)
        tile[i] = htobe64(block_tile(i));
}

static inline __attribute__((always_inline)) void fill_part(uint8_t *to, uint64_t key, size_t first,
                                                            size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t word = tile[first + i] ^ key;
        memcpy(to + 8 * i, &word, 8);
    }
}

/* Returns the bits that differ in any word. */
static inline __attribute__((always_inline)) uint64_t
compare_part(const uint8_t *bytes, uint64_t key, size_t first, size_t count) {
    uint64_t differs = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        differs |= word ^ tile[first + i] ^ key;
    }
    return differs;
}

/* Returns the words from `number` to the end of its tile, at most `count`. */
static size_t rest_of_tile(uint64_t number, size_t count) {
    size_t rest = BLOCK_TILE_WORDS - number % BLOCK_TILE_WORDS;
    return rest < count ? rest : count;
}

/* Whole tiles take the call with constant arguments, because only that one is vectorized well. */
VECTORIZED static void fill_words(uint8_t *to, uint64_t seed, uint64_t number, size_t count) {
    while (count) {
        uint64_t key = htobe64(block_tile_key(seed, number));
        size_t part = rest_of_tile(number, count);
        if (part == BLOCK_TILE_WORDS)
            fill_part(to, key, 0, BLOCK_TILE_WORDS);
        else
            fill_part(to, key, number % BLOCK_TILE_WORDS, part);
        to += 8 * part;
        number += part;
        count -= part;
    }
}

/* Collects differences over all words instead of ending at the first: damage is rare, and a loop
 * without exits can be vectorized. */
VECTORIZED static bool words_are_right(const uint8_t *bytes, uint64_t seed, uint64_t number,
                                       size_t count) {
    uint64_t differs = 0;
    while (count) {
        uint64_t key = htobe64(block_tile_key(seed, number));
        size_t part = rest_of_tile(number, count);
        if (part == BLOCK_TILE_WORDS)
            differs |= compare_part(bytes, key, 0, BLOCK_TILE_WORDS);
        else
            differs |= compare_part(bytes, key, number % BLOCK_TILE_WORDS, part);
        bytes += 8 * part;
        number += part;
        count -= part;
    }
    return !differs;
}

/* Returns the bytes before the first whole word of the pattern in [from, from + count), and sets
 * the number of whole words. */
static size_t whole_words(size_t from, size_t count, size_t *words) {
    size_t start = from < BLOCK_HEADER_BYTES ? BLOCK_HEADER_BYTES : (from + 7) / 8 * 8;
    size_t skip = start - from;
    *words = count > skip ? (count - skip) / 8 : 0;
    return skip;
}

/* Bounds `count` by the end of the pattern. */
static size_t within_pattern(const struct block_header *header, size_t from, size_t count) {
    size_t end = block_pattern_end(header), left = from < end ? end - from : 0;
    return count < left ? count : left;
}

/* Words of the pattern begin behind the header, which the caller writes. If no whole word is in the
 * range, or the pattern has no tiles, the generic function does it. */
void block_fill(uint8_t *buf, const struct block_header *header, size_t from, size_t count) {
    size_t words;
    count = within_pattern(header, from, count);
    size_t skip = whole_words(from, count, &words);
    if (!words || !(header->flags & BLOCK_TILED)) {
        block_fill_pattern(buf, header, from, count);
        return;
    }
    size_t end = skip + 8 * words;
    fill_words(buf + skip, block_seed(header), (from + skip) / 8, words);
    if (from > BLOCK_HEADER_BYTES && skip)
        block_fill_pattern(buf, header, from, skip);
    if (end < count)
        block_fill_pattern(buf + end, header, from + end, count - end);
}

bool block_is_right(const uint8_t *bytes, const struct block_header *header, size_t from,
                    size_t count) {
    size_t words;
    count = within_pattern(header, from, count);
    size_t skip = whole_words(from, count, &words);
    if (!words || !(header->flags & BLOCK_TILED))
        return block_check_pattern(bytes, header, from, count) == BLOCK_ALL_RIGHT;
    size_t end = skip + 8 * words;
    if (!words_are_right(bytes + skip, block_seed(header), (from + skip) / 8, words))
        return false;
    return block_check_pattern(bytes, header, from, skip) == BLOCK_ALL_RIGHT &&
           block_check_pattern(bytes + end, header, from + end, count - end) == BLOCK_ALL_RIGHT;
}

void block_sign(uint8_t *bytes, size_t length, const uint8_t *key) {
    size_t signed_bytes = length - BLOCK_MAC_BYTES;
    crypto_generichash(bytes + signed_bytes, BLOCK_MAC_BYTES, bytes, signed_bytes, key,
                       crypto_generichash_KEYBYTES);
}

bool block_is_authentic(const uint8_t *bytes, size_t length, const uint8_t *key) {
    uint8_t code[BLOCK_MAC_BYTES];
    if (length < BLOCK_HEADER_BYTES + BLOCK_MAC_BYTES)
        return false;
    crypto_generichash(code, sizeof code, bytes, length - sizeof code, key,
                       crypto_generichash_KEYBYTES);
    return !sodium_memcmp(code, bytes + length - sizeof code, sizeof code);
}
