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

void kept_options(struct kept_blocks *kept, struct pcapng_options options) {
    bool any = false;
    for (; pcapng_options_next(&options); any = true) {
        kept_u32(kept, (uint32_t)options.current.length << 16 | options.current.code);
        kept_bytes(kept, options.current.value, options.current.length);
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
