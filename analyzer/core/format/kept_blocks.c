/* SPDX-License-Identifier: Apache-2.0 */
/* A block without memory, or past the bound, has the size SIZE_MAX until its end: a file would have
 * to put KEPT_BLOCKS_MAX bytes of blocks between two packets. */
#include "format/kept_blocks.h"

#include <stdlib.h>

#include "base/arena.h"

void kept_begin(struct kept_blocks *kept, uint32_t type) {
    kept->begun = kept->size;
    kept_u32(kept, type);
    kept_u32(kept, 0); /* its length */
}

void kept_bytes(struct kept_blocks *kept, const void *bytes, size_t size) {
    size_t padded = (size + 3) & ~(size_t)3;
    if (kept->size == SIZE_MAX)
        return;
    if (size > KEPT_BLOCKS_MAX || padded > KEPT_BLOCKS_MAX - kept->size ||
        !list_grow(&kept->bytes, &kept->room, kept->size + padded, 1)) {
        kept->size = SIZE_MAX;
        return;
    }
    if (size)
        memcpy(kept->bytes + kept->size, bytes, size);
    memset(kept->bytes + kept->size + size, 0, padded - size);
    kept->size += padded;
}

void kept_u32(struct kept_blocks *kept, uint32_t number) {
    kept_bytes(kept, &number, sizeof number);
}

/* Custom options begin with a number in the order of their section. */
static void kept_option(struct kept_blocks *kept, const struct pcapng_option *option,
                        bool big_endian) {
    enum { PEN_SIZE = 4 };
    bool custom = option->code == OPTION_CUSTOM_TEXT || option->code == OPTION_CUSTOM_BYTES;
    const uint8_t *rest = option->value;
    size_t left = option->length;
    kept_u32(kept, (uint32_t)option->length << 16 | option->code);
    if (custom && left >= PEN_SIZE) {
        kept_u32(kept, load_u32(rest, big_endian));
        rest += PEN_SIZE;
        left -= PEN_SIZE;
    }
    kept_bytes(kept, rest, left);
}

void kept_options(struct kept_blocks *kept, struct pcapng_options options) {
    bool any = false;
    while (pcapng_options_next(&options)) {
        uint16_t code = options.current.code;
        if (code == OPTION_TEXT_UNCOPIED || code == OPTION_BYTES_UNCOPIED)
            continue;
        kept_option(kept, &options.current, options.big_endian);
        any = true;
    }
    if (any)
        kept_u32(kept, OPTION_END);
}

bool kept_end(struct kept_blocks *kept, struct capture_file *file) {
    kept_u32(kept, 0); /* its length again */
    if (kept->size == SIZE_MAX) {
        kept->size = kept->begun;
        return capture_file_set_damage(file,
                                       "no memory for %u MiB of secrets or processes between "
                                       "two packets",
                                       KEPT_BLOCKS_MAX >> 20);
    }
    uint32_t length = (uint32_t)(kept->size - kept->begun);
    memcpy(kept->bytes + kept->begun + 4, &length, sizeof length);
    memcpy(kept->bytes + kept->size - 4, &length, sizeof length);
    return true;
}

void kept_blocks_free(struct kept_blocks *kept) {
    free(kept->bytes);
    kept->bytes = NULL;
    kept->size = kept->room = 0;
}
