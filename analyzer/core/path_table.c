/* SPDX-License-Identifier: Apache-2.0 */
#include "path_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS (1u << 17)
#define EMPTY   0 /* number of the empty path, which is never in a bucket */

struct path {
    unsigned depth;
    struct path_step steps[PATH_DEPTH_MAX];
};

struct path_table {
    struct path
        *paths; /* room for all, so that no path ever moves; the kernel gives what is used */
    uint32_t count;
    uint32_t last;
    uint32_t *buckets; /* made with the first path */
};

static const char *const kind_names[] = {
    [PATH_VLAN] = "vlan", [PATH_MPLS] = "mpls",   [PATH_PPPOE] = "pppoe",   [PATH_GRE] = "gre",
    [PATH_IPIP] = "ipip", [PATH_VXLAN] = "vxlan", [PATH_GENEVE] = "geneve",
};

struct path_table *path_table_open(void) {
    struct path_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->count = 1;
    table->paths = calloc(PATHS_MOST, sizeof *table->paths);
    if (table->paths)
        return table;
    free(table);
    return NULL;
}

void path_table_close(struct path_table *table) {
    free(table->paths);
    free(table->buckets);
    free(table);
}

static bool same(const struct path *path, const struct path_step *steps, unsigned depth) {
    return path->depth == depth && !memcmp(path->steps, steps, depth * sizeof *steps);
}

static uint32_t bucket_of(const struct path_step *steps, unsigned depth) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a over the steps' numbers */
    for (unsigned i = 0; i < depth; i++) {
        hash = (hash ^ steps[i].kind) * UINT64_C(0x100000001B3);
        hash = (hash ^ steps[i].id) * UINT64_C(0x100000001B3);
    }
    return (uint32_t)(hash >> 32 ^ hash) % BUCKETS;
}

/* Adds the path at an empty bucket; without room, the last path stands for it. */
static uint32_t add(struct path_table *table, uint32_t *bucket, const struct path_step *steps,
                    unsigned depth) {
    if (table->count == PATHS_MOST)
        return PATHS_MOST - 1;
    struct path *path = &table->paths[table->count];
    *path = (struct path){.depth = depth};
    memcpy(path->steps, steps, depth * sizeof *steps);
    return *bucket = table->count++;
}

uint32_t path_table_number(struct path_table *table, const struct path_step *steps,
                           unsigned depth) {
    if (!depth)
        return EMPTY;
    if (same(&table->paths[table->last], steps, depth))
        return table->last;
    if (!table->buckets && !(table->buckets = calloc(BUCKETS, sizeof *table->buckets)))
        return EMPTY;
    uint32_t at = bucket_of(steps, depth);
    while (table->buckets[at] != EMPTY && !same(&table->paths[table->buckets[at]], steps, depth))
        at = (at + 1) % BUCKETS;
    uint32_t number = table->buckets[at];
    return table->last = number != EMPTY ? number : add(table, &table->buckets[at], steps, depth);
}

void path_table_text(const struct path_table *table, uint32_t number, char text[PATH_TEXT_MAX]) {
    const struct path *path = &table->paths[number];
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < path->depth && used < PATH_TEXT_MAX; i++) {
        const struct path_step *step = &path->steps[i];
        used += (size_t)snprintf(text + used, PATH_TEXT_MAX - used,
                                 step->kind == PATH_IPIP ? "%s%s" : "%s%s %u", i ? " / " : "",
                                 kind_names[step->kind], step->id);
    }
}
