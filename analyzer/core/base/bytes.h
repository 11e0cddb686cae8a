/* SPDX-License-Identifier: Apache-2.0 */
/* Loads from a byte string of any alignment; the caller must have checked its length. Compiler
 * hints for hot paths: NOINLINE keeps rare code out of them, because inlining it would spill
 * registers. */
#ifndef WIRETALE_BYTES_H
#define WIRETALE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The condition should hold for nearly all packets: the other branch is moved out of line. */
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define ALWAYS_INLINE     inline __attribute__((always_inline))
#define NOINLINE          __attribute__((noinline))

static inline uint16_t load_be16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}

static inline uint32_t load_be32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static inline uint64_t load_be64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

static inline uint16_t load_le16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load_le32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load_le64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads assume a little-endian host");

#endif
