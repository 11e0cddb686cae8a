/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in huge pages, and an arena of it: append-only bytes in chunks, addressed by a 64-bit
 * offset that stays valid.
 *
 * State that is accessed in random order costs fewer TLB misses in huge pages, and fewer page
 * faults when it is first used. The kernel may give small pages instead. */
#ifndef WIRETALE_ARENA_H
#define WIRETALE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* `size` zero bytes, or NULL; to be released with munmap(). If `huge`, they are aligned to a huge
 * page; otherwise the pages are small until huge_pages_ask(), so that a little used range costs
 * little. */
void *huge_pages_map(size_t size, bool huge);

/* Asks for huge pages wherever a whole one of the range has not been touched yet. */
void huge_pages_ask(void *memory, size_t size);

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
