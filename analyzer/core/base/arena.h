/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in huge pages, and an arena of it: append-only bytes in chunks, addressed by a 64-bit
 * offset that stays valid. Lists from malloc() that double.
 *
 * With `to_disk`, a full chunk is written to a file without a name and mapped in its place, so that
 * only what is read of it takes memory. Its bytes can't be changed then.
 *
 * State that is accessed in random order costs fewer TLB misses in huge pages, and fewer page
 * faults when it is first used. The kernel may give small pages instead. */
#ifndef WIRETALE_ARENA_H
#define WIRETALE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* Returns `size` zero bytes, or NULL without memory; the caller releases them with munmap(). If
 * `huge`, they are aligned to a huge page; otherwise the pages stay small until
 * huge_pages_ask(), because a sparsely used range would waste huge ones. */
void *huge_pages_map(size_t size, bool huge);

/* Asks the kernel for huge pages for all whole ones of the range that have not been touched yet. */
void huge_pages_ask(void *memory, size_t size);

/* Makes room for `needed` elements in a list from malloc(), by doubling; `list` is the address of
 * its pointer. Returns false without memory; the list stays as it was. */
bool list_grow(void *list, size_t *room, size_t needed, size_t element);

#define ARENA_CHUNK (2u << 20) /* bytes; nothing larger can be reserved at once */

struct arena {
    uint8_t **chunks;
    size_t chunk_count, chunk_room;
    size_t used;  /* bytes of the last chunk */
    bool to_disk; /* full chunks become files */
    size_t files; /* the first chunks that are files */
};

/* Reserves `size` bytes (at most ARENA_CHUNK) and sets `*offset` to their address. Returns NULL
 * without memory. If fewer bytes were needed, arena_trim() must return the rest before the next
 * reservation. */
uint8_t *arena_reserve(struct arena *arena, size_t size, uint64_t *offset);
void arena_trim(struct arena *arena, size_t unused);
void arena_free(struct arena *arena);

/* Gives back the memory of chunks that are files and were read. Any thread may read them meanwhile,
 * because the kernel reads them again. */
void arena_release(const struct arena *arena);

/* Returns the bytes at an offset of arena_reserve(). A reservation never crosses chunks, so that
 * its bytes are consecutive. */
static inline const uint8_t *arena_at(const struct arena *arena, uint64_t offset) {
    return arena->chunks[offset / ARENA_CHUNK] + offset % ARENA_CHUNK;
}

#endif
