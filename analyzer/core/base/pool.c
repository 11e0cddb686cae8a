/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/huge_pages.h"

#define SIZE_LEAST ((size_t)32)        /* bytes; a free block holds the address of the next */
#define SIZE_MOST  ((size_t)128 << 10) /* larger blocks are malloc's */
#define CHUNK_HEAD SIZE_LEAST
#define GRANT      ((size_t)1 << 20) /* bytes from the pool at once */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define EACH_BY_MALLOC true
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define EACH_BY_MALLOC true
#endif
#ifndef EACH_BY_MALLOC
#define EACH_BY_MALLOC false /* a sanitizer sees steps beyond a block only in malloc's */
#endif

/* The number of a size and the bytes of its blocks: 32, 40, 48, 56, 64, 80, ... */
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

static bool add_chunk(struct allowance *allowance) {
    uint8_t *chunk = huge_pages_map(HUGE_PAGE, !allowance->small_pages);
    if (!chunk)
        return false;
    memcpy(chunk, &allowance->chunks, sizeof allowance->chunks);
    allowance->chunks = chunk;
    allowance->cursor = chunk + CHUNK_HEAD;
    allowance->left = HUGE_PAGE - CHUNK_HEAD;
    return true;
}

static void *take_block(struct allowance *allowance, size_t size) {
    size_t bytes;
    unsigned number = size_number(size, &bytes);
    void *block = allowance->free[number];
    if (block) {
        memcpy(&allowance->free[number], block, sizeof block);
        return block;
    }
    if (allowance->left < bytes && !add_chunk(allowance))
        return NULL;
    block = allowance->cursor;
    allowance->cursor += bytes;
    allowance->left -= bytes;
    return block;
}

/* `size` bytes more from the pool, or a whole grant if there is one. */
static bool extend(struct allowance *allowance, size_t size) {
    size_t wanted, left = allowance->pool ? *allowance->pool : 0;
    do {
        if (size > left)
            return false;
        wanted = size < GRANT && left >= GRANT ? GRANT : size;
    } while (!atomic_compare_exchange_weak(allowance->pool, &left, left - wanted));
    allowance->most += wanted;
    return true;
}

void allowance_settle(struct allowance *allowance) {
    *allowance->pool += allowance->most - allowance->used;
    allowance->most = allowance->used;
}

void *allowance_take(struct allowance *allowance, size_t size) {
    if (size > allowance->most - allowance->used && !extend(allowance, size))
        return NULL;
    void *block = is_apart(size) ? malloc(size) : take_block(allowance, size);
    allowance->used += block ? size : 0;
    return block;
}

void allowance_give(struct allowance *allowance, void *block, size_t size) {
    size_t bytes;
    allowance->used -= size;
    if (is_apart(size)) {
        free(block);
        return;
    }
    unsigned number = size_number(size, &bytes);
    memcpy(block, &allowance->free[number], sizeof block);
    allowance->free[number] = block;
}

void allowance_close(struct allowance *allowance) {
    while (allowance->chunks) {
        void *chunk = allowance->chunks;
        memcpy(&allowance->chunks, chunk, sizeof chunk);
        munmap(chunk, HUGE_PAGE);
    }
    *allowance = (struct allowance){
        .most = allowance->most, .pool = allowance->pool, .small_pages = allowance->small_pages};
}

bool allowance_grow(struct allowance *allowance, void **list, uint32_t *room, size_t element,
                    uint32_t first, uint32_t most_room) {
    uint32_t wanted = *room ? *room * 2 : first;
    return allowance_grow_to(allowance, list, room, element,
                             wanted < most_room ? wanted : most_room);
}

bool allowance_grow_to(struct allowance *allowance, void **list, uint32_t *room, size_t element,
                       uint32_t wanted) {
    void *grown = wanted > *room ? allowance_take(allowance, wanted * element) : NULL;
    if (!grown)
        return false;
    if (*list) {
        memcpy(grown, *list, *room * element);
        allowance_give(allowance, *list, *room * element);
    }
    *list = grown;
    *room = wanted;
    return true;
}
