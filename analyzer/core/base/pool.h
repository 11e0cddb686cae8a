/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of every list that grows with a flow, and its bound over all flows together.
 *
 * Blocks come from huge pages and go back to a list of free ones of about their size; all are given
 * back to the system at the end. {.most = N} is an empty allowance of N bytes. Several of them,
 * each of a thread of its own, may share a bound: {.pool = &left} takes from what is left of it as
 * it needs. A block may be given to another one of these than it was taken from: `used` is then
 * right in the sum, modulo its range.
 */
#ifndef WIRETALE_ALLOWANCE_H
#define WIRETALE_ALLOWANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOWANCE_SIZES 64 /* four for each doubling, from 32 bytes */

struct allowance {
    size_t used, most;   /* bytes */
    atomic_size_t *pool; /* bytes that `most` may still grow by; NULL for none */
    bool small_pages;    /* for a short capture: a huge page is more than it needs */
    void *free[ALLOWANCE_SIZES];
    void *chunks; /* each begins with the address of the one before */
    uint8_t *cursor;
    size_t left; /* of the newest chunk */
};

/* `size` bytes of anything, or NULL at the bound or without memory. */
void *allowance_take(struct allowance *allowance, size_t size);
void allowance_give(struct allowance *allowance, void *block, size_t size);
/* What was granted and is not used goes back to the pool. */
void allowance_settle(struct allowance *allowance);
/* After this every block is gone. */
void allowance_close(struct allowance *allowance);

/* Doubles a list from `*room` elements (from `first` when it has none) up to `most_room`. Returns
 * false, with the list as it was, when it may not or cannot grow. */
bool allowance_grow(struct allowance *allowance, void **list, uint32_t *room, size_t element,
                    uint32_t first, uint32_t most_room);

/* The same to `wanted` elements. */
bool allowance_grow_to(struct allowance *allowance, void **list, uint32_t *room, size_t element,
                       uint32_t wanted);

static inline void allowance_release(struct allowance *allowance, void *list, size_t room,
                                     size_t element) {
    if (list)
        allowance_give(allowance, list, room * element);
}

#endif
