/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets are chains of entry numbers. The lists grow by doubling, so that a capture with a few
 * hosts needs some kilobytes; a full list replaces its entries in the order of their addition. */
#include "exchange/keyed_list.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 64u

void keyed_list_init(struct keyed_list *list, size_t entry_size, size_t key_size, uint32_t most) {
    *list = (struct keyed_list){.entry_size = entry_size,
                                .key_words = (uint32_t)(key_size / sizeof(uint64_t)),
                                .most = most};
    hash_seed_fill(list->seeds, 2);
}

void keyed_list_free(struct keyed_list *list) {
    free(list->entries);
    free(list->links);
    free(list->buckets);
    list->entries = NULL;
    list->links = list->buckets = NULL;
    list->count = list->room = 0;
}

/* Returns the bucket of a key: an entry begins with its key. */
static uint32_t *bucket_of(const struct keyed_list *list, const void *key) {
    uint64_t hash = list->seeds[0];
    for (uint32_t i = 0; i < list->key_words; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)key + i * sizeof word, sizeof word);
        hash = hash_fold(hash ^ word, list->seeds[1] | 1);
    }
    return &list->buckets[hash & (2 * list->room - 1)];
}

static bool is_key(const struct keyed_list *list, uint32_t number, const void *key) {
    return !memcmp(keyed_list_at(list, number), key, list->key_words * sizeof(uint64_t));
}

void *keyed_list_find(const struct keyed_list *list, const void *key) {
    if (!list->count)
        return NULL;
    for (uint32_t i = *bucket_of(list, key); i != KEYED_NONE; i = list->links[i])
        if (is_key(list, i, key))
            return keyed_list_at(list, i);
    return NULL;
}

static void link_entry(struct keyed_list *list, uint32_t number) {
    uint32_t *bucket = bucket_of(list, keyed_list_at(list, number));
    list->links[number] = *bucket;
    *bucket = number;
}

static void unlink_entry(struct keyed_list *list, uint32_t number) {
    uint32_t *link = bucket_of(list, keyed_list_at(list, number));
    while (*link != number)
        link = &list->links[*link];
    *link = list->links[number];
}

/* Returns false without memory; the list stays as it is. */
static bool grow(struct keyed_list *list) {
    uint32_t room = list->room ? 2 * list->room : ROOM_FIRST;
    uint8_t *entries = realloc(list->entries, room * list->entry_size);
    if (entries)
        list->entries = entries;
    uint32_t *links = realloc(list->links, room * sizeof *links);
    if (links)
        list->links = links;
    uint32_t *buckets = entries && links ? malloc(2 * (size_t)room * sizeof *buckets) : NULL;
    if (!buckets)
        return false;
    free(list->buckets);
    list->buckets = buckets;
    list->room = room;
    memset(buckets, 0xFF, 2 * (size_t)room * sizeof *buckets);
    for (uint32_t i = 0; i < list->count; i++)
        link_entry(list, i);
    return true;
}

void *keyed_list_replaced(const struct keyed_list *list) {
    return list->count == list->most ? keyed_list_at(list, list->oldest) : NULL;
}

void *keyed_list_add(struct keyed_list *list, const void *key) {
    uint32_t number = list->count;
    if (number == list->most) {
        number = list->oldest;
        list->oldest = (number + 1) % list->most;
        unlink_entry(list, number);
    } else if (number == list->room && !grow(list)) {
        return NULL;
    } else {
        list->count++;
    }
    uint8_t *entry = keyed_list_at(list, number);
    memset(entry, 0, list->entry_size);
    memcpy(entry, key, list->key_words * sizeof(uint64_t));
    link_entry(list, number);
    return entry;
}
