/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are found by their key: a list of bounded length, with a seeded hash over it. The
 * order of entries is that in which they were added, and depends on no hash. */
#ifndef WIRETALE_KEYED_LIST_H
#define WIRETALE_KEYED_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

struct keyed_list {
    uint8_t *entries;  /* `count` of `entry_size` bytes, each of which begins with its key */
    uint32_t *links;   /* by entry: the next one of its bucket, or KEYED_NONE */
    uint32_t *buckets; /* 2 * `room`: the first entry, or KEYED_NONE */
    size_t entry_size;
    uint32_t key_words; /* words of 64 bits, without padding between fields */
    uint32_t count, room, most;
    uint32_t oldest; /* entry that the next one replaces, once there are `most` */
    uint64_t seeds[2];
};

#define KEYED_NONE UINT32_MAX

/* Makes an empty list without allocating. `most` is a power of 2, at least 64. */
void keyed_list_init(struct keyed_list *list, size_t entry_size, size_t key_size, uint32_t most);
void keyed_list_free(struct keyed_list *list);

/* Returns the entry with this key; NULL if there is none. It is valid until the next addition. */
void *keyed_list_find(const struct keyed_list *list, const void *key);
/* Returns the entry that the next addition replaces; NULL if the list is not full. */
void *keyed_list_replaced(const struct keyed_list *list);
/* Adds an entry, which is zero but for its key; no entry may have this key. NULL without memory. */
void *keyed_list_add(struct keyed_list *list, const void *key);

static inline void *keyed_list_at(const struct keyed_list *list, uint32_t number) {
    return list->entries + (size_t)number * list->entry_size;
}

#endif
