/* SPDX-License-Identifier: Apache-2.0 */
/* Live flows: open addressing with linear probing over (hash, flow number) pairs, with a seeded
 * hash whose lower bits choose the place. A table grows when half of it is used. Flows are in slabs
 * that all tables share, and never move: a pointer is valid until flow_table_remove(). A table
 * keeps some free places and exchanges them with the others in portions, so that the lock of the
 * memory is rarely taken.
 *
 * Expiry is a wheel of one-second slots that packets do not touch: a flow stays in the slot of the
 * due time that was last computed. When that slot passes, the flow is due or is queued again. Slots
 * are doubly linked lists by number; a due time in the past goes into the present slot. A packet
 * therefore costs no list operation, and a flow is visited about once per idle time. */
#include "flow/flow_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"

#define SLAB_BITS   12
#define SLAB_FLOWS  (1u << SLAB_BITS)
#define UNIT_FLOWS  512u /* flows that are drained together */
#define DRAIN_AHEAD 4u   /* flows whose lists are prefetched meanwhile */
#define NONE        UINT32_MAX
#define PAGE_BYTES  4096u
#define PLACES      32u   /* places that a table takes or returns at once; divides SLAB_FLOWS */
#define SIZE_LEAST  32u   /* entries */
#define WHEEL_SLOTS 8192u /* seconds; must exceed the longest allowed silence */
#define NS_A_SECOND 1000000000

/* Below `used` each place belongs to a table, or is in the list of free ones. */
struct flow_memory {
    pthread_mutex_t lock;
    bool huge;           /* pages for the flows */
    struct flow **slabs; /* enough for the greatest number of flows */
    uint32_t slab_room, slab_count, used;
    uint32_t free;       /* first of the list, by flow.next */
    struct slot *wheels; /* of all tables; most of their pages are never used */
    unsigned table_count;
    uint16_t *unit_flows; /* live flows of each unit, from flow_memory_begin_end() on */
};

/* Flows that are due in a second. Numbers are greater by 1, so that zero pages are an empty wheel.
 */
struct slot {
    uint32_t first, last;
};
#define WHEELS_BYTES (SHARDS * WHEEL_SLOTS * sizeof(struct slot))

struct entry {
    uint32_t hash;
    uint32_t flow; /* NONE: empty */
};

struct flow_table {
    struct flow_memory *memory;
    struct entry *entries;
    uint32_t mask, count;
    uint32_t free, free_count;     /* places of this table without a flow, by flow.next */
    uint32_t unused, unused_count; /* places in succession that never had one */
    int64_t wheel_second;          /* the wheel: all slots before it have passed */
    bool wheel_started;
    struct slot *wheel; /* WHEEL_SLOTS of them */
};

/* Returns a flow by its place in the slabs, which is not flows.flow: places are reused. */
static struct flow *flow_at(const struct flow_memory *memory, uint32_t number) {
    return &memory->slabs[number >> SLAB_BITS][number & (SLAB_FLOWS - 1)];
}

/* --- memory ------------------------------------------------------------------------------------
 */

/* Only the array of slabs has its final size, because other threads read it while slabs are added.
 * Each table may hold some portions in reserve. */
struct flow_memory *flow_memory_open(uint32_t most, bool huge) {
    struct flow_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->huge = huge;
    memory->free = NONE;
    memory->slab_room = (uint32_t)(((uint64_t)most + 4 * PLACES * SHARDS) / SLAB_FLOWS + 1);
    memory->slabs = calloc(memory->slab_room, sizeof(struct flow *));
    memory->wheels = huge_pages_map(WHEELS_BYTES, false);
    pthread_mutex_init(&memory->lock, NULL);
    if (memory->slabs && memory->wheels)
        return memory;
    flow_memory_close(memory);
    return NULL;
}

void flow_memory_close(struct flow_memory *memory) {
    for (uint32_t i = 0; i < memory->slab_count; i++)
        munmap(memory->slabs[i], SLAB_FLOWS * sizeof(struct flow));
    free(memory->slabs);
    free(memory->unit_flows);
    if (memory->wheels)
        munmap(memory->wheels, WHEELS_BYTES);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static bool add_slab(struct flow_memory *memory) {
    void *slab = memory->slab_count < memory->slab_room
                     ? huge_pages_map(SLAB_FLOWS * sizeof(struct flow), memory->huge)
                     : NULL;
    if (!slab)
        return false;
    memory->slabs[memory->slab_count++] = slab;
    return true;
}

/* Gives a table places that others returned or, without any, places that were never used. Returns
 * false without memory. */
static bool refill(struct flow_table *table) {
    struct flow_memory *memory = table->memory;
    pthread_mutex_lock(&memory->lock);
    while (memory->free != NONE && table->free_count < PLACES) {
        uint32_t number = memory->free;
        struct flow *flow = flow_at(memory, number);
        memory->free = flow->next;
        flow->next = table->free;
        table->free = number;
        table->free_count++;
    }
    bool room =
        table->free_count || memory->used < memory->slab_count * SLAB_FLOWS || add_slab(memory);
    if (room && !table->free_count) {
        table->unused = memory->used;
        table->unused_count = PLACES;
        memory->used += PLACES;
    }
    pthread_mutex_unlock(&memory->lock);
    return room;
}

/* Returns half of the places that a table has in reserve. */
static void return_places(struct flow_table *table) {
    struct flow_memory *memory = table->memory;
    pthread_mutex_lock(&memory->lock);
    while (table->free_count > PLACES) {
        uint32_t number = table->free;
        struct flow *flow = flow_at(memory, number);
        table->free = flow->next;
        table->free_count--;
        flow->next = memory->free;
        memory->free = number;
    }
    pthread_mutex_unlock(&memory->lock);
}

/* Returns a place for a flow, all zero, or NONE. */
static uint32_t take_place(struct flow_table *table) {
    if (!table->free_count && !table->unused_count && !refill(table))
        return NONE;
    if (!table->free_count) {
        table->unused_count--;
        return table->unused++;
    }
    uint32_t number = table->free;
    struct flow *flow = flow_at(table->memory, number);
    table->free = flow->next;
    table->free_count--;
    memset(flow, 0, sizeof *flow);
    return number;
}

struct flow *flow_memory_next(const struct flow_memory *memory, uint32_t *place) {
    while (*place < memory->used) {
        struct flow *flow = flow_at(memory, (*place)++);
        if (flow->live)
            return flow;
    }
    return NULL;
}

uint32_t flow_memory_units(const struct flow_memory *memory) {
    return (memory->used + UNIT_FLOWS - 1) / UNIT_FLOWS;
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
    prefetch_element(series->newest, 0, sizeof *series->newest);
    if (series->small)
        prefetch_element(series->pairs, 0, sizeof *series->pairs);
    else
        prefetch_element(series->newest, 1, sizeof *series->newest);
    prefetch_element(stream->fingerprints, stream->next_fingerprint, sizeof *stream->fingerprints);
    prefetch_element(unacked->segments, unacked->head, sizeof *unacked->segments);
    prefetch_element(unacked->segments, tail, sizeof *unacked->segments);
    prefetch_element(stream->rtt.exact, stream->rtt.pending, sizeof *stream->rtt.exact);
    for (unsigned line = 0; line < sizeof *stream->accounting / LINE_BYTES; line++)
        prefetch_element(stream->accounting, line, LINE_BYTES);
    for (unsigned line = 0; line < 2; line++)
        prefetch_element(stream->recovery, line, LINE_BYTES);
}

/* Returns the whole pages of a unit to the kernel. */
static void release_unit(const struct flow_memory *memory, uint32_t unit) {
    uintptr_t from = (uintptr_t)flow_at(memory, unit * UNIT_FLOWS);
    uintptr_t until = (from + UNIT_FLOWS * sizeof(struct flow)) & ~(uintptr_t)(PAGE_BYTES - 1);
    from = (from + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    madvise((void *)from, until - from, MADV_DONTNEED);
}

/* Prefetches the pairs of bins that are `depth` pairs before the last ones. */
static void prefetch_pairs(const struct flow *flow, unsigned depth) {
    for (unsigned number = 0; number < 2; number++) {
        const struct time_bins *series = &flow->directions[number].series;
        const struct bin_pair *pair = series->small ? series->pairs : NULL;
        for (unsigned i = 0; pair && i < depth; i++)
            pair = pair->before;
        __builtin_prefetch(pair);
    }
}

/* Prefetches the lists of the next flows of the unit, those of pairs step by step, as each has the
 * address of the one before. Other units belong to other threads. */
static void prefetch_next(const struct flow_memory *memory, uint32_t unit, uint32_t place) {
    uint32_t number = unit * UNIT_FLOWS + place, end = (unit + 1) * UNIT_FLOWS;
    end = end < memory->used ? end : memory->used;
    for (uint32_t depth = 0; depth < DRAIN_AHEAD; depth++) {
        uint32_t next = number + DRAIN_AHEAD - depth;
        if (next < end && flow_at(memory, next)->live)
            prefetch_pairs(flow_at(memory, next), depth);
    }
    if (number + DRAIN_AHEAD < end) {
        prefetch_direction(flow_at(memory, number + DRAIN_AHEAD), 0);
        prefetch_direction(flow_at(memory, number + DRAIN_AHEAD), 1);
    }
}

struct flow *flow_memory_drain(struct flow_memory *memory, uint32_t unit, uint32_t *place) {
    while (*place < UNIT_FLOWS && unit * UNIT_FLOWS + *place < memory->used) {
        struct flow *flow = flow_at(memory, unit * UNIT_FLOWS + (*place)++);
        if (flow->live) {
            flow->live = false;
            prefetch_next(memory, unit, *place - 1);
            return flow;
        }
    }
    release_unit(memory, unit);
    return NULL;
}

bool flow_memory_begin_end(struct flow_memory *memory) {
    uint32_t place = 0;
    memory->unit_flows = calloc(flow_memory_units(memory) + 1, sizeof *memory->unit_flows);
    while (memory->unit_flows && flow_memory_next(memory, &place))
        memory->unit_flows[(place - 1) / UNIT_FLOWS]++;
    return memory->unit_flows;
}

void flow_memory_end(struct flow_memory *memory, uint32_t place) {
    flow_at(memory, place)->live = false;
    if (!--memory->unit_flows[place / UNIT_FLOWS])
        release_unit(memory, place / UNIT_FLOWS);
}

/* --- the table ---------------------------------------------------------------------------------
 */

/* All bits are set, so that each entry has NONE and is empty. */
static struct entry *make_entries(uint32_t count) {
    struct entry *entries = malloc(count * sizeof *entries);
    if (entries)
        memset(entries, 0xFF, count * sizeof *entries);
    return entries;
}

struct flow_table *flow_table_open(struct flow_memory *memory) {
    struct flow_table *table = memory->table_count < SHARDS ? calloc(1, sizeof *table) : NULL;
    if (!table)
        return NULL;
    table->memory = memory;
    table->wheel = memory->wheels + memory->table_count++ * (size_t)WHEEL_SLOTS;
    table->free = NONE;
    table->mask = SIZE_LEAST - 1;
    table->entries = make_entries(SIZE_LEAST);
    if (table->entries)
        return table;
    flow_table_close(table);
    return NULL;
}

void flow_table_close(struct flow_table *table) {
    free(table->entries);
    free(table);
}

/* Returns the place at which a search for the hash begins. */
static const struct entry *first_entry(const struct flow_table *table, uint32_t hash) {
    return &table->entries[hash & table->mask];
}

void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash) {
    __builtin_prefetch(first_entry(table, hash));
}

/* Returns the flow if its entry is at the first place, as most are. The key is not compared: a
 * wrong guess costs a prefetch only. */
static struct flow *likely_flow(const struct flow_table *table, uint32_t hash) {
    const struct entry *entry = first_entry(table, hash);
    return entry->hash == hash && entry->flow != NONE ? flow_at(table->memory, entry->flow) : NULL;
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

void flow_table_prefetch_lists(const struct flow_table *table, uint32_t hash) {
    const struct flow *flow = likely_flow(table, hash);
    if (!flow)
        return;
    prefetch_direction(flow, 0);
    prefetch_direction(flow, 1);
    prefetch_element(flow->tcp.turns, 0, LINE_BYTES);
}

/* The probe ends, because at least half of the entries are empty. */
struct flow *flow_table_find(const struct flow_table *table, uint32_t hash,
                             const struct flow_key *key) {
    for (uint32_t at = hash & table->mask;; at = (at + 1) & table->mask) {
        struct entry entry = table->entries[at];
        if (entry.flow == NONE)
            return NULL;
        if (entry.hash != hash)
            continue;
        struct flow *flow = flow_at(table->memory, entry.flow);
        if (flow_key_equals(&flow->key, key))
            return flow;
    }
}

struct flow *flow_table_next_path(const struct flow_table *table, uint32_t hash,
                                  const struct flow_key *key, uint32_t *step) {
    struct flow_key same = *key;
    for (;;) {
        struct entry entry = table->entries[(hash + (*step)++) & table->mask];
        if (entry.flow == NONE)
            return NULL;
        if (entry.hash != hash)
            continue;
        struct flow *flow = flow_at(table->memory, entry.flow);
        same.path = flow->key.path;
        if (same.path != key->path && flow_key_equals(&flow->key, &same))
            return flow;
    }
}

static void place_entry(struct flow_table *table, struct entry entry) {
    uint32_t at = entry.hash & table->mask;
    while (table->entries[at].flow != NONE)
        at = (at + 1) & table->mask;
    table->entries[at] = entry;
}

/* Doubles a table that is half full. Returns false without memory. Hashes are in the entries, so
 * flows are not read. */
static bool grow(struct flow_table *table) {
    struct entry *old = table->entries;
    uint32_t old_size = table->mask + 1;
    if (table->count < old_size / 2)
        return true;
    struct entry *entries = make_entries(old_size * 2);
    if (!entries)
        return false;
    table->entries = entries;
    table->mask = old_size * 2 - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].flow != NONE)
            place_entry(table, old[i]);
    free(old);
    return true;
}

/* Puts a flow at the end of the slot of its due time. The slot must not have passed, because it
 * would be found only after a whole turn. */
static void enlist(struct flow_table *table, uint32_t number, int64_t due_ns) {
    struct flow *flow = flow_at(table->memory, number);
    int64_t second = due_ns / NS_A_SECOND;
    if (second < table->wheel_second)
        second = table->wheel_second;
    flow->slot = (uint32_t)((uint64_t)second % WHEEL_SLOTS);
    struct slot *slot = &table->wheel[flow->slot];
    flow->next = 0;
    flow->previous = slot->last;
    *(slot->last ? &flow_at(table->memory, slot->last - 1)->next : &slot->first) = number + 1;
    slot->last = number + 1;
}

/* Removes a flow from its slot, which it must be in. */
static void delist(struct flow_table *table, const struct flow *flow) {
    struct slot *slot = &table->wheel[flow->slot];
    uint32_t previous = flow->previous, next = flow->next;
    *(previous ? &flow_at(table->memory, previous - 1)->next : &slot->first) = next;
    *(next ? &flow_at(table->memory, next - 1)->previous : &slot->last) = previous;
}

struct flow *flow_table_add(struct flow_table *table, uint32_t hash, const struct flow_key *key,
                            int64_t due_ns) {
    uint32_t number = grow(table) ? take_place(table) : NONE;
    if (number == NONE)
        return NULL;
    struct flow *flow = flow_at(table->memory, number);
    flow->key = *key;
    flow->hash = hash;
    flow->live = true;
    place_entry(table, (struct entry){hash, number});
    enlist(table, number, due_ns);
    table->count++;
    return flow;
}

/* Returns the place of the entry of a live flow. Keys need not be compared. */
static uint32_t entry_of(const struct flow_table *table, const struct flow *flow) {
    uint32_t at = flow->hash & table->mask;
    while (flow_at(table->memory, table->entries[at].flow) != flow)
        at = (at + 1) & table->mask;
    return at;
}

/* Deletion shifts entries back (Knuth, TAOCP 6.4, algorithm R): there are no tombstones, so the
 * table does not degrade. */
static void remove_entry(struct flow_table *table, uint32_t vacant) {
    for (uint32_t at = (vacant + 1) & table->mask; table->entries[at].flow != NONE;
         at = (at + 1) & table->mask) {
        uint32_t home = table->entries[at].hash & table->mask;
        if (((at - home) & table->mask) < ((at - vacant) & table->mask))
            continue;
        table->entries[vacant] = table->entries[at];
        vacant = at;
    }
    table->entries[vacant] = (struct entry){NONE, NONE};
    table->count--;
}

/* The memory of the flow stays and is reused; its lists must have been released by the caller. */
void flow_table_remove(struct flow_table *table, struct flow *flow) {
    uint32_t at = entry_of(table, flow);
    uint32_t number = table->entries[at].flow;
    remove_entry(table, at);
    delist(table, flow);
    flow->live = false;
    flow->next = table->free;
    table->free = number;
    if (++table->free_count > 2 * PLACES)
        return_places(table);
}

uint32_t flow_table_count(const struct flow_table *table) {
    return table->count;
}

/* Returns the first flow of a slot that is due by `until_ns`; others move to their new slots. */
static struct flow *due_in_slot(struct flow_table *table, uint32_t slot, int64_t until_ns,
                                flow_due *due_of) {
    /* A flow may be queued again behind `last` in this slot and must not be visited twice. */
    uint32_t last = table->wheel[slot].last;
    for (uint32_t number = table->wheel[slot].first; number;) {
        struct flow *flow = flow_at(table->memory, number - 1);
        uint32_t next = number == last ? 0 : flow->next;
        int64_t due = due_of(flow);
        if (due <= until_ns)
            return flow;
        delist(table, flow);
        enlist(table, number - 1, due);
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
