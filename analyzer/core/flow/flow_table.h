/* SPDX-License-Identifier: Apache-2.0 */
/* The live flows: found by key, returned when they have been silent for long enough, or the
 * longest silent first if there are too many. */
#ifndef WIRETALE_FLOW_TABLE_H
#define WIRETALE_FLOW_TABLE_H

#include "flow/flow.h"

#define LINE_BYTES 64 /* bytes of a cache line */

/* Flows are divided into shards by hash. While one thread inserts or removes flows, others may
 * search other shards. */
#define FLOW_PART_BITS 6
#define FLOW_PARTS     (1u << FLOW_PART_BITS)

static inline unsigned flow_part(uint32_t hash) {
    return hash >> (32 - FLOW_PART_BITS);
}

struct flow_table;

/* Opens a table for at most `most` live flows; `huge` asks for huge pages, which waste memory if a
 * capture has few flows. Returns NULL without memory. */
struct flow_table *flow_table_open(uint32_t most, bool huge);
void flow_table_close(struct flow_table *table);

/* Returns the seeded hash of a key: the argument of the functions below, valid in this table. */
uint32_t flow_key_hash(const struct flow_table *table, const struct flow_key *key);
/* Prefetch the slot, the flow, and the lists of the flow; each must be called some packets after
 * the one before. */
void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_flow(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_lists(const struct flow_table *table, uint32_t hash);
/* Returns the live flow of a key whose hash is `hash`, or NULL. */
struct flow *flow_table_find(const struct flow_table *table, uint32_t hash,
                             const struct flow_key *key);

/* Adds a flow, all zero except key and hash. Returns NULL if the table is full or memory has run
 * out. */
struct flow *flow_table_add(struct flow_table *table, uint32_t hash, const struct flow_key *key,
                            int64_t due_ns);
/* Removes a live flow; its place may be reused by the next flow_table_add(). */
void flow_table_remove(struct flow_table *table, struct flow *flow);
uint32_t flow_table_count(const struct flow_table *table);

/* Returns the next flow that is due at `now_ns`, or NULL. `due_of` computes when a flow is due.
 * The caller must remove the flow. Called before the first flow is added, it sets the clock. */
typedef int64_t flow_due(const struct flow *flow);
struct flow *flow_table_expired(struct flow_table *table, int64_t now_ns, flow_due *due_of);
/* Returns about the flow that is due first; NULL if the table is empty. */
struct flow *flow_table_oldest(struct flow_table *table, flow_due *due_of);

/* Returns a live flow in memory order, from *place on; NULL after the last. Memory before the
 * place is released, so only this function and flow_table_close() may follow. */
struct flow *flow_table_drain(struct flow_table *table, size_t *place);

#endif
