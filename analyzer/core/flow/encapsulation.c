/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from encapsulation stacks to numbers. Stacks never move, because other threads may
 * read one while another is added; they are never removed. The table has its greatest size from the
 * beginning: the kernel provides a page of it when it is first written. Buckets hold numbers, are
 * probed linearly and are at most half full. A bucket is set after its stack, and then never
 * changes. At PATHS_MOST stacks, new ones get the last number: flows that differ only in such a
 * stack become one. */
#include "flow/flow.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "common/hash.h"

#define BUCKETS (2 * PATHS_MOST)
#define EMPTY   0 /* number of the empty path, which no bucket holds */

struct path {
    unsigned depth;
    struct path_step steps[PATH_DEPTH_MAX];
};

struct encapsulation_table {
    uint32_t count;
    uint64_t seed[2];
    uint32_t buckets[BUCKETS];
    struct path paths[PATHS_MOST]; /* paths[0] is the empty one */
};

static const char *const kind_names[] = {
    [PATH_VLAN] = "vlan",     [PATH_MPLS] = "mpls",     [PATH_PPPOE] = "pppoe",
    [PATH_GRE] = "gre",       [PATH_IPIP] = "ipip",     [PATH_VXLAN] = "vxlan",
    [PATH_GENEVE] = "geneve", [PATH_PBB] = "pbb",       [PATH_ETHER_IP] = "etherip",
    [PATH_PIM] = "pim",       [PATH_GTP_U] = "gtp-u",   [PATH_TEREDO] = "teredo",
    [PATH_AYIYA] = "ayiya",   [PATH_CAPWAP] = "capwap", [PATH_LISP] = "lisp",
    [PATH_AMT] = "amt",       [PATH_L2TP] = "l2tp",
};

static bool has_id(uint32_t kind) {
    return kind != PATH_IPIP && kind <= PATH_LISP;
}

struct encapsulation_table *encapsulation_table_open(void) {
    struct encapsulation_table *table = huge_pages_map(sizeof *table, false);
    if (!table)
        return NULL;
    table->count = 1;
    hash_seed_fill(table->seed, sizeof table->seed / sizeof *table->seed);
    return table;
}

void encapsulation_table_close(struct encapsulation_table *table) {
    munmap(table, sizeof *table);
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

/* Finds the bucket of the path, or the empty one at which its search ends. Returns its content. */
static uint32_t search(const struct encapsulation_table *table, const struct path_step *steps,
                       unsigned depth, uint32_t *bucket) {
    uint32_t at = hash_of(table, steps, depth) % BUCKETS, number;
    while ((number = __atomic_load_n(&table->buckets[at], __ATOMIC_ACQUIRE)) != EMPTY &&
           !same(&table->paths[number], steps, depth))
        at = (at + 1) % BUCKETS;
    *bucket = at;
    return number;
}

/* The table is full for ever, and its last path was added before it was. */
NOINLINE bool encapsulation_table_find(const struct encapsulation_table *table,
                                       const struct path_step *steps, unsigned depth,
                                       uint32_t *number) {
    uint32_t bucket, count = __atomic_load_n(&table->count, __ATOMIC_ACQUIRE);
    *number = depth ? search(table, steps, depth, &bucket) : EMPTY;
    if (depth && *number == EMPTY && count == PATHS_MOST)
        *number = PATHS_MOST - 1; /* the last path stands for it */
    return !depth || *number != EMPTY;
}

uint32_t encapsulation_table_number(struct encapsulation_table *table,
                                    const struct path_step *steps, unsigned depth) {
    uint32_t number, bucket;
    if (encapsulation_table_find(table, steps, depth, &number))
        return number;
    search(table, steps, depth, &bucket);
    number = table->count;
    table->paths[number].depth = depth;
    memcpy(table->paths[number].steps, steps, depth * sizeof *steps);
    __atomic_store_n(&table->buckets[bucket], number, __ATOMIC_RELEASE);
    __atomic_store_n(&table->count, number + 1, __ATOMIC_RELEASE);
    return number;
}

void encapsulation_table_text(const struct encapsulation_table *table, uint32_t number,
                              char text[PATH_TEXT_MAX]) {
    const struct path *path = &table->paths[number];
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < path->depth && used < PATH_TEXT_MAX; i++) {
        const struct path_step *step = &path->steps[i];
        used += (size_t)snprintf(text + used, PATH_TEXT_MAX - used,
                                 has_id(step->kind) ? "%s%s %u" : "%s%s", i ? " / " : "",
                                 kind_names[step->kind], step->id);
    }
}
