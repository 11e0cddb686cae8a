/* SPDX-License-Identifier: Apache-2.0 */
/* Append-only bytes in chunks, addressed by a 64-bit offset that stays valid. */
#ifndef WIRETALE_ARENA_H
#define WIRETALE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_CHUNK (2u << 20) /* bytes; nothing larger can be reserved at once */

struct arena {
    uint8_t **chunks;
    size_t chunk_count, chunk_room;
    size_t used; /* of the last chunk */
};

/* A place for `size` bytes (at most ARENA_CHUNK), or NULL without memory; `*offset` is its address.
 * arena_trim() gives back what of it was not needed. */
uint8_t *arena_reserve(struct arena *arena, size_t size, uint64_t *offset);
void arena_trim(struct arena *arena, size_t unused);
void arena_free(struct arena *arena);

static inline const uint8_t *arena_at(const struct arena *arena, uint64_t offset) {
    return arena->chunks[offset / ARENA_CHUNK] + offset % ARENA_CHUNK;
}

#endif
