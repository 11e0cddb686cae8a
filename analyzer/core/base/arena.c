/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks come from the kernel directly, so that a freed arena leaves the process. */
#include "base/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/huge_pages.h"

#define SMALL_CHUNKS 1 /* small tables take no huge pages */

static bool arena_grow(struct arena *arena) {
    if (arena->chunk_count == arena->chunk_room) {
        size_t room = arena->chunk_room ? arena->chunk_room * 2 : 16;
        uint8_t **chunks = realloc(arena->chunks, room * sizeof *chunks);
        if (!chunks)
            return false;
        arena->chunks = chunks;
        arena->chunk_room = room;
    }
    void *chunk = huge_pages_map(ARENA_CHUNK, arena->chunk_count >= SMALL_CHUNKS);
    if (!chunk)
        return false;
    arena->chunks[arena->chunk_count++] = chunk;
    arena->used = 0;
    return true;
}

uint8_t *arena_reserve(struct arena *arena, size_t size, uint64_t *offset) {
    bool fits = arena->chunk_count && size <= ARENA_CHUNK - arena->used;
    if (size > ARENA_CHUNK || (!fits && !arena_grow(arena)))
        return NULL;
    size_t chunk = arena->chunk_count - 1;
    *offset = (uint64_t)chunk * ARENA_CHUNK + arena->used;
    uint8_t *place = arena->chunks[chunk] + arena->used;
    arena->used += size;
    return place;
}

void arena_trim(struct arena *arena, size_t unused) {
    arena->used -= unused;
}

void arena_free(struct arena *arena) {
    for (size_t i = 0; i < arena->chunk_count; i++)
        munmap(arena->chunks[i], ARENA_CHUNK);
    free(arena->chunks);
    *arena = (struct arena){0};
}
