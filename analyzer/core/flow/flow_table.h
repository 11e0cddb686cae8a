/* SPDX-License-Identifier: Apache-2.0 */
/* The live flows of a shard: found by key, and returned when they have been silent for long enough.
 */
#ifndef WIRETALE_FLOW_TABLE_H
#define WIRETALE_FLOW_TABLE_H

#include "flow/flow.h"
#include "flow/shard.h"

#define LINE_BYTES 64 /* bytes of a cache line */

#define SHARD_BITS 6
#define SHARDS     (1u << SHARD_BITS)

/* The hashes of a key. */
struct flow_hash {
    uint32_t table; /* argument of the functions below: the shard in its upper bits */
    uint32_t whole; /* all bits depend on all of the key */
};

static inline unsigned shard_of_flow(uint32_t hash) {
    return hash >> (32 - SHARD_BITS);
}

/* The hash leaves out the path if it is one of the first, so that packets of both halves of a flow
 * are processed in their order, and one half is found by the other. */
#define UNHASHED_PATHS 256u

static inline uint64_t hashed_ports(const struct flow_key *key) {
    uint64_t word = flow_key_word(key, 4);
    return key->path < UNHASHED_PATHS ? word & ((UINT64_C(1) << 48) - 1) : word;
}

static inline struct flow_hash flow_key_hash(const struct shard_key *seeds,
                                             const struct flow_key *key) {
    uint64_t first[2] = {flow_key_word(key, 0), flow_key_word(key, 1)};
    uint64_t second[2] = {flow_key_word(key, 2), flow_key_word(key, 3)};
    uint64_t ends = shard_hash(seeds->seed, first, second);
    uint32_t whole = (uint32_t)hash_fold(ends, hashed_ports(key) ^ seeds->seed[2]);
    uint32_t shard = shard_of_hash(ends, SHARDS);
    return (struct flow_hash){shard << (32 - SHARD_BITS) | whole >> SHARD_BITS, whole};
}

/* Memory for the flows of all tables. */
struct flow_memory;

/* Opens memory for `most` flows, and some more that the tables hold in reserve; `huge` asks for
 * huge pages, which waste memory if a capture has few flows. Returns NULL without memory. */
struct flow_memory *flow_memory_open(uint32_t most, bool huge);
void flow_memory_close(struct flow_memory *memory);

/* Returns a live flow of any table, from *place = 0 on; NULL after the last. No other thread may
 * use the tables. */
struct flow *flow_memory_next(const struct flow_memory *memory, uint32_t *place);

/* The flows of all tables in units of memory, for the end of the analysis: any thread may drain a
 * unit. */
uint32_t flow_memory_units(const struct flow_memory *memory);
/* Returns the next live flow of a unit, from *place = 0 on; NULL after the last, when the memory of
 * the unit is released. Only this function and flow_memory_close() may follow. */
struct flow *flow_memory_drain(struct flow_memory *memory, uint32_t unit, uint32_t *place);

/* The same for flows in any order, on one thread: flow_memory_end() must be called for each live
 * flow, and releases a unit after its last one. `place` is less by one than what flow_memory_next()
 * left of the flow. Returns false without memory. */
bool flow_memory_begin_end(struct flow_memory *memory);
void flow_memory_end(struct flow_memory *memory, uint32_t place);

struct flow_table;

/* Opens one of at most SHARDS tables. Returns NULL without memory. */
struct flow_table *flow_table_open(struct flow_memory *memory);
void flow_table_close(struct flow_table *table);

/* Prefetch the slot, the flow, and the lists of the flow; each must be called some packets after
 * the one before. */
void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_flow(const struct flow_table *table, uint32_t hash);
void flow_table_prefetch_lists(const struct flow_table *table, uint32_t hash);
/* Returns the live flow of a key whose hash is `hash`, or NULL. */
struct flow *flow_table_find(const struct flow_table *table, uint32_t hash,
                             const struct flow_key *key);

/* Returns the next live flow with the ends of a key and another path, from *step = 0 on; NULL after
 * the last. Only paths below UNHASHED_PATHS have others. */
struct flow *flow_table_next_path(const struct flow_table *table, uint32_t hash,
                                  const struct flow_key *key, uint32_t *step);

/* Adds a flow, all zero except key and hash. Returns NULL without memory. */
struct flow *flow_table_add(struct flow_table *table, uint32_t hash, const struct flow_key *key,
                            int64_t due_ns);
/* Removes a live flow; its place may be reused by the next flow_table_add(). */
void flow_table_remove(struct flow_table *table, struct flow *flow);
uint32_t flow_table_count(const struct flow_table *table);

/* Returns the next flow that is due at `now_ns`, or NULL. `due_of` computes when a flow is due.
 * The caller must remove the flow. Called before the first flow is added, it sets the clock. */
typedef int64_t flow_due(const struct flow *flow);
struct flow *flow_table_expired(struct flow_table *table, int64_t now_ns, flow_due *due_of);

#endif
