/* SPDX-License-Identifier: Apache-2.0 */
/* The compression function once (FIPS 180-4 sections 5.1.1, 6.1.2 and 6.2.2): a message of up to 55
 * bytes, the bit 1, zeros, and its length in bits make one block of 64 bytes. Only the first word
 * of the state is returned. */
#include "common/sha.h"

#define BLOCK_WORDS 16

static uint32_t left(uint32_t word, unsigned bits) {
    return word << bits | word >> (32 - bits);
}

static uint32_t right(uint32_t word, unsigned bits) {
    return left(word, 32 - bits);
}

static void fill_block(uint32_t words[BLOCK_WORDS], const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < BLOCK_WORDS; i++)
        words[i] = 0;
    size = size < SHA_SHORT_MOST ? size : SHA_SHORT_MOST;
    for (size_t i = 0; i <= size; i++)
        words[i / 4] |= (uint32_t)(i < size ? bytes[i] : 0x80) << (24 - i % 4 * 8);
    words[BLOCK_WORDS - 1] = (uint32_t)size * 8;
}

#define SHA1_ROUNDS 80

uint32_t sha1_begin(const void *bytes, size_t size) {
    static const uint32_t constants[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
    uint32_t w[SHA1_ROUNDS];
    uint32_t a = 0x67452301, b = 0xEFCDAB89, c = 0x98BADCFE, d = 0x10325476, e = 0xC3D2E1F0;
    fill_block(w, bytes, size);
    for (unsigned t = BLOCK_WORDS; t < SHA1_ROUNDS; t++)
        w[t] = left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    uint32_t first = a;
    for (unsigned t = 0; t < SHA1_ROUNDS; t++) {
        unsigned phase = t / 20;
        uint32_t f = phase == 0   ? (b & c) ^ (~b & d)
                     : phase == 2 ? (b & c) ^ (b & d) ^ (c & d)
                                  : b ^ c ^ d;
        uint32_t next = left(a, 5) + f + e + constants[phase] + w[t];
        e = d;
        d = c;
        c = left(b, 30);
        b = a;
        a = next;
    }
    return first + a;
}

#define SHA256_ROUNDS 64

/* The fractional parts of the cube roots of the first primes. */
static const uint32_t cube_roots[SHA256_ROUNDS] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2};

uint32_t sha256_begin(const void *bytes, size_t size) {
    uint32_t state[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                         0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
    uint32_t w[SHA256_ROUNDS], first = state[0];
    fill_block(w, bytes, size);
    for (unsigned t = BLOCK_WORDS; t < SHA256_ROUNDS; t++) {
        uint32_t near = w[t - 2], far = w[t - 15];
        w[t] = (right(near, 17) ^ right(near, 19) ^ near >> 10) + w[t - 7] +
               (right(far, 7) ^ right(far, 18) ^ far >> 3) + w[t - 16];
    }
    for (unsigned t = 0; t < SHA256_ROUNDS; t++) {
        uint32_t a = state[0], e = state[4];
        uint32_t one = state[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) +
                       ((e & state[5]) ^ (~e & state[6])) + cube_roots[t] + w[t];
        uint32_t two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
                       ((a & state[1]) ^ (a & state[2]) ^ (state[1] & state[2]));
        for (unsigned i = 7; i > 0; i--)
            state[i] = state[i - 1];
        state[4] += one;
        state[0] = one + two;
    }
    return first + state[0];
}
