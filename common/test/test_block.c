/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks byte by byte as traffic/README.md has them, and the pattern in any piece of a block. */
#include "common/block.h"

#include "common/test/check.h"

/* The last 8 bytes of the block of 1472 that has no bytes here. */
#define LAST_WORD_OFFSET 1464

struct vector {
    struct block_header header;
    const char *bytes; /* hex */
};

static const struct vector vectors[] = {
    {{1, 0, 1, 32, 0, 0},
     "57544231 00000001 00000001 00000020 00000000 00000000 00000000 00000000"},
    {{0, 0, 0, 40, 0, 0},
     "57544231 00000000 00000000 00000028 00000000 00000000 00000000 00000000 f88bb8a8 724c81ec"},
    {{0x01020304, 0x0506, 3, 61, 0x0708090a0b0c0d0e, 1700000000123456789},
     "57544231 01020304 05060003 0000003d 0708090a 0b0c0d0e 17979cfe 3d85cd15"
     "a613c096 619c99f3 40c667ac a1eaee74 38031697 513b84ba 8064ed61 b5"},
    {{0x01020304, 0x0506, 7, 61, 0x0708090a0b0c0d0e, 1700000000123456789},
     "57544231 01020304 05060007 0000003d 0708090a 0b0c0d0e 17979cfe 3d85cd15"
     "69e022d7 570fa7c5 211234b1 72d971b4 5e5b3103 19e2e1bf b75db887 cf"},
};

static size_t from_hex(const char *text, uint8_t *bytes) {
    size_t digits = 0;
    for (; *text; text++) {
        if (*text == ' ')
            continue;
        int digit = *text <= '9' ? *text - '0' : *text - 'a' + 10;
        bytes[digits / 2] = (uint8_t)(digits % 2 ? bytes[digits / 2] << 4 | digit : digit);
        digits++;
    }
    return digits / 2;
}

static void check_vector(const struct vector *vector) {
    uint8_t expected[64], written[64] = {0};
    struct block_header header = {0};
    CHECK_INT(from_hex(vector->bytes, expected), vector->header.length);
    block_put_header(written, BLOCK_MAGIC, &vector->header);
    block_fill_pattern(written + 32, &vector->header, 32, sizeof written - 32);
    CHECK(!memcmp(written, expected, vector->header.length));
    for (size_t i = vector->header.length; i < sizeof written; i++)
        CHECK_INT(written[i], 0);
    CHECK(block_read_header(&header, expected, vector->header.length));
    block_put_header(written, BLOCK_MAGIC, &header);
    CHECK(!memcmp(written, expected, BLOCK_HEADER_BYTES));
    CHECK(block_check_pattern(expected, &header, 0, header.length) == BLOCK_ALL_RIGHT);
}

static void check_full_datagram(uint16_t flags, const char *last_word) {
    struct block_header header = {7, 1, flags, 1472, 1000000, 1700000000000000000};
    uint8_t bytes[1472], end[8];
    from_hex(last_word, end);
    block_put_header(bytes, BLOCK_MAGIC, &header);
    block_fill_pattern(bytes, &header, 0, sizeof bytes);
    CHECK(!memcmp(bytes + LAST_WORD_OFFSET, end, sizeof end));
    CHECK_INT(bytes[0], 'W'); /* a header is left alone */
}

static void check_pieces(uint16_t flags) {
    struct block_header header = {3, 2, flags, 101, 99, 0};
    uint8_t whole[101] = {0}, piece[101];
    block_fill_pattern(whole, &header, 0, sizeof whole);
    for (size_t from = 0; from < sizeof whole; from++)
        for (size_t count = 0; count <= sizeof whole - from; count++) {
            memset(piece, 0, sizeof piece);
            block_fill_pattern(piece, &header, from, count);
            CHECK(!memcmp(piece, whole + from, count));
            CHECK(block_check_pattern(piece, &header, from, count) == BLOCK_ALL_RIGHT);
        }
}

static void check_each_wrong_byte_is_found(uint16_t flags) {
    struct block_header header = {3, 2, flags, 101, 99, 0};
    uint8_t bytes[120] = {0};
    block_fill_pattern(bytes, &header, 0, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        size_t expected = i < 32 || i >= 101 ? BLOCK_ALL_RIGHT : i;
        bytes[i] ^= 0x10;
        CHECK(block_check_pattern(bytes, &header, 0, sizeof bytes) == expected);
        if (i > 40)
            CHECK(block_check_pattern(bytes + 37, &header, 37, sizeof bytes - 37) == expected);
        CHECK(block_check_pattern(bytes, &header, 0, i) == BLOCK_ALL_RIGHT);
        bytes[i] ^= 0x10;
    }
    header.sequence++; /* another block's pattern is wrong from the start */
    CHECK_INT(block_check_pattern(bytes, &header, 0, sizeof bytes), 32);
}

static void check_refusals(void) {
    static const struct block_header headers[] = {
        {1, 2, 0, 31, 5, 6},
        {1, 2, 0, BLOCK_LENGTH_MOST + 1, 5, 6},
        {1, 2, 0, BLOCK_LENGTH_MOST, (uint64_t)1 << 63, 6},
        {1, 2, 0, BLOCK_LENGTH_MOST, INT64_MAX, (uint64_t)1 << 63},
        {1, 2, 0, BLOCK_LENGTH_MOST, INT64_MAX, INT64_MAX}, /* the only one that is right */
    };
    struct block_header read = {.run = 77};
    uint8_t bytes[32];
    for (unsigned i = 0; i < 5; i++) {
        block_put_header(bytes, BLOCK_MAGIC, &headers[i]);
        CHECK_INT(read.run, 77);
        CHECK_INT(block_read_header(&read, bytes, 32), i == 4);
    }
    CHECK(!block_read_header(&read, bytes, 31));
    bytes[0] ^= 1; /* the magic */
    CHECK(!block_read_header(&read, bytes, 32));
}

int main(void) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check_vector(&vectors[i]);
    check_full_datagram(0, "a620956eaef482d9");
    check_full_datagram(BLOCK_TILED, "7088c2a5f3c77f9a");
    for (uint16_t flags = 0; flags <= BLOCK_TILED; flags += BLOCK_TILED) {
        check_pieces(flags);
        check_each_wrong_byte_is_found(flags);
    }
    check_refusals();
    return 0;
}
