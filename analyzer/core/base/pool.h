/* SPDX-License-Identifier: Apache-2.0 */
/* A pool allocator per thread, charged against one memory limit: all lists that grow with flows
 * come from it.
 *
 * Blocks are cut from huge pages and return to a free list of their size class; pool_close()
 * returns everything to the kernel. {.most = N} is an empty pool of N bytes. Pools of several
 * threads share a limit if {.budget = &left} is set: each takes grants from it. A block may be
 * freed through another pool than allocated it; then `used` is correct only in the sum over the
 * pools, modulo its range. */
#ifndef WIRETALE_POOL_H
#define WIRETALE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SIZES 64 /* size classes: four per doubling, from 32 bytes */

struct pool {
    size_t used, most;     /* bytes */
    atomic_size_t *budget; /* bytes by which `most` may still grow; NULL for none */
    bool small_pages;      /* for a short capture, which would waste huge pages */
    void *free[POOL_SIZES];
    void *chunks; /* a list: each begins with the address of the one before */
    uint8_t *cursor;
    size_t left; /* bytes of the newest chunk */
};

/* Returns `size` uninitialized bytes, or NULL if the limit is reached or memory has run out. */
void *pool_alloc(struct pool *pool, size_t size);
void pool_free(struct pool *pool, void *block, size_t size);
/* Returns unused grants to the budget. */
void pool_return_unused(struct pool *pool);
/* Frees the pool with every block of it. */
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
