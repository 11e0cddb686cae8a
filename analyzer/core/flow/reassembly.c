/* SPDX-License-Identifier: Apache-2.0 */
/* Fragmented datagrams: a hash table with chains, and two lists from the oldest: open datagrams by
 * their first fragment, complete ones by their last.
 *
 * Each datagram keeps its missing ranges (the hole descriptors of RFC 815), from one that is
 * unbounded to none. A fragment cuts its bytes out of them; the last fragment (M = 0) bounds them.
 * The datagram is complete once the end is known and no range is left. It stays for COPY_NS so that
 * duplicates are recognized. An open one stays for DATAGRAM_KEPT_NS, the longest wait that RFC 1122
 * allows, so that fragments after the usual timeout count as late.
 *
 * Senders count identifications by pairs of addresses (RFC 6864 section 4.3; Linux, since 3.16), so
 * the same one returns after 65,536 datagrams: a fragment that comes after half as many others
 * belongs to another datagram, even long before the time is over (RFC 4963). Those of
 * IPv6 have 32 bits. Pairs are counted while a datagram of theirs is in the table.
 *
 * A datagram is valid until the next reassembly_take(). */
#include "flow/reassembly.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define BUCKETS     65536u
#define NS_A_SECOND INT64_C(1000000000)
/* How long a receiver waits for the rest: Linux' 30 s for IPv4 (net.ipv4.ipfrag_time; RFC 1122
 * section 3.3.2 asks for 60 to 120 s), 60 s for IPv6 (RFC 8200 section 4.5). */
#define REASSEMBLY_NS_IPV4 (30 * NS_A_SECOND)
#define REASSEMBLY_NS_IPV6 (60 * NS_A_SECOND)
/* How long duplicates of a complete datagram are recognized: they follow within about an RTT,
 * and identifications are reused soon (RFC 4963: 65,536 datagrams at 1 Gbit/s last 4 s). */
#define COPY_NS 250000000

/* Datagrams in fragments from one address to another may reuse an identification after so many. */
#define REUSE_LEAST 32768u

#define PAIR_BUCKETS 4096u

/* Addresses of which a datagram is in the table. */
struct address_pair {
    struct address_pair *chain;
    uint8_t source[16], destination[16];
    uint32_t path;
    uint32_t datagrams; /* in the table */
    uint32_t begun;     /* since the first of them */
};

struct reassembly {
    datagram_finished *finished;
    reassembly_room *make_room;
    void *context;
    struct pool *pool;
    uint32_t count;
    struct datagram_list {
        struct datagram *oldest, *newest;
    } lists[2]; /* [0] open, [1] complete */
    uint64_t seed[2];
    struct address_pair *pairs[PAIR_BUCKETS];
    struct datagram *buckets[BUCKETS];
};

struct reassembly *reassembly_open(datagram_finished *finished, reassembly_room *make_room) {
    struct reassembly *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->finished = finished;
    table->make_room = make_room;
    hash_seed_fill(table->seed, sizeof table->seed / sizeof *table->seed);
    return table;
}

void reassembly_use(struct reassembly *table, void *context, struct pool *pool) {
    table->context = context;
    table->pool = pool;
}

/* Returns the first datagram of the key's bucket. The key is hashed and compared as bytes, so its
 * padding must be zero. */
static struct datagram **bucket_of(struct reassembly *table, const struct datagram_key *key) {
    uint64_t words[6] = {0}, hash = table->seed[0];
    memcpy(words, key, sizeof *key);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_fold(hash ^ words[i], table->seed[1]);
    return &table->buckets[hash % BUCKETS];
}

static struct datagram *find(struct reassembly *table, const struct datagram_key *key) {
    struct datagram *datagram = *bucket_of(table, key);
    while (datagram && memcmp(&datagram->key, key, sizeof *key))
        datagram = datagram->chain;
    return datagram;
}

/* Returns the link of the chain that has the pair, or that ends where it belongs. */
static struct address_pair **pair_link(struct reassembly *table, const struct datagram_key *key) {
    uint64_t words[4], hash = table->seed[1] ^ key->path;
    memcpy(words, key->source, sizeof key->source);
    memcpy(words + 2, key->destination, sizeof key->destination);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_fold(hash ^ words[i], table->seed[0]);
    struct address_pair **link = &table->pairs[hash % PAIR_BUCKETS];
    while (*link && ((*link)->path != key->path ||
                     memcmp((*link)->source, key->source, sizeof key->source) != 0 ||
                     memcmp((*link)->destination, key->destination, sizeof key->destination) != 0))
        link = &(*link)->chain;
    return link;
}

/* Counts a datagram that begins. Returns false without memory. */
static bool join_pair(struct reassembly *table, struct datagram *datagram) {
    struct address_pair **link = pair_link(table, &datagram->key);
    if (!*link) {
        struct address_pair *pair = pool_alloc(table->pool, sizeof *pair);
        if (!pair)
            return false;
        *pair = (struct address_pair){.path = datagram->key.path};
        memcpy(pair->source, datagram->key.source, sizeof pair->source);
        memcpy(pair->destination, datagram->key.destination, sizeof pair->destination);
        *link = pair;
    }
    (*link)->datagrams++;
    datagram->pair = *link;
    datagram->pair_number = ++(*link)->begun;
    return true;
}

static void leave_pair(struct reassembly *table, const struct datagram *datagram) {
    struct address_pair *pair = datagram->pair;
    if (--pair->datagrams)
        return;
    *pair_link(table, &datagram->key) = pair->chain;
    pool_free(table->pool, pair, sizeof *pair);
}

/* Returns whether so many datagrams of the same addresses began since that the identification may
 * have been used again. */
static bool is_reused(const struct datagram *datagram) {
    return datagram->key.ip_version == 4 &&
           datagram->pair->begun - datagram->pair_number >= REUSE_LEAST;
}

static void enlist(struct reassembly *table, struct datagram *datagram) {
    struct datagram_list *list = &table->lists[datagram->complete];
    datagram->older = list->newest;
    datagram->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = datagram;
    list->newest = datagram;
}

static void delist(struct reassembly *table, struct datagram *datagram) {
    struct datagram_list *list = &table->lists[datagram->complete];
    *(datagram->older ? &datagram->older->newer : &list->oldest) = datagram->newer;
    *(datagram->newer ? &datagram->newer->older : &list->newest) = datagram->older;
}

static void discard(struct reassembly *table, struct datagram *datagram) {
    struct datagram **link = bucket_of(table, &datagram->key);
    while (*link != datagram)
        link = &(*link)->chain;
    *link = datagram->chain;
    delist(table, datagram);
    leave_pair(table, datagram);
    range_set_free(&datagram->original.gaps, table->pool);
    for (unsigned i = 0; i < DATAGRAM_COPIES_MOST; i++)
        range_set_free(&datagram->copies[i].gaps, table->pool);
    pool_release(table->pool, datagram->waiting, datagram->waiting_room, sizeof *datagram->waiting);
    pool_free(table->pool, datagram, sizeof *datagram);
    table->count--;
}

/* Reports a datagram and frees it. The callback must not call back into the table. */
static void finish(struct reassembly *table, struct datagram *datagram) {
    table->finished(table->context, datagram);
    discard(table, datagram);
}

void reassembly_close(struct reassembly *table) {
    for (unsigned list = 0; list < 2; list++)
        while (table->lists[list].oldest)
            discard(table, table->lists[list].oldest);
    free(table);
}

void reassembly_forget_flows(struct reassembly *table, const uint32_t *numbers, unsigned bits) {
    for (unsigned list = 0; list < 2; list++)
        for (struct datagram *datagram = table->lists[list].oldest; datagram;
             datagram = datagram->newer)
            if (datagram->counted && datagram->flow != FLOW_NONE &&
                numbers[datagram->flow >> bits] == FLOW_NONE)
                datagram->flow = FLOW_NONE;
}

uint32_t reassembly_count(const struct reassembly *table) {
    return table->count;
}

uint64_t reassembly_oldest(const struct reassembly *table, bool complete) {
    const struct datagram *datagram = table->lists[complete].oldest;
    return !datagram ? UINT64_MAX : complete ? datagram->completed : datagram->begun;
}

uint64_t reassembly_oldest_due(const struct reassembly *table, bool complete, int64_t now_ns) {
    const struct datagram *datagram = table->lists[complete].oldest;
    bool due = datagram && (complete ? now_ns - datagram->complete_ns > COPY_NS
                                     : now_ns - datagram->first_ns > DATAGRAM_KEPT_NS);
    return due ? reassembly_oldest(table, complete) : UINT64_MAX;
}

void reassembly_evict(struct reassembly *table, bool complete) {
    finish(table, table->lists[complete].oldest);
}

/* Nothing has arrived. The list of gaps must be empty. */
static void begin_coverage(struct reassembly *table, struct coverage *coverage,
                           const struct packet_info *packet) {
    struct gap all = {.end = DATAGRAM_UNBOUNDED};
    coverage->begun = true;
    coverage->ip_bytes = coverage->payload_bytes = 0;
    coverage->port = packet->port;
    coverage->ttl = packet->ttl;
    coverage->gaps_lost = range_set_open(&coverage->gaps, all, table->pool);
}

/* Returns NULL without memory. At the bound a complete datagram goes first, because it was counted
 * whole. */
static struct datagram *add(struct reassembly *table, const struct datagram_key *key,
                            const struct packet_info *packet) {
    if (table->make_room)
        table->make_room(table->context);
    else if (table->count >= DATAGRAMS_MOST)
        reassembly_evict(table, table->lists[1].oldest);
    struct datagram *datagram = pool_alloc(table->pool, sizeof *datagram);
    if (!datagram)
        return NULL;
    struct datagram **bucket = bucket_of(table, key);
    *datagram = (struct datagram){.key = *key,
                                  .chain = *bucket,
                                  .first_ns = packet->time_ns,
                                  .first_frame = packet->frame,
                                  .capture = packet->capture,
                                  .timed = packet->time_known};
    if (!join_pair(table, datagram)) {
        pool_free(table->pool, datagram, sizeof *datagram);
        return NULL;
    }
    *bucket = datagram;
    enlist(table, datagram);
    table->count++;
    begin_coverage(table, &datagram->original, packet);
    return datagram;
}

/* Returns the bytes of [start, end) that have not been seen. */
static uint32_t missing_in(const struct coverage *coverage, uint32_t start, uint32_t end) {
    int64_t bytes = 0;
    const struct range_set *gaps = &coverage->gaps;
    uint32_t i = range_set_first_above(gaps, start);
    for (; i < gaps->count && gaps->gaps[i].start < end; i++) {
        int64_t from = start > gaps->gaps[i].start ? start : gaps->gaps[i].start;
        int64_t to = end < gaps->gaps[i].end ? end : gaps->gaps[i].end;
        bytes += to - from;
    }
    return (uint32_t)bytes;
}

/* Removes [start, end) from the missing ranges. If a split finds no room, the upper part is
 * dropped. Returns the bytes that were missing. */
static uint32_t fill(struct reassembly *table, struct coverage *coverage, uint32_t start,
                     uint32_t end) {
    int64_t given_up = 0;
    struct gap_fill filled = range_set_fill(&coverage->gaps, start, end, table->pool, &given_up);
    coverage->gaps_lost |= given_up > 0;
    return (uint32_t)filled.bytes;
}

static bool is_covered(const struct coverage *coverage) {
    return !coverage->gaps.count && !coverage->gaps_lost;
}

/* Returns the copy that lacks the fragment, or a new one; NULL if there is no room. The fragments
 * of a copy pass the same port of the capture, at the same distance from their sender. */
static struct coverage *copy_of(struct reassembly *table, struct datagram *datagram, uint32_t start,
                                uint32_t end, const struct packet_info *packet) {
    struct coverage *unused = NULL;
    for (unsigned i = 0; i < DATAGRAM_COPIES_MOST; i++) {
        struct coverage *copy = &datagram->copies[i];
        if (!copy->begun || is_covered(copy))
            unused = copy;
        else if (copy->port == packet->port && copy->ttl == packet->ttl &&
                 missing_in(copy, start, end))
            return copy;
    }
    if (unused)
        begin_coverage(table, unused, packet);
    return unused;
}

/* Adds a fragment whose bytes were all seen to a copy. Returns the copy if that completes it, else
 * NULL. */
static struct coverage *cover_copy(struct reassembly *table, struct datagram *datagram,
                                   uint32_t start, uint32_t end, bool last,
                                   const struct packet_info *packet) {
    struct coverage *copy = copy_of(table, datagram, start, end, packet);
    if (!copy)
        return NULL;
    copy->ip_bytes += packet->ip_bytes;
    copy->payload_bytes += packet->payload_bytes;
    fill(table, copy, start, last ? DATAGRAM_UNBOUNDED : end);
    return is_covered(copy) ? copy : NULL;
}

static int64_t reassembly_ns(const struct datagram *datagram) {
    return datagram->key.ip_version == 4 ? REASSEMBLY_NS_IPV4 : REASSEMBLY_NS_IPV6;
}

/* Returns a value that differs between transport headers, 0 if the fragment has none. */
static uint64_t head_of(const struct headers *headers) {
    if (headers->layer != LAYER_TRANSPORT)
        return 0;
    uint32_t value = headers->protocol == IP_TCP ? headers->tcp.signature : headers->udp_length;
    uint32_t folded = (value ^ value >> 16) << 16 | headers->transport_checksum;
    return (uint64_t)headers->ports << 32 | folded;
}

/* Returns whether a fragment of the same addresses and identification must belong to a later
 * datagram. */
static bool is_another(const struct datagram *datagram, const struct headers *headers,
                       uint32_t start, uint32_t end, int64_t now_ns) {
    uint32_t missing = missing_in(&datagram->original, start, end);
    uint64_t head = head_of(headers);
    if (datagram->complete)
        return missing || now_ns - datagram->complete_ns > COPY_NS ||
               (head && head != datagram->head);
    if (now_ns - datagram->first_ns > reassembly_ns(datagram))
        return missing < end - start;
    return !missing && now_ns - datagram->last_ns > COPY_NS;
}

/* Judges a fragment before its bytes are removed. A partial overlap is forbidden in IPv6 (RFC 5722)
 * and suspicious in IPv4 (RFC 1858). */
static enum fragment_verdict judge(const struct datagram *datagram, uint32_t start, uint32_t end,
                                   bool last) {
    uint32_t missing = missing_in(&datagram->original, start, end);
    if (datagram->end_known && (end > datagram->size || (last && end != datagram->size)))
        return FRAGMENT_OVERLAP; /* two different ends cannot be of one datagram */
    if (!missing)
        return FRAGMENT_DUPLICATE;
    return missing < end - start ? FRAGMENT_OVERLAP : FRAGMENT_NEW;
}

/* Counts a fragment, and moves the datagram to the other list when it becomes complete. */
static void take(struct reassembly *table, struct datagram *datagram, const struct headers *headers,
                 const struct packet_info *packet, enum fragment_verdict verdict) {
    uint32_t start = headers->fragment_offset;
    uint32_t end = start + headers->ip_length - headers->ip_header_length;
    bool late =
        datagram->complete || packet->time_ns - datagram->first_ns > reassembly_ns(datagram);
    datagram->fragments++;
    datagram->duplicates += verdict == FRAGMENT_DUPLICATE;
    datagram->overlaps += verdict == FRAGMENT_OVERLAP;
    datagram->out_of_order += verdict != FRAGMENT_DUPLICATE && start < datagram->highest;
    datagram->late += late;
    bool ends = !headers->more_fragments && !datagram->end_known;
    if (!start && !datagram->head)
        datagram->head = head_of(headers);
    datagram->covered = NULL;
    if (verdict == FRAGMENT_DUPLICATE && !ends) {
        datagram->covered =
            cover_copy(table, datagram, start, end, !headers->more_fragments, packet);
    } else {
        datagram->original.ip_bytes += packet->ip_bytes;
        datagram->received += fill(table, &datagram->original, start, end);
    }
    /* The last fragment determines the end: nothing above it is missing. */
    if (ends) {
        datagram->end_known = true;
        datagram->size = end;
        fill(table, &datagram->original, end, DATAGRAM_UNBOUNDED);
    }
    datagram->highest = start > datagram->highest ? start : datagram->highest;
    datagram->last_ns = packet->time_ns;
    datagram->last_frame = packet->frame;
    if (!datagram->complete && datagram->end_known && is_covered(&datagram->original)) {
        delist(table, datagram);
        datagram->complete = true;
        datagram->complete_ns = packet->time_ns;
        datagram->covered = &datagram->original;
        enlist(table, datagram);
    }
}

struct datagram *reassembly_take(struct reassembly *table, const struct headers *headers,
                                 uint32_t path, const struct packet_info *packet,
                                 enum fragment_verdict *verdict) {
    struct datagram_key key = {.identification = headers->identification,
                               .path = path,
                               .protocol = headers->protocol,
                               .ip_version = headers->ip_version};
    memcpy(key.source, headers->source, sizeof key.source);
    memcpy(key.destination, headers->destination, sizeof key.destination);
    uint32_t start = headers->fragment_offset;
    uint32_t end = start + headers->ip_length - headers->ip_header_length;
    struct datagram *datagram = find(table, &key);
    if (datagram &&
        (is_reused(datagram) || is_another(datagram, headers, start, end, packet->time_ns))) {
        finish(table, datagram);
        datagram = NULL;
    }
    if (!datagram && !(datagram = add(table, &key, packet)))
        return NULL;
    *verdict = judge(datagram, start, end, !headers->more_fragments);
    take(table, datagram, headers, packet, *verdict);
    return datagram;
}

bool datagram_wait(struct reassembly *table, struct datagram *datagram,
                   const struct packet_info *packet) {
    if (datagram->waiting_count == datagram->waiting_room &&
        !pool_grow(table->pool, (void **)&datagram->waiting, &datagram->waiting_room,
                   sizeof *datagram->waiting, 2, DATAGRAM_WAITING_MOST))
        return false;
    datagram->waiting[datagram->waiting_count++] = *packet;
    return true;
}
