/* SPDX-License-Identifier: Apache-2.0 */
/* Pool allocators, charged against one memory limit: all lists that grow with flows come from them.
 *
 * Blocks return to a free list of their size class, so that a pool takes no more memory than its
 * blocks needed at any time. {.own.most = N} is an empty pool of N bytes. Other pools share a
 * memory: its huge pages, of which each takes spans, and its limit, of which the allowance that a
 * pool is charged to takes grants. A pool and its allowance belong to one thread at a time. A block
 * may be freed through another pool, or be charged to another allowance, than when it was
 * allocated; then `used` is correct only in the sum over the allowances, modulo its range. */
#ifndef WIRETALE_POOL_H
#define WIRETALE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SIZES 64 /* size classes: four per doubling, from 32 bytes */

/* Memory from the kernel, from which spans are cut one after another. */
struct pool_chunks {
    void *newest;     /* a list: each begins with the address of the one before */
    size_t used;      /* bytes of the newest chunk */
    bool small_pages; /* for a short capture, which would waste huge pages */
};

struct pool_memory {
    atomic_size_t left;   /* bytes by which `most` of all allowances may still grow */
    pthread_mutex_t lock; /* of the chunks */
    struct pool_chunks chunks;
};

struct allowance {
    size_t used, most;          /* bytes */
    struct pool_memory *memory; /* NULL if `most` is final */
};

struct pool {
    struct allowance *charged; /* NULL: `own`, and chunks of its own */
    struct allowance own;
    struct pool_chunks chunks;
    void *free[POOL_SIZES];
    uint8_t *cursor;
    size_t left; /* bytes of the newest span */
};

void pool_memory_open(struct pool_memory *memory, size_t most, bool small_pages);
/* Frees all blocks of pools with this memory, which must not be used again. */
void pool_memory_close(struct pool_memory *memory);

/* Returns `size` uninitialized bytes, or NULL if the limit is reached or memory has run out. */
void *pool_alloc(struct pool *pool, size_t size);
/* The same, all zero. */
void *pool_zeroed(struct pool *pool, size_t size);
void pool_free(struct pool *pool, void *block, size_t size);
/* Returns unused grants to the memory. */
void allowance_return_unused(struct allowance *allowance);
/* Frees the chunks of its own with every block of them. */
void pool_close(struct pool *pool);

/* Doubles a list from `*room` elements (to `first` if it is empty), to at most `most_room`.
 * Returns false and leaves the list as it was if it cannot grow. */
bool pool_grow(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t first,
               uint32_t most_room);

/* The same up to `wanted` elements. */
bool pool_grow_to(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t wanted);

static inline void pool_release(struct pool *pool, void *list, size_t room, size_t element) {
    if (list)
        pool_free(pool, list, room * element);
}

#endif
