/* SPDX-License-Identifier: Apache-2.0 */
/* Loads from a byte string of any alignment; the caller must have checked its length. Compiler
 * hints for hot paths: NOINLINE keeps rare code out of them, because inlining it would spill
 * registers. */
#ifndef WIRETALE_BYTES_H
#define WIRETALE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The condition should hold for nearly all packets: the other branch is moved out of line. */
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define ALWAYS_INLINE     inline __attribute__((always_inline))
#define NOINLINE          __attribute__((noinline))

/* load_be16(p), load_le16(p), and load_u16(p, big_endian) for a file of either byte order. */
#define LOADS(bits)                                                                                \
    static inline uint##bits##_t load_le##bits(const uint8_t *p) {                                 \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    static inline uint##bits##_t load_be##bits(const uint8_t *p) {                                 \
        return __builtin_bswap##bits(load_le##bits(p));                                            \
    }                                                                                              \
    static inline uint##bits##_t load_u##bits(const uint8_t *p, bool big_endian) {                 \
        return big_endian ? load_be##bits(p) : load_le##bits(p);                                   \
    }
LOADS(16)
LOADS(32)
LOADS(64)
#undef LOADS

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads assume a little-endian host");

#endif
