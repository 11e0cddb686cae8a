/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of every list that grows with a flow, and its bound over all flows together.
 *
 * Blocks come from huge pages and go back to a list of free ones of about their size; all are given
 * back to the system at the end. {.most = N} is an empty pool of N bytes. Several of them,
 * each of a thread of its own, may share a bound: {.budget = &left} takes from what is left of it
 * as it needs. A block may be given to another one of these than it was taken from: `used` is then
 * right in the sum, modulo its range.
 */
#ifndef WIRETALE_POOL_H
#define WIRETALE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SIZES 64 /* four for each doubling, from 32 bytes */

struct pool {
    size_t used, most;     /* bytes */
    atomic_size_t *budget; /* bytes that `most` may still grow by; NULL for none */
    bool small_pages;      /* for a short capture: a huge page is more than it needs */
    void *free[POOL_SIZES];
    void *chunks; /* each begins with the address of the one before */
    uint8_t *cursor;
    size_t left; /* of the newest chunk */
};

/* `size` bytes of anything, or NULL at the bound or without memory. */
void *pool_alloc(struct pool *pool, size_t size);
void pool_free(struct pool *pool, void *block, size_t size);
/* What was granted and is not used goes back to the pool. */
void pool_return_unused(struct pool *pool);
/* After this every block is gone. */
void pool_close(struct pool *pool);

/* Doubles a list from `*room` elements (from `first` when it has none) up to `most_room`. Returns
 * false, with the list as it was, when it may not or cannot grow. */
bool pool_grow(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t first,
               uint32_t most_room);

/* The same to `wanted` elements. */
bool pool_grow_to(struct pool *pool, void **list, uint32_t *room, size_t element, uint32_t wanted);

static inline void pool_release(struct pool *pool, void *list, size_t room, size_t element) {
    if (list)
        pool_free(pool, list, room * element);
}

#endif
