/* SPDX-License-Identifier: Apache-2.0 */
/* SplitMix64 has no chain from word to word, so that the compiler can make vectors of them. */
#include "block_fast.h"

#define WORD_STEP UINT64_C(0x9e3779b97f4a7c15)
#define INLINE    static inline __attribute__((always_inline))

INLINE void fill_any(uint8_t *to, uint64_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t word = htobe64(block_mix(first + i * WORD_STEP));
        memcpy(to + 8 * i, &word, 8);
    }
}

/* The bits that differ, of all words together. */
INLINE uint64_t compare_any(const uint8_t *bytes, uint64_t first, size_t count) {
    uint64_t differs = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        differs |= word ^ htobe64(block_mix(first + i * WORD_STEP));
    }
    return differs;
}

/* One source, compiled for each kind of machine. */
#define FOR_MACHINE(name, ...)                                                                     \
    __VA_ARGS__ static void fill_##name(uint8_t *to, uint64_t first, size_t count) {               \
        fill_any(to, first, count);                                                                \
    }                                                                                              \
    __VA_ARGS__ static uint64_t compare_##name(const uint8_t *bytes, uint64_t first,               \
                                               size_t count) {                                     \
        return compare_any(bytes, first, count);                                                   \
    }

static void (*fill_words)(uint8_t *to, uint64_t first, size_t count);
static uint64_t (*compare_words)(const uint8_t *bytes, uint64_t first, size_t count);

FOR_MACHINE(plain, )

#ifdef __x86_64__
#ifdef __clang__
#define VECTORS(isa) __attribute__((target(isa)))
#define WIDE
#else
#define VECTORS(isa) __attribute__((target(isa), optimize("O3")))
#define WIDE         ",prefer-vector-width=512"
#endif
FOR_MACHINE(avx2, VECTORS("avx2"))
FOR_MACHINE(avx512, VECTORS("avx512f,avx512dq,avx512bw,avx512vl" WIDE))

/* Before main(): no thread sees it half done. */
__attribute__((constructor)) static void choose_machine(void) {
    __builtin_cpu_init();
    bool has_avx512 = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
    bool has_avx2 = __builtin_cpu_supports("avx2");
    fill_words = has_avx512 ? fill_avx512 : has_avx2 ? fill_avx2 : fill_plain;
    compare_words = has_avx512 ? compare_avx512 : has_avx2 ? compare_avx2 : compare_plain;
}
#else
__attribute__((constructor)) static void choose_machine(void) {
    fill_words = fill_plain;
    compare_words = compare_plain;
}
#endif

/* The whole words within [from, from + count) of the pattern: bytes before them, and how many. */
static size_t whole_words(size_t from, size_t count, size_t *words) {
    size_t start = from < BLOCK_HEADER_BYTES ? BLOCK_HEADER_BYTES : (from + 7) / 8 * 8;
    size_t skip = start - from;
    *words = count > skip ? (count - skip) / 8 : 0;
    return skip;
}

static size_t within_block(const struct block_header *header, size_t from, size_t count) {
    size_t left = from < header->length ? header->length - from : 0;
    return count < left ? count : left;
}

void block_fill(uint8_t *buf, const struct block_header *header, size_t from, size_t count) {
    size_t words;
    count = within_block(header, from, count);
    size_t skip = whole_words(from, count, &words);
    if (!words) {
        block_fill_pattern(buf, header, from, count);
        return;
    }
    size_t end = skip + 8 * words;
    fill_words(buf + skip, block_seed(header) + (from + skip) / 8 * WORD_STEP, words);
    if (from > BLOCK_HEADER_BYTES && skip)
        block_fill_pattern(buf, header, from, skip);
    if (end < count)
        block_fill_pattern(buf + end, header, from + end, count - end);
}

bool block_is_right(const uint8_t *bytes, const struct block_header *header, size_t from,
                    size_t count) {
    size_t words;
    count = within_block(header, from, count);
    size_t skip = whole_words(from, count, &words);
    if (!words)
        return block_check_pattern(bytes, header, from, count) == BLOCK_ALL_RIGHT;
    size_t end = skip + 8 * words;
    if (compare_words(bytes + skip, block_seed(header) + (from + skip) / 8 * WORD_STEP, words))
        return false;
    return block_check_pattern(bytes, header, from, skip) == BLOCK_ALL_RIGHT &&
           block_check_pattern(bytes + end, header, from + end, count - end) == BLOCK_ALL_RIGHT;
}
