/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of QUIC that are read from the front, never behind their end. */
#ifndef WIRETALE_QUIC_READER_H
#define WIRETALE_QUIC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const uint8_t *at;
    size_t left;
};

/* Passes `size` bytes. Returns false if fewer are left. */
static inline bool read_bytes(struct cursor *cursor, size_t size) {
    if (cursor->left < size)
        return false;
    cursor->at += size;
    cursor->left -= size;
    return true;
}

/* Reads a variable-length integer (RFC 9000 section 16). Returns false if it ends early. */
static inline bool read_varint(struct cursor *cursor, uint64_t *value) {
    const uint8_t *bytes = cursor->at;
    if (!cursor->left)
        return false;
    size_t size = (size_t)1 << (*bytes >> 6);
    if (!read_bytes(cursor, size))
        return false;
    *value = *bytes & 0x3f;
    for (size_t i = 1; i < size; i++)
        *value = *value << 8 | bytes[i];
    return true;
}

#endif
