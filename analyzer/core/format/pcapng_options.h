/* SPDX-License-Identifier: Apache-2.0 */
/* The options at the end of a pcapng block.
 *
 *   OFFSET SIZE DESCRIPTION
 *   0      2    code, 0 ends the list
 *   2      2    length of the value
 *   4      ..   value, padded to 4 bytes
 */
#ifndef WIRETALE_PCAPNG_OPTIONS_H
#define WIRETALE_PCAPNG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { OPTION_END = 0, OPTION_COMMENT = 1 };

struct pcapng_option {
    uint16_t code, length;
    const uint8_t *value;
};

struct pcapng_options {
    const uint8_t *cursor;
    size_t left;
    bool big_endian;
    bool lied; /* an option claimed more than the block holds; `left` bytes remained there */
    struct pcapng_option current;
};

/* Moves to the next option; false at the end of the list or of what can be trusted of it. */
static inline bool pcapng_options_next(struct pcapng_options *options) {
    enum { OPTION_HEADER = 4 };
    if (options->left < OPTION_HEADER)
        return false;
    const uint8_t *p = options->cursor;
    struct pcapng_option *option = &options->current;
    option->code = options->big_endian ? load_be16(p) : load_le16(p);
    option->length = options->big_endian ? load_be16(p + 2) : load_le16(p + 2);
    option->value = p + OPTION_HEADER;
    if (option->code == OPTION_END)
        return false;
    options->lied = option->length > options->left - OPTION_HEADER;
    if (options->lied)
        return false;
    size_t padded = OPTION_HEADER + (((size_t)option->length + 3) & ~(size_t)3);
    size_t step = padded < options->left ? padded : options->left;
    options->cursor += step;
    options->left -= step;
    return true;
}

static inline uint32_t pcapng_load_u32(const uint8_t *p, bool big_endian) {
    return big_endian ? load_be32(p) : load_le32(p);
}

static inline uint64_t pcapng_load_u64(const uint8_t *p, bool big_endian) {
    return big_endian ? load_be64(p) : load_le64(p);
}

#endif
