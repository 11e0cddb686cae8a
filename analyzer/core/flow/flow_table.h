/* SPDX-License-Identifier: Apache-2.0 */
/* The live flows: found by key, finished when they have been silent for their time, or the longest
 * silent first when there are too many. */
#ifndef WIRETALE_FLOW_TABLE_H
#define WIRETALE_FLOW_TABLE_H

#include "flow/flow.h"

#define LINE_BYTES 64 /* of a cache */

/* Flows are parted by their hashes. While one thread begins or ends flows others may search parts
 * that these are not of. */
#define FLOW_PART_BITS 6
#define FLOW_PARTS     (1u << FLOW_PART_BITS)

static inline unsigned flow_part(uint32_t hash) {
    return hash >> (32 - FLOW_PART_BITS);
}

struct flow_table;

/* At most `most` live flows. NULL without memory. */
struct flow_table *flow_table_open(uint32_t most, bool huge);
void flow_table_close(struct flow_table *table);

uint32_t flow_key_hash(const struct flow_table *table, const struct flow_key *key);
/* Start loading what will be read, each a few packets after the one before: the slot, the flow,
 * what the flow points to. */
void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_flow(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_lists(const struct flow_table *table, uint32_t hash);
struct flow *flow_table_find(const struct flow_table *table, uint32_t hash,
                             const struct flow_key *key);

/* A new flow, all zero but for its key and hash; NULL when the table is full or memory ended. */
struct flow *flow_table_add(struct flow_table *table, uint32_t hash, const struct flow_key *key,
                            int64_t due_ns);
void flow_table_remove(struct flow_table *table, struct flow *flow);
uint32_t flow_table_count(const struct flow_table *table);

/* The next flow whose time is over at `now_ns`, or NULL. `due_of` tells when a flow's is; it may
 * have moved on since it was last asked. The caller removes what it gets. Called before the first
 * flow is added, it sets the clock. */
typedef int64_t flow_due(const struct flow *flow);
struct flow *flow_table_expired(struct flow_table *table, int64_t now_ns, flow_due *due_of);
/* About the flow that will be due first, whatever the time; NULL in an empty table. */
struct flow *flow_table_oldest(struct flow_table *table, flow_due *due_of);

/* Any live flow in the order of memory, from *place on; NULL after the last. Memory behind the
 * place is given back: this is for the end only, and nothing but this and close may follow. */
struct flow *flow_table_drain(struct flow_table *table, size_t *place);

#endif
