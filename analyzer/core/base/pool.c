/* SPDX-License-Identifier: Apache-2.0 */
/* Size classes grow by quarters of a doubling, so that a block wastes less than a fifth of its
 * bytes. A free block holds the address of the next of its class; memcpy() moves the addresses,
 * because blocks have no type. The rest of a span is given up if the next block does not fit. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"

#define SIZE_LEAST ((size_t)32) /* bytes; a free block holds the address of the next */
#define SPAN       ((size_t)64 << 10)
#define SIZE_MOST  (SPAN / 2) /* larger blocks come from malloc */
#define CHUNK_HEAD SIZE_LEAST
#define GRANT      ((size_t)1 << 20) /* bytes taken from the limit at once */

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

/* Sets `*size` to the bytes of the next span, of which the first one of a chunk has fewer. Returns
 * NULL without memory. */
static uint8_t *take_span(struct pool_chunks *chunks, size_t *size) {
    if (!chunks->newest || chunks->used == HUGE_PAGE) {
        void *chunk = huge_pages_map(HUGE_PAGE, !chunks->small_pages);
        if (!chunk)
            return NULL;
        memcpy(chunk, &chunks->newest, sizeof chunks->newest);
        chunks->newest = chunk;
        chunks->used = CHUNK_HEAD;
    }
    uint8_t *span = (uint8_t *)chunks->newest + chunks->used;
    *size = SPAN - chunks->used % SPAN;
    chunks->used += *size;
    return span;
}

static void free_chunks(struct pool_chunks *chunks) {
    while (chunks->newest) {
        void *chunk = chunks->newest;
        memcpy(&chunks->newest, chunk, sizeof chunk);
        munmap(chunk, HUGE_PAGE);
    }
}

static bool add_span(struct pool *pool) {
    struct pool_memory *memory = pool->charged ? pool->charged->memory : NULL;
    if (memory)
        pthread_mutex_lock(&memory->lock);
    uint8_t *span = take_span(memory ? &memory->chunks : &pool->chunks, &pool->left);
    if (memory)
        pthread_mutex_unlock(&memory->lock);
    pool->cursor = span;
    pool->left = span ? pool->left : 0;
    return span;
}

void pool_memory_open(struct pool_memory *memory, size_t most, bool small_pages) {
    *memory = (struct pool_memory){.left = most, .chunks.small_pages = small_pages};
    pthread_mutex_init(&memory->lock, NULL);
}

void pool_memory_close(struct pool_memory *memory) {
    free_chunks(&memory->chunks);
    pthread_mutex_destroy(&memory->lock);
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
    if (pool->left < bytes && !add_span(pool))
        return NULL;
    block = pool->cursor;
    pool->cursor += bytes;
    pool->left -= bytes;
    return block;
}

/* Takes `size` bytes more from the shared limit, or a whole grant if there is one. */
static bool extend(struct allowance *allowance, size_t size) {
    struct pool_memory *memory = allowance->memory;
    size_t wanted, left = memory ? memory->left : 0;
    do {
        if (size > left)
            return false;
        wanted = size < GRANT && left >= GRANT ? GRANT : size;
    } while (!atomic_compare_exchange_weak(&memory->left, &left, left - wanted));
    allowance->most += wanted;
    return true;
}

/* Grants should be returned between batches; otherwise one allowance could fail while another holds
 * memory that it does not use. */
void allowance_return_unused(struct allowance *allowance) {
    allowance->memory->left += allowance->most - allowance->used;
    allowance->most = allowance->used;
}

static struct allowance *allowance_of(struct pool *pool) {
    return pool->charged ? pool->charged : &pool->own;
}

void *pool_alloc(struct pool *pool, size_t size) {
    struct allowance *allowance = allowance_of(pool);
    if (size > allowance->most - allowance->used && !extend(allowance, size))
        return NULL;
    void *block = is_apart(size) ? malloc(size) : take_block(pool, size);
    allowance->used += block ? size : 0;
    return block;
}

void *pool_zeroed(struct pool *pool, size_t size) {
    void *block = pool_alloc(pool, size);
    return block ? memset(block, 0, size) : NULL;
}

void pool_free(struct pool *pool, void *block, size_t size) {
    size_t bytes;
    allowance_of(pool)->used -= size;
    if (is_apart(size)) {
        free(block);
        return;
    }
    unsigned number = size_number(size, &bytes);
    memcpy(block, &pool->free[number], sizeof block);
    pool->free[number] = block;
}

void pool_close(struct pool *pool) {
    free_chunks(&pool->chunks);
    *pool = (struct pool){.own.most = pool->own.most, .chunks = pool->chunks};
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
