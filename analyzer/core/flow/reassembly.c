/* SPDX-License-Identifier: Apache-2.0 */
/* Fragmented datagrams: a hash table with chains, and two lists from the oldest: open datagrams by
 * their first fragment, complete ones by their last.
 *
 * Each datagram keeps its missing ranges (the hole descriptors of RFC 815), from one that is
 * unbounded to none. A fragment cuts its bytes out of them; the last fragment (M = 0) bounds them.
 * The datagram is complete once the end is known and no range is left. It stays for COPY_NS so that
 * duplicates are recognised. An open one stays for KEPT_NS, the longest wait that RFC 1122 allows,
 * so that fragments after the usual timeout count as late.
 *
 * Datagrams are in one array that moves when it grows: links are indices, and pointers are valid
 * until the next reassembly_take(). */
#include "flow/reassembly.h"

#include <stdlib.h>
#include <string.h>

#include "flow/hash.h"

#define NONE        UINT32_MAX
#define BUCKETS     65536u
#define NS_A_SECOND INT64_C(1000000000)
/* How long a receiver waits for the rest: Linux' 30 s for IPv4 (net.ipv4.ipfrag_time; RFC 1122
 * section 3.3.2 asks for 60 to 120 s), 60 s for IPv6 (RFC 8200 section 4.5). */
#define REASSEMBLY_NS_IPV4 (30 * NS_A_SECOND)
#define REASSEMBLY_NS_IPV6 (60 * NS_A_SECOND)
#define KEPT_NS            (120 * NS_A_SECOND)
/* How long duplicates of a complete datagram are recognised: they follow within about an RTT,
 * and identifications are reused soon (RFC 4963: 65,536 datagrams at 1 Gbit/s last 4 s). */
#define COPY_NS 250000000

struct reassembly {
    datagram_finished *finished;
    void *context;
    struct pool *pool;
    struct datagram *datagrams;
    uint32_t room, used, free, count;
    uint32_t oldest[2], newest[2]; /* [0] open, [1] complete */
    uint64_t seed[2], evicted;
    uint32_t *buckets; /* allocated with the first datagram */
};

struct reassembly *reassembly_open(datagram_finished *finished, void *context, struct pool *pool) {
    struct reassembly *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->finished = finished;
    table->context = context;
    table->pool = pool;
    table->free = NONE;
    memset(table->oldest, 0xFF, sizeof table->oldest);
    memset(table->newest, 0xFF, sizeof table->newest);
    hash_seed_fill(table->seed, sizeof table->seed / sizeof *table->seed);
    return table;
}

/* The key is hashed and compared as bytes, so its padding must be zero. */
static uint32_t hash_key(const struct reassembly *table, const struct datagram_key *key) {
    uint64_t words[6] = {0}, hash = table->seed[0];
    memcpy(words, key, sizeof *key);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_fold(hash ^ words[i], table->seed[1]);
    return (uint32_t)hash;
}

static struct datagram *find(struct reassembly *table, uint32_t hash,
                             const struct datagram_key *key) {
    if (!table->buckets)
        return NULL;
    for (uint32_t at = table->buckets[hash % BUCKETS]; at != NONE; at = table->datagrams[at].chain)
        if (!memcmp(&table->datagrams[at].key, key, sizeof *key))
            return &table->datagrams[at];
    return NULL;
}

static void unchain(struct reassembly *table, const struct datagram *datagram) {
    uint32_t number = (uint32_t)(datagram - table->datagrams);
    uint32_t *link = &table->buckets[datagram->hash % BUCKETS];
    while (*link != number)
        link = &table->datagrams[*link].chain;
    *link = datagram->chain;
}

static void enlist(struct reassembly *table, struct datagram *datagram) {
    uint32_t number = (uint32_t)(datagram - table->datagrams);
    uint32_t *newest = &table->newest[datagram->complete];
    datagram->older = *newest;
    datagram->newer = NONE;
    if (*newest == NONE)
        table->oldest[datagram->complete] = number;
    else
        table->datagrams[*newest].newer = number;
    *newest = number;
}

static void delist(struct reassembly *table, const struct datagram *datagram) {
    if (datagram->older == NONE)
        table->oldest[datagram->complete] = datagram->newer;
    else
        table->datagrams[datagram->older].newer = datagram->newer;
    if (datagram->newer == NONE)
        table->newest[datagram->complete] = datagram->older;
    else
        table->datagrams[datagram->newer].older = datagram->older;
}

static void release_lists(struct reassembly *table, struct datagram *datagram) {
    pool_release(table->pool, datagram->gaps, datagram->gap_room, sizeof *datagram->gaps);
    pool_release(table->pool, datagram->waiting, datagram->waiting_room, sizeof *datagram->waiting);
}

/* Reports a datagram and frees it. The callback must not call back into the table. */
static void finish(struct reassembly *table, struct datagram *datagram) {
    table->finished(table->context, datagram);
    unchain(table, datagram);
    delist(table, datagram);
    release_lists(table, datagram);
    *datagram = (struct datagram){.chain = table->free};
    table->free = (uint32_t)(datagram - table->datagrams);
    table->count--;
}

void reassembly_finish(struct reassembly *table) {
    for (unsigned list = 0; list < 2; list++)
        while (table->oldest[list] != NONE)
            finish(table, &table->datagrams[table->oldest[list]]);
}

void reassembly_close(struct reassembly *table) {
    for (uint32_t i = 0; i < table->used; i++)
        release_lists(table, &table->datagrams[i]);
    pool_release(table->pool, table->datagrams, table->room, sizeof *table->datagrams);
    free(table->buckets);
    free(table);
}

void reassembly_expire(struct reassembly *table, int64_t now_ns) {
    while (table->oldest[1] != NONE &&
           now_ns - table->datagrams[table->oldest[1]].complete_ns > COPY_NS)
        finish(table, &table->datagrams[table->oldest[1]]);
    while (table->oldest[0] != NONE &&
           now_ns - table->datagrams[table->oldest[0]].first_ns > KEPT_NS)
        finish(table, &table->datagrams[table->oldest[0]]);
}

uint32_t reassembly_count(const struct reassembly *table) {
    return table->count;
}

uint64_t reassembly_evicted(const struct reassembly *table) {
    return table->evicted;
}

/* Returns a free index, NONE without memory. At the bound a complete datagram goes first, because
 * it was counted whole; an open one counts as evicted. */
static uint32_t take_place(struct reassembly *table) {
    if (table->count == DATAGRAMS_MOST) {
        bool open = table->oldest[1] == NONE;
        finish(table, &table->datagrams[table->oldest[!open]]);
        table->evicted += open;
    }
    if (table->free != NONE) {
        uint32_t number = table->free;
        table->free = table->datagrams[number].chain;
        return number;
    }
    if (table->used == table->room &&
        !pool_grow(table->pool, (void **)&table->datagrams, &table->room, sizeof *table->datagrams,
                   64, DATAGRAMS_MOST))
        return NONE;
    return table->used++;
}

static bool make_buckets(struct reassembly *table) {
    if (table->buckets)
        return true;
    table->buckets = malloc(BUCKETS * sizeof *table->buckets);
    if (table->buckets)
        memset(table->buckets, 0xFF, BUCKETS * sizeof *table->buckets);
    return table->buckets;
}

static struct datagram *add(struct reassembly *table, uint32_t hash, const struct datagram_key *key,
                            const struct packet_info *seen) {
    uint32_t number = make_buckets(table) ? take_place(table) : NONE;
    if (number == NONE)
        return NULL;
    struct datagram *datagram = &table->datagrams[number];
    *datagram = (struct datagram){.key = *key,
                                  .hash = hash,
                                  .chain = table->buckets[hash % BUCKETS],
                                  .first_ns = seen->time_ns,
                                  .first_frame = seen->frame,
                                  .capture = seen->capture,
                                  .timed = seen->time_known};
    table->buckets[hash % BUCKETS] = number;
    enlist(table, datagram);
    table->count++;
    if (pool_grow(table->pool, (void **)&datagram->gaps, &datagram->gap_room,
                  sizeof *datagram->gaps, 4, DATAGRAM_GAPS_MOST))
        datagram->gaps[datagram->gap_count++] = (struct datagram_gap){0, DATAGRAM_UNBOUNDED};
    else
        datagram->gaps_lost = true;
    return datagram;
}

/* Returns the bytes of [start, end) that have not been seen. */
static uint32_t missing_in(const struct datagram *datagram, uint32_t start, uint32_t end) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < datagram->gap_count; i++) {
        uint32_t from = start > datagram->gaps[i].start ? start : datagram->gaps[i].start;
        uint32_t to = end < datagram->gaps[i].end ? end : datagram->gaps[i].end;
        bytes += from < to ? to - from : 0;
    }
    return bytes;
}

static void drop_gap(struct datagram *datagram, uint32_t at) {
    datagram->gap_count--;
    memmove(&datagram->gaps[at], &datagram->gaps[at + 1],
            (datagram->gap_count - at) * sizeof *datagram->gaps);
}

/* Makes two ranges of one. Without room the upper one is dropped, so the datagram can never be
 * known to be complete. */
static void split_gap(struct reassembly *table, struct datagram *datagram, uint32_t at,
                      uint32_t start, uint32_t end) {
    uint32_t upper_end = datagram->gaps[at].end;
    datagram->gaps[at].end = start;
    if (datagram->gap_count == datagram->gap_room &&
        !pool_grow(table->pool, (void **)&datagram->gaps, &datagram->gap_room,
                   sizeof *datagram->gaps, 4, DATAGRAM_GAPS_MOST)) {
        datagram->gaps_lost = true;
        return;
    }
    memmove(&datagram->gaps[at + 2], &datagram->gaps[at + 1],
            (datagram->gap_count - at - 1) * sizeof *datagram->gaps);
    datagram->gaps[at + 1] = (struct datagram_gap){end, upper_end};
    datagram->gap_count++;
}

/* Removes [start, end) from the missing ranges, which stay ascending and disjoint. */
static void fill(struct reassembly *table, struct datagram *datagram, uint32_t start,
                 uint32_t end) {
    for (uint32_t i = 0; i < datagram->gap_count;) {
        struct datagram_gap *gap = &datagram->gaps[i];
        if (end <= gap->start || start >= gap->end) {
            i++;
        } else if (start <= gap->start && end >= gap->end) {
            drop_gap(datagram, i);
        } else if (start <= gap->start) {
            gap->start = end;
            i++;
        } else if (end >= gap->end) {
            gap->end = start;
            i++;
        } else {
            split_gap(table, datagram, i, start, end);
            return;
        }
    }
}

/* The last fragment determines the end: nothing above it is missing. */
static void learn_end(struct datagram *datagram, uint32_t end) {
    if (datagram->end_known)
        return;
    datagram->end_known = true;
    datagram->size = end;
    while (datagram->gap_count && datagram->gaps[datagram->gap_count - 1].start >= end)
        datagram->gap_count--;
    if (datagram->gap_count && datagram->gaps[datagram->gap_count - 1].end > end)
        datagram->gaps[datagram->gap_count - 1].end = end;
}

static int64_t reassembly_ns(const struct datagram *datagram) {
    return datagram->key.ip_version == 4 ? REASSEMBLY_NS_IPV4 : REASSEMBLY_NS_IPV6;
}

/* Returns whether a fragment of the same addresses and identification must belong to a later
 * datagram. */
static bool is_another(const struct datagram *datagram, uint32_t start, uint32_t end,
                       int64_t now_ns) {
    uint32_t missing = missing_in(datagram, start, end);
    if (datagram->complete)
        return missing || now_ns - datagram->complete_ns > COPY_NS;
    if (now_ns - datagram->first_ns > reassembly_ns(datagram))
        return missing < end - start;
    return !missing && now_ns - datagram->last_ns > COPY_NS;
}

/* Judges a fragment before its bytes are removed. A partial overlap is forbidden in IPv6 (RFC 5722)
 * and suspicious in IPv4 (RFC 1858). */
static enum fragment_verdict judge(const struct datagram *datagram, uint32_t start, uint32_t end,
                                   bool last) {
    uint32_t missing = missing_in(datagram, start, end);
    if (datagram->end_known && (end > datagram->size || (last && end != datagram->size)))
        return FRAGMENT_OVERLAP; /* two different ends cannot be of one datagram */
    if (!missing)
        return FRAGMENT_DUPLICATE;
    return missing < end - start ? FRAGMENT_OVERLAP : FRAGMENT_NEW;
}

/* Counts a fragment, and moves the datagram to the other list when it becomes complete. */
static void take(struct reassembly *table, struct datagram *datagram, const struct headers *headers,
                 const struct packet_info *seen, enum fragment_verdict verdict) {
    uint32_t start = headers->fragment_offset;
    uint32_t end = start + headers->ip_length - headers->ip_header_length;
    bool late = datagram->complete || seen->time_ns - datagram->first_ns > reassembly_ns(datagram);
    datagram->fragments++;
    datagram->duplicates += verdict == FRAGMENT_DUPLICATE;
    datagram->overlaps += verdict == FRAGMENT_OVERLAP;
    datagram->out_of_order += verdict != FRAGMENT_DUPLICATE && start < datagram->highest;
    datagram->late += late;
    datagram->received += missing_in(datagram, start, end);
    fill(table, datagram, start, end);
    if (!headers->more_fragments)
        learn_end(datagram, end);
    datagram->highest = start > datagram->highest ? start : datagram->highest;
    datagram->last_ns = seen->time_ns;
    datagram->last_frame = seen->frame;
    if (!datagram->complete && datagram->end_known && !datagram->gap_count &&
        !datagram->gaps_lost) {
        delist(table, datagram);
        datagram->complete = true;
        datagram->complete_ns = seen->time_ns;
        enlist(table, datagram);
    }
}

struct datagram *reassembly_take(struct reassembly *table, const struct headers *headers,
                                 uint32_t path, const struct packet_info *seen,
                                 enum fragment_verdict *verdict) {
    struct datagram_key key = {.identification = headers->identification,
                               .path = path,
                               .protocol = headers->protocol,
                               .ip_version = headers->ip_version};
    memcpy(key.source, headers->source, sizeof key.source);
    memcpy(key.destination, headers->destination, sizeof key.destination);
    uint32_t hash = hash_key(table, &key), start = headers->fragment_offset;
    uint32_t end = start + headers->ip_length - headers->ip_header_length;
    struct datagram *datagram = find(table, hash, &key);
    if (datagram && is_another(datagram, start, end, seen->time_ns)) {
        finish(table, datagram);
        datagram = NULL;
    }
    if (!datagram && !(datagram = add(table, hash, &key, seen)))
        return NULL;
    *verdict = judge(datagram, start, end, !headers->more_fragments);
    take(table, datagram, headers, seen, *verdict);
    return datagram;
}

bool datagram_wait(struct reassembly *table, struct datagram *datagram,
                   const struct packet_info *seen) {
    if (datagram->waiting_count == datagram->waiting_room &&
        !pool_grow(table->pool, (void **)&datagram->waiting, &datagram->waiting_room,
                   sizeof *datagram->waiting, 2, DATAGRAM_WAITING_MOST))
        return false;
    datagram->waiting[datagram->waiting_count++] = *seen;
    return true;
}
