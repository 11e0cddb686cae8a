/* SPDX-License-Identifier: Apache-2.0 */
/* Size classes grow by quarters of a doubling, so that a block wastes less than a fifth of its
 * bytes. A free block holds the address of the next of its class; memcpy() moves the addresses,
 * because blocks have no type. The rest of a chunk is given up if the next block does not fit. A
 * pool belongs to one thread; only the budget is shared. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"

#define SIZE_LEAST ((size_t)32)        /* bytes; a free block holds the address of the next */
#define SIZE_MOST  ((size_t)128 << 10) /* larger blocks come from malloc */
#define CHUNK_HEAD SIZE_LEAST
#define GRANT      ((size_t)1 << 20) /* bytes taken from the budget at once */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define EACH_BY_MALLOC true
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define EACH_BY_MALLOC true
#endif
#ifndef EACH_BY_MALLOC
/* A sanitizer detects steps beyond a block only if malloc allocated it. */
#define EACH_BY_MALLOC false
#endif

/* Returns the number of a size class and sets the bytes of its blocks: 32, 40, 48, 56, 64, 80,
 * ... */
static unsigned size_number(size_t size, size_t *bytes) {
    if (size <= SIZE_LEAST) {
        *bytes = SIZE_LEAST;
        return 0;
    }
    unsigned doubling = 63 - (unsigned)__builtin_clzll(size - 1);
    size_t quarter = ((size_t)1 << doubling) / 4;
    size_t quarters = (size + quarter - 1) / quarter; /* 5 to 8 */
    *bytes = quarters * quarter;
    return (doubling - 5) * 4 + (unsigned)quarters - 4;
}

static bool is_apart(size_t size) {
    return EACH_BY_MALLOC || size > SIZE_MOST;
}

static bool add_chunk(struct pool *pool) {
    uint8_t *chunk = huge_pages_map(HUGE_PAGE, !pool->small_pages);
    if (!chunk)
        return false;
    memcpy(chunk, &pool->chunks, sizeof pool->chunks);
    pool->chunks = chunk;
    pool->cursor = chunk + CHUNK_HEAD;
    pool->left = HUGE_PAGE - CHUNK_HEAD;
    return true;
}

/* Returns a block of the class of `size`: a freed one if there is any, because it is likelier in
 * the cache. */
static void *take_block(struct pool *pool, size_t size) {
    size_t bytes;
    unsigned number = size_number(size, &bytes);
    void *block = pool->free[number];
    if (block) {
        memcpy(&pool->free[number], block, sizeof block);
        return block;
    }
    if (pool->left < bytes && !add_chunk(pool))
        return NULL;
    block = pool->cursor;
    pool->cursor += bytes;
    pool->left -= bytes;
    return block;
}

/* Takes `size` bytes more from the budget, or a whole grant if there is one. */
static bool extend(struct pool *pool, size_t size) {
    size_t wanted, left = pool->budget ? *pool->budget : 0;
    do {
        if (size > left)
            return false;
        wanted = size < GRANT && left >= GRANT ? GRANT : size;
    } while (!atomic_compare_exchange_weak(pool->budget, &left, left - wanted));
    pool->most += wanted;
    return true;
}

/* The threads should return their grants between batches; otherwise one thread could fail while
 * another holds memory that it does not use. */
void pool_return_unused(struct pool *pool) {
    *pool->budget += pool->most - pool->used;
    pool->most = pool->used;
}

void *pool_alloc(struct pool *pool, size_t size) {
    if (size > pool->most - pool->used && !extend(pool, size))
        return NULL;
    void *block = is_apart(size) ? malloc(size) : take_block(pool, size);
    pool->used += block ? size : 0;
    return block;
}

void pool_free(struct pool *pool, void *block, size_t size) {
    size_t bytes;
    pool->used -= size;
    if (is_apart(size)) {
        free(block);
        return;
    }
    unsigned number = size_number(size, &bytes);
    memcpy(block, &pool->free[number], sizeof block);
    pool->free[number] = block;
}

void pool_close(struct pool *pool) {
    while (pool->chunks) {
        void *chunk = pool->chunks;
        memcpy(&pool->chunks, chunk, sizeof chunk);
        munmap(chunk, HUGE_PAGE);
    }
    *pool =
        (struct pool){.most = pool->most, .budget = pool->budget, .small_pages = pool->small_pages};
}

bool pool_grow(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t first,
               uint32_t most_room) {
    uint32_t wanted = *room ? *room * 2 : first;
    return pool_grow_to(pool, list, room, element, wanted < most_room ? wanted : most_room);
}

/* Both lists exist while elements are copied, so the limit must have room for the sum of their
 * sizes. */
bool pool_grow_to(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t wanted) {
    void *grown = wanted > *room ? pool_alloc(pool, wanted * element) : NULL;
    if (!grown)
        return false;
    if (*list) {
        memcpy(grown, *list, *room * element);
        pool_free(pool, *list, *room * element);
    }
    *list = grown;
    *room = wanted;
    return true;
}
