/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from encapsulation stacks to numbers. Stacks are stored in chunks that never move,
 * because other threads may read a stack while one is added; they are never removed. Buckets hold
 * numbers, are probed linearly and are at most half full. Consecutive packets mostly have the same
 * stack, so the last one is compared first. At PATHS_MOST stacks, new ones get the last number:
 * flows that differ only in such a stack become one. */
#include "flow/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/hash.h"

#define BUCKETS_LEAST 256u
#define CHUNK_PATHS   256u
#define EMPTY         0 /* number of the empty path, which no bucket holds */

struct path {
    unsigned depth;
    struct path_step steps[PATH_DEPTH_MAX];
};

struct encapsulation_table {
    struct path *chunks[PATHS_MOST /
                        CHUNK_PATHS]; /* a path never moves, because other threads may read it */
    uint32_t count;
    uint32_t last;
    uint32_t *buckets; /* linear probing; at most half of them are used */
    uint32_t mask;
    uint64_t seed[2];
};

static const char *const kind_names[] = {
    [PATH_VLAN] = "vlan", [PATH_MPLS] = "mpls",   [PATH_PPPOE] = "pppoe",   [PATH_GRE] = "gre",
    [PATH_IPIP] = "ipip", [PATH_VXLAN] = "vxlan", [PATH_GENEVE] = "geneve",
};

static struct path *path_at(const struct encapsulation_table *table, uint32_t number) {
    return &table->chunks[number / CHUNK_PATHS][number % CHUNK_PATHS];
}

/* Returns false without memory. calloc() makes path 0 the empty one. */
static bool make_chunk(struct encapsulation_table *table, uint32_t chunk) {
    if (!table->chunks[chunk])
        table->chunks[chunk] = calloc(CHUNK_PATHS, sizeof(struct path));
    return table->chunks[chunk];
}

struct encapsulation_table *encapsulation_table_open(void) {
    struct encapsulation_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->count = 1;
    hash_seed_fill(table->seed, sizeof table->seed / sizeof *table->seed);
    if (make_chunk(table, 0))
        return table;
    free(table);
    return NULL;
}

void encapsulation_table_close(struct encapsulation_table *table) {
    for (size_t i = 0; i < sizeof table->chunks / sizeof *table->chunks; i++)
        free(table->chunks[i]);
    free(table->buckets);
    free(table);
}

static bool same(const struct path *path, const struct path_step *steps, unsigned depth) {
    return path->depth == depth && !memcmp(path->steps, steps, depth * sizeof *steps);
}

/* The steps are folded one by one with a seed, because a sender chooses VLAN ids and VNIs. */
static uint32_t hash_of(const struct encapsulation_table *table, const struct path_step *steps,
                        unsigned depth) {
    uint64_t hash = table->seed[0];
    for (unsigned i = 0; i < depth; i++)
        hash = hash_fold(hash ^ ((uint64_t)steps[i].kind << 32 | steps[i].id), table->seed[1]);
    return (uint32_t)hash;
}

/* Returns the bucket of the path, or the empty one at which its search ends. */
static uint32_t *bucket_of(const struct encapsulation_table *table, const struct path_step *steps,
                           unsigned depth) {
    uint32_t at = hash_of(table, steps, depth) & table->mask;
    while (table->buckets[at] != EMPTY && !same(path_at(table, table->buckets[at]), steps, depth))
        at = (at + 1) & table->mask;
    return &table->buckets[at];
}

/* Makes room for one more path, unless the table is full. Returns false without memory. */
static bool grow(struct encapsulation_table *table) {
    uint32_t room = table->buckets ? table->mask + 1 : 0, *old = table->buckets;
    if (table->count < room / 2 || table->count == PATHS_MOST)
        return true;
    uint32_t wider = room ? room * 2 : BUCKETS_LEAST;
    uint32_t *buckets = calloc(wider, sizeof *buckets);
    if (!buckets)
        return false;
    table->buckets = buckets;
    table->mask = wider - 1;
    for (uint32_t number = 1; number < table->count; number++) {
        const struct path *path = path_at(table, number);
        *bucket_of(table, path->steps, path->depth) = number;
    }
    free(old);
    return true;
}

/* Adds the path at an empty bucket. If there is no room, the last path stands for it. */
static uint32_t add(struct encapsulation_table *table, uint32_t *bucket,
                    const struct path_step *steps, unsigned depth) {
    if (table->count == PATHS_MOST || !make_chunk(table, table->count / CHUNK_PATHS))
        return table->count - 1;
    struct path *path = path_at(table, table->count);
    *path = (struct path){.depth = depth};
    memcpy(path->steps, steps, depth * sizeof *steps);
    return *bucket = table->count++;
}

uint32_t encapsulation_table_number(struct encapsulation_table *table,
                                    const struct path_step *steps, unsigned depth) {
    if (!depth)
        return EMPTY;
    if (same(path_at(table, table->last), steps, depth))
        return table->last;
    if (!grow(table))
        return EMPTY;
    uint32_t *bucket = bucket_of(table, steps, depth);
    return table->last = *bucket != EMPTY ? *bucket : add(table, bucket, steps, depth);
}

void encapsulation_table_text(const struct encapsulation_table *table, uint32_t number,
                              char text[PATH_TEXT_MAX]) {
    const struct path *path = path_at(table, number);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < path->depth && used < PATH_TEXT_MAX; i++) {
        const struct path_step *step = &path->steps[i];
        used += (size_t)snprintf(text + used, PATH_TEXT_MAX - used,
                                 step->kind == PATH_IPIP ? "%s%s" : "%s%s %u", i ? " / " : "",
                                 kind_names[step->kind], step->id);
    }
}
