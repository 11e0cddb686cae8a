/* SPDX-License-Identifier: Apache-2.0 */
/* Live flows: open addressing with linear probing over (hash, flow number) pairs, one index per
 * shard, with a seeded hash. The upper bits of the hash choose the shard, the lower ones the place.
 * A shard grows when half of it is used. Flows are in slabs and never move: a pointer is valid
 * until flow_table_remove().
 *
 * Expiry is a wheel of one-second slots that packets do not touch: a flow stays in the slot of the
 * due time that was last computed. When that slot passes, the flow is due or is queued again. Slots
 * are doubly linked lists by number; a due time in the past goes into the present slot. A packet
 * therefore costs no list operation, and a flow is visited about once per idle time. */
#include "flow/flow_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "flow/hash.h"

#define SLAB_BITS   12
#define SLAB_FLOWS  (1u << SLAB_BITS)
#define NONE        UINT32_MAX
#define PART_LEAST  32u   /* entries */
#define WHEEL_SLOTS 8192u /* seconds; must exceed the longest allowed silence */
#define NS_A_SECOND 1000000000

struct entry {
    uint32_t hash;
    uint32_t flow; /* NONE: empty */
};

struct part {
    struct entry *entries;
    uint32_t mask, count;
};

struct flow_table {
    struct part parts[FLOW_PARTS];
    uint32_t count, most;
    bool huge;                 /* pages for the flows */
    struct flow **slabs;       /* enough for the greatest number of flows */
    uint32_t slab_count, used; /* flows allocated so far */
    uint32_t free;
    uint64_t seed[3];
    int64_t wheel_second; /* the wheel: all slots before it have passed */
    bool wheel_started;
    struct slot {
        uint32_t first, last;
    } wheel[WHEEL_SLOTS];
};

/* Returns a flow by its place in the slabs, which is not flows.flow: places are reused. */
static struct flow *flow_at(const struct flow_table *table, uint32_t number) {
    return &table->slabs[number >> SLAB_BITS][number & (SLAB_FLOWS - 1)];
}

/* All bits are set, so that each entry has NONE and is empty. */
static struct entry *make_entries(uint32_t count) {
    struct entry *entries = malloc(count * sizeof *entries);
    if (entries)
        memset(entries, 0xFF, count * sizeof *entries);
    return entries;
}

static bool open_parts(struct flow_table *table) {
    for (unsigned i = 0; i < FLOW_PARTS; i++) {
        struct part *part = &table->parts[i];
        part->mask = PART_LEAST - 1;
        part->entries = make_entries(PART_LEAST);
        if (!part->entries)
            return false;
    }
    return true;
}

/* Only the array of slabs has its final size, because other threads read it while slabs are added.
 */
struct flow_table *flow_table_open(uint32_t most, bool huge) {
    struct flow_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->most = most;
    table->huge = huge;
    table->free = NONE;
    memset(table->wheel, 0xFF, sizeof table->wheel);
    hash_seed_fill(table->seed, sizeof table->seed / sizeof *table->seed);
    table->slabs = calloc((size_t)most / SLAB_FLOWS + 1, sizeof(struct flow *));
    if (table->slabs && open_parts(table))
        return table;
    flow_table_close(table);
    return NULL;
}

void flow_table_close(struct flow_table *table) {
    for (uint32_t i = 0; i < table->slab_count; i++)
        if (table->slabs[i])
            munmap(table->slabs[i], SLAB_FLOWS * sizeof(struct flow));
    free(table->slabs);
    for (unsigned i = 0; i < FLOW_PARTS; i++)
        free(table->parts[i].entries);
    free(table);
}

inline uint32_t flow_key_hash(const struct flow_table *table, const struct flow_key *key) {
    const uint64_t *seed = table->seed;
    uint64_t low = flow_key_word(key, 1), high = flow_key_word(key, 3);
    uint64_t ends = hash_fold(flow_key_word(key, 0) ^ seed[0], flow_key_word(key, 2) ^ seed[1]);
    if (low | high) /* the other half of an IPv6 address */
        ends ^= hash_fold(low ^ seed[1], high ^ seed[2]);
    return (uint32_t)hash_fold(ends, flow_key_word(key, 4) ^ seed[2]);
}

static struct part *part_of(struct flow_table *table, uint32_t hash) {
    return &table->parts[flow_part(hash)];
}

/* Returns the place at which a search for the hash begins. */
static const struct entry *first_entry(const struct flow_table *table, uint32_t hash) {
    const struct part *part = &table->parts[flow_part(hash)];
    return &part->entries[hash & part->mask];
}

void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash) {
    __builtin_prefetch(first_entry(table, hash));
}

/* Returns the flow if its entry is at the first place, as most are. The key is not compared: a
 * wrong guess costs a prefetch only. */
static struct flow *likely_flow(const struct flow_table *table, uint32_t hash) {
    const struct entry *entry = first_entry(table, hash);
    return entry->hash == hash && entry->flow != NONE ? flow_at(table, entry->flow) : NULL;
}

_Static_assert(sizeof(struct flow) % LINE_BYTES == 0, "a flow begins with a line");

/* Prefetches up to the last hot field of the second stream; the few others before it are not worth
 * a second loop. */
void flow_table_prefetch_flow(const struct flow_table *table, uint32_t hash) {
    const struct flow *flow = likely_flow(table, hash);
    const size_t end = offsetof(struct flow, tcp.streams[1]) + offsetof(struct tcp_stream, cold);
    for (size_t line = 0; flow && line < end; line += LINE_BYTES)
        __builtin_prefetch((const uint8_t *)flow + line);
}

/* Prefetches an element of a list that may not exist yet. */
static inline void prefetch_element(const void *list, uint32_t index, size_t size) {
    __builtin_prefetch((const void *)((uintptr_t)list + index * size));
}

/* Prefetches the lists that packets of either direction touch. */
static inline void prefetch_direction(const struct flow *flow, unsigned number) {
    const struct time_bins *series = &flow->directions[number].series;
    const struct tcp_stream *stream = &flow->tcp.streams[number];
    const struct unacked_segments *unacked = &stream->unacked;
    uint32_t tail = (unacked->head + unacked->count) & (unacked->room - 1);
    prefetch_element(series->newest, 0, sizeof *series->bins);
    prefetch_element(series->newest, 1, sizeof *series->bins);
    prefetch_element(stream->fingerprints, stream->next_fingerprint, sizeof *stream->fingerprints);
    prefetch_element(unacked->segments, unacked->head, sizeof *unacked->segments);
    prefetch_element(unacked->segments, tail, sizeof *unacked->segments);
    prefetch_element(stream->rtt.exact, stream->rtt.pending, sizeof *stream->rtt.exact);
    for (unsigned line = 0; line < 2; line++) {
        prefetch_element(stream->accounting, line, LINE_BYTES);
        prefetch_element(stream->recovery, line, LINE_BYTES);
    }
}

void flow_table_prefetch_lists(const struct flow_table *table, uint32_t hash) {
    const struct flow *flow = likely_flow(table, hash);
    if (!flow)
        return;
    prefetch_direction(flow, 0);
    prefetch_direction(flow, 1);
}

/* The probe ends, because at least half of the entries are empty. */
struct flow *flow_table_find(const struct flow_table *table, uint32_t hash,
                             const struct flow_key *key) {
    const struct part *part = &table->parts[flow_part(hash)];
    for (uint32_t at = hash & part->mask;; at = (at + 1) & part->mask) {
        struct entry entry = part->entries[at];
        if (entry.flow == NONE)
            return NULL;
        if (entry.hash != hash)
            continue;
        struct flow *flow = flow_at(table, entry.flow);
        if (flow_key_equals(&flow->key, key))
            return flow;
    }
}

static void place_entry(struct part *part, struct entry entry) {
    uint32_t at = entry.hash & part->mask;
    while (part->entries[at].flow != NONE)
        at = (at + 1) & part->mask;
    part->entries[at] = entry;
}

/* Doubles a shard that is half full. Returns false without memory. Hashes are in the entries, so
 * flows are not read. */
static bool grow_part(struct part *part) {
    struct entry *old = part->entries;
    uint32_t old_size = part->mask + 1;
    if (part->count < old_size / 2)
        return true;
    struct entry *entries = make_entries(old_size * 2);
    if (!entries)
        return false;
    part->entries = entries;
    part->mask = old_size * 2 - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].flow != NONE)
            place_entry(part, old[i]);
    free(old);
    return true;
}

static bool add_slab(struct flow_table *table) {
    void *slab = huge_pages_map(SLAB_FLOWS * sizeof(struct flow), table->huge);
    if (!slab)
        return false;
    table->slabs[table->slab_count++] = slab;
    return true;
}

/* Returns a place for a flow, all zero, or NONE. */
static uint32_t take_place(struct flow_table *table) {
    if (table->free != NONE) {
        uint32_t number = table->free;
        struct flow *flow = flow_at(table, number);
        table->free = flow->next;
        memset(flow, 0, sizeof *flow);
        return number;
    }
    if (table->used == table->slab_count * SLAB_FLOWS && !add_slab(table))
        return NONE;
    return table->used++;
}

/* Puts a flow at the end of the slot of its due time. The slot must not have passed, because it
 * would be found only after a whole turn. */
static void enlist(struct flow_table *table, uint32_t number, int64_t due_ns) {
    struct flow *flow = flow_at(table, number);
    int64_t second = due_ns / NS_A_SECOND;
    if (second < table->wheel_second)
        second = table->wheel_second;
    flow->slot = (uint32_t)((uint64_t)second % WHEEL_SLOTS);
    struct slot *slot = &table->wheel[flow->slot];
    flow->next = NONE;
    flow->previous = slot->last;
    *(slot->last == NONE ? &slot->first : &flow_at(table, slot->last)->next) = number;
    slot->last = number;
}

/* Removes a flow from its slot, which it must be in. */
static void delist(struct flow_table *table, const struct flow *flow) {
    struct slot *slot = &table->wheel[flow->slot];
    uint32_t previous = flow->previous, next = flow->next;
    *(previous == NONE ? &slot->first : &flow_at(table, previous)->next) = next;
    *(next == NONE ? &slot->last : &flow_at(table, next)->previous) = previous;
}

struct flow *flow_table_add(struct flow_table *table, uint32_t hash, const struct flow_key *key,
                            int64_t due_ns) {
    struct part *part = part_of(table, hash);
    if (table->count == table->most || !grow_part(part))
        return NULL;
    uint32_t number = take_place(table);
    if (number == NONE)
        return NULL;
    struct flow *flow = flow_at(table, number);
    flow->key = *key;
    flow->hash = hash;
    flow->live = true;
    place_entry(part, (struct entry){hash, number});
    enlist(table, number, due_ns);
    part->count++;
    table->count++;
    return flow;
}

/* Returns the place of the entry of a live flow. Keys need not be compared. */
static uint32_t entry_of(const struct flow_table *table, const struct part *part,
                         const struct flow *flow) {
    uint32_t at = flow->hash & part->mask;
    while (flow_at(table, part->entries[at].flow) != flow)
        at = (at + 1) & part->mask;
    return at;
}

/* Deletion shifts entries back (Knuth, TAOCP 6.4, algorithm R): there are no tombstones, so the
 * table does not degrade. */
static void remove_entry(struct part *part, uint32_t vacant) {
    for (uint32_t at = (vacant + 1) & part->mask; part->entries[at].flow != NONE;
         at = (at + 1) & part->mask) {
        uint32_t home = part->entries[at].hash & part->mask;
        if (((at - home) & part->mask) < ((at - vacant) & part->mask))
            continue;
        part->entries[vacant] = part->entries[at];
        vacant = at;
    }
    part->entries[vacant] = (struct entry){NONE, NONE};
    part->count--;
}

/* The memory of the flow stays and is reused; its lists must have been released by the caller. */
void flow_table_remove(struct flow_table *table, struct flow *flow) {
    struct part *part = part_of(table, flow->hash);
    uint32_t at = entry_of(table, part, flow);
    uint32_t number = part->entries[at].flow;
    remove_entry(part, at);
    delist(table, flow);
    flow->live = false;
    flow->next = table->free;
    table->free = number;
    table->count--;
}

uint32_t flow_table_count(const struct flow_table *table) {
    return table->count;
}

/* Returns the first flow of a slot that is due by `until_ns`; others move to their new slots. */
static struct flow *due_in_slot(struct flow_table *table, uint32_t slot, int64_t until_ns,
                                flow_due *due_of) {
    /* A flow may be queued again behind `last` in this slot and must not be visited twice. */
    uint32_t last = table->wheel[slot].last;
    for (uint32_t number = table->wheel[slot].first; number != NONE;) {
        struct flow *flow = flow_at(table, number);
        uint32_t next = number == last ? NONE : flow->next;
        int64_t due = due_of(flow);
        if (due <= until_ns)
            return flow;
        delist(table, flow);
        enlist(table, number, due);
        number = next;
    }
    return NULL;
}

/* Resumes at the slot at which the call before returned a flow; slots are left only if no flow in
 * them is due. */
struct flow *flow_table_expired(struct flow_table *table, int64_t now_ns, flow_due *due_of) {
    int64_t second = now_ns / NS_A_SECOND;
    if (!table->wheel_started)
        table->wheel_second = second;
    table->wheel_started = true;
    if (second - table->wheel_second >
        WHEEL_SLOTS) /* after one turn of the wheel all slots have passed */
        table->wheel_second = second - WHEEL_SLOTS;
    for (; table->wheel_second < second; table->wheel_second++) {
        uint32_t slot = (uint32_t)((uint64_t)table->wheel_second % WHEEL_SLOTS);
        struct flow *flow = due_in_slot(table, slot, now_ns, due_of);
        if (flow)
            return flow;
    }
    return NULL;
}

/* Flows of one slot are not sorted, so the result is right to a second. */
struct flow *flow_table_oldest(struct flow_table *table, flow_due *due_of) {
    for (uint32_t i = 0; i < WHEEL_SLOTS; i++) {
        uint64_t second = (uint64_t)(table->wheel_second + i);
        uint32_t slot = (uint32_t)(second % WHEEL_SLOTS);
        struct flow *flow = due_in_slot(table, slot, (int64_t)(second + 1) * NS_A_SECOND, due_of);
        if (flow)
            return flow;
    }
    return NULL;
}

struct flow *flow_table_drain(struct flow_table *table, size_t *place) {
    for (; *place < table->used; ++*place) {
        uint32_t slab = (uint32_t)(*place >> SLAB_BITS);
        if (!(*place & (SLAB_FLOWS - 1)) && slab && table->slabs[slab - 1]) {
            munmap(table->slabs[slab - 1], SLAB_FLOWS * sizeof(struct flow));
            table->slabs[slab - 1] = NULL;
        }
        struct flow *flow = flow_at(table, (uint32_t)*place);
        if (flow->live) {
            flow->live = false;
            return flow;
        }
    }
    return NULL;
}
