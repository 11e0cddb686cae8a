/* SPDX-License-Identifier: Apache-2.0 */
/* The fast pattern against block.h, byte for byte. */
#include "stream/block_fast.h"

#include "common/test/check.h"

enum { ROOM = 3000 };

static struct block_header some(uint32_t length, uint16_t flags) {
    return (struct block_header){.run = 0x01020304,
                                 .stream = 0x0506,
                                 .flags = flags,
                                 .length = length,
                                 .sequence = UINT64_C(0x0708090a0b0c0d0e),
                                 .sent_ns = UINT64_C(1700000000123456789)};
}

static void test_vector_of_the_readme(void) {
    static const uint8_t right[] = {
        0x57, 0x54, 0x42, 0x31, 1,    2,    3,    4,    5,    6,    0,    3,    0,
        0,    0,    0x3d, 7,    8,    9,    0xa,  0xb,  0xc,  0xd,  0xe,  0x17, 0x97,
        0x9c, 0xfe, 0x3d, 0x85, 0xcd, 0x15, 0xa6, 0x13, 0xc0, 0x96, 0x61, 0x9c, 0x99,
        0xf3, 0x40, 0xc6, 0x67, 0xac, 0xa1, 0xea, 0xee, 0x74, 0x38, 0x03, 0x16, 0x97,
        0x51, 0x3b, 0x84, 0xba, 0x80, 0x64, 0xed, 0x61, 0xb5};
    struct block_header header = some(61, 3), back;
    uint8_t bytes[61];
    block_put_header(bytes, BLOCK_MAGIC, &header);
    block_fill(bytes, &header, 0, 61);
    CHECK(!memcmp(bytes, right, 61));
    CHECK_INT(block_get_header(bytes, &back), BLOCK_MAGIC);
    CHECK(!memcmp(&back, &header, sizeof header));
}

/* Every start and many ends; bytes outside the range must stay unchanged. */
static void test_pieces(uint16_t flags) {
    uint8_t slow[ROOM], fast[ROOM];
    struct block_header header = some(2600, flags);
    for (size_t from = 0; from < 120; from++)
        for (size_t count = 0; count < 2700; count += count < 80 ? 1 : 97) {
            memset(slow, 0xaa, ROOM);
            memset(fast, 0xaa, ROOM);
            block_fill_pattern(slow, &header, from, count);
            block_fill(fast, &header, from, count);
            CHECK(!memcmp(slow, fast, ROOM));
            CHECK(block_is_right(fast, &header, from, count));
        }
}

/* The code covers each byte before it, header included, and depends on the key. */
static void test_codes(void) {
    const uint8_t key[32] = {1}, other[32] = {2};
    struct block_header header = some(300, BLOCK_TILED | BLOCK_AUTHENTIC);
    uint8_t bytes[300];
    block_put_header(bytes, BLOCK_MAGIC, &header);
    block_fill(bytes, &header, 0, sizeof bytes);
    block_sign(bytes, sizeof bytes, key);
    CHECK(block_is_authentic(bytes, sizeof bytes, key));
    CHECK(!block_is_authentic(bytes, sizeof bytes, other));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        CHECK(!block_is_authentic(bytes, sizeof bytes, key));
        CHECK(!block_is_authentic(bytes, i, key));
        bytes[i] ^= 1;
    }
    CHECK(block_is_right(bytes, &header, 0, sizeof bytes));
}

static void test_each_wrong_byte_is_found(uint16_t flags) {
    uint8_t bytes[ROOM];
    struct block_header header = some(300, flags);
    size_t end = flags & BLOCK_AUTHENTIC ? 284 : 300;
    memset(bytes, 0, sizeof bytes);
    block_fill(bytes, &header, 0, 300);
    for (size_t i = 0; i < 400; i++) {
        bytes[i] ^= 0x10;
        CHECK_INT(block_is_right(bytes, &header, 0, 400), i < 32 || i >= end);
        bytes[i] ^= 0x10;
    }
}

int main(void) {
    test_vector_of_the_readme();
    test_codes();
    for (uint16_t flags = 0; flags <= (BLOCK_TILED | BLOCK_AUTHENTIC); flags += BLOCK_TILED) {
        test_pieces(flags);
        test_each_wrong_byte_is_found(flags);
    }
    return 0;
}
