/* SPDX-License-Identifier: Apache-2.0 */
/* Selects first bytes, packet by packet in file order.
 *
 * A hash table has an entry for each TCP connection whose SYN was captured, or whose segment begins
 * like a request or a ClientHello: the sequence number of the first byte of each direction. A
 * segment is selected if it is within FIRST_BYTES of it, or within STREAM_BYTES if the stream
 * begins like TLS or DNS, whose messages have their length and can be skipped. If the first byte of
 * a direction does not match any protocol, both directions are closed; a direction is closed too
 * when it is far past its first bytes. Buckets count the open directions, so that most other
 * segments need no lookup. The table doubles up to SELECTIONS_MOST entries; if it is full, all are
 * dropped, so that the selection depends only on the packets and never on the seed of the hash. */
#include <stdlib.h>
#include <sys/mman.h>

#include "application/application.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "quic/quic_header.h"

#define ENTRIES_FIRST (1u << 18) /* of 16 bytes; half of them are used */
#define ENTRIES_LAST  (2 * SELECTIONS_MOST)

#define PAST_BYTES (STREAM_BYTES + 65536u) /* no segment comes so late that it is before these */

struct selection_entry {
    uint32_t hash;     /* 0: unused */
    uint32_t first[2]; /* sequence number of the first byte, by end of the flow key */
    uint8_t known;     /* bit `end`: first[end] is valid */
    uint8_t closed;    /* bit `end`: nothing more is selected */
    bool far;          /* STREAM_BYTES are selected of each direction, else FIRST_BYTES */
};

/* Few pages of the entries are used by most captures. */
static struct selection_entry *map_entries(uint32_t count) {
    return huge_pages_map(count * sizeof(struct selection_entry), false);
}

static void unmap_entries(struct selection_entry *entries, uint32_t count) {
    munmap(entries, count * sizeof *entries);
}

struct selection *selection_open(void) {
    struct selection *selection = calloc(1, sizeof *selection);
    if (selection && !(selection->entries = map_entries(ENTRIES_FIRST))) {
        free(selection);
        return NULL;
    }
    if (selection)
        selection->mask = ENTRIES_FIRST - 1;
    return selection;
}

void selection_close(struct selection *selection) {
    if (selection)
        unmap_entries(selection->entries, selection->mask + 1);
    free(selection);
}

/* Returns the entry of a hash, or the unused one that it would take. */
static inline struct selection_entry *entry_at(const struct selection *selection, uint32_t hash) {
    uint32_t place = hash & selection->mask;
    while (selection->entries[place].hash && selection->entries[place].hash != hash)
        place = (place + 1) & selection->mask;
    return &selection->entries[place];
}

static bool has_port(const struct headers *headers, uint16_t port) {
    return headers->source_port == port || headers->destination_port == port;
}

/* Returns whether a stream that begins with these bytes may consist of messages that have their
 * length. */
static bool begins_with_length(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    uint32_t captured = headers->payload_captured;
    return tls_begins(bytes, captured) || has_port(headers, PORT_DNS) ||
           has_port(headers, PORT_LLMNR) || dns_stream_begins(bytes, captured);
}

/* Returns whether a stream that begins with these bytes may be of a known protocol. */
static bool begins_well(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    uint32_t captured = headers->payload_captured;
    return begins_with_length(headers) || http_begins(bytes, captured) ||
           proxy_header_begins(bytes, captured);
}

static bool is_open(const struct selection_entry *entry, unsigned end) {
    return (entry->known & ~entry->closed) >> end & 1;
}

static void count_open(struct selection *selection, uint32_t hash, unsigned end, int change) {
    uint8_t *bucket = &selection->open[((hash >> SELECTION_SHIFT) ^ end) % SELECTION_BUCKETS];
    uint32_t open_count = selection->open_count + (uint32_t)change;
    if (*bucket < UINT8_MAX)
        __atomic_store_n(bucket, (uint8_t)(*bucket + change), __ATOMIC_RELAXED);
    __atomic_store_n(&selection->open_count, open_count, __ATOMIC_RELAXED);
}

static void set_first(struct selection *selection, struct selection_entry *entry, unsigned end,
                      uint32_t first) {
    bool was_open = is_open(entry, end);
    entry->first[end] = first;
    entry->known |= (uint8_t)(1u << end);
    if (!was_open && is_open(entry, end))
        count_open(selection, entry->hash, end, 1);
}

static void close_end(struct selection *selection, struct selection_entry *entry, unsigned end) {
    if (is_open(entry, end))
        count_open(selection, entry->hash, end, -1);
    entry->closed |= (uint8_t)(1u << end);
}

/* Doubles the table; without memory, or if it is full, drops all entries. */
static NOINLINE void make_room(struct selection *selection) {
    struct selection_entry *before = selection->entries;
    uint32_t mask = selection->mask, size = 2 * (mask + 1);
    struct selection_entry *grown = size <= ENTRIES_LAST ? map_entries(size) : NULL;
    if (!grown) {
        memset(before, 0, ((size_t)mask + 1) * sizeof *before);
        for (size_t i = 0; i < SELECTION_BUCKETS; i++)
            __atomic_store_n(&selection->open[i], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&selection->open_count, 0, __ATOMIC_RELAXED);
        selection->used = 0;
        return;
    }
    selection->entries = grown;
    selection->mask = size - 1;
    for (uint32_t i = 0; i <= mask; i++)
        if (before[i].hash)
            *entry_at(selection, before[i].hash) = before[i];
    unmap_entries(before, mask + 1);
}

/* Begins the entry of a connection, in place of an older one of the same flow. */
static struct selection_entry *begin_entry(struct selection *selection,
                                           struct selection_entry *entry, uint32_t hash) {
    bool new = entry->hash != hash;
    if (new && selection->used > selection->mask / 2) {
        make_room(selection);
        entry = entry_at(selection, hash);
    }
    for (unsigned end = 0; !new &&end < 2; end++)
        close_end(selection, entry, end);
    selection->used += new;
    *entry = (struct selection_entry){.hash = hash};
    return entry;
}

/* A SYN with another sequence number begins a new connection. */
static struct selection_entry *note_syn(struct selection *selection, struct selection_entry *entry,
                                        uint32_t hash, unsigned end, uint32_t first) {
    if (entry->hash != hash || (entry->known >> end & 1 && entry->first[end] != first))
        entry = begin_entry(selection, entry, hash);
    if (!(entry->known >> end & 1))
        set_first(selection, entry, end, first);
    return entry;
}

/* If the SYN of a stream was not captured, a segment that begins a message counts as its first.
 * Its acknowledgment is the first byte of the answer. */
static struct selection_entry *note_middle(struct selection *selection,
                                           struct selection_entry *entry, uint32_t hash,
                                           unsigned end, const struct headers *headers) {
    if (!headers->payload_captured || !begins_well(headers))
        return NULL;
    if (entry->hash != hash)
        entry = begin_entry(selection, entry, hash);
    set_first(selection, entry, end, headers->tcp.sequence);
    if (!(entry->known >> !end & 1) && headers->tcp.flags & TCP_ACK)
        set_first(selection, entry, !end, headers->tcp.acknowledgment);
    return entry;
}

/* Returns the part of a segment of an open direction. */
static struct selected select_part(struct selection *selection, struct selection_entry *entry,
                                   unsigned end, const struct headers *headers) {
    uint32_t captured = headers->payload_captured;
    uint32_t sequence = headers->tcp.sequence + !!(headers->tcp.flags & TCP_SYN);
    uint32_t position = sequence - entry->first[end];
    if (position > PAST_BYTES && position <= INT32_MAX)
        close_end(selection, entry, end);
    if (position >= STREAM_BYTES || !captured)
        return (struct selected){0};
    if (!position && !begins_well(headers)) {
        close_end(selection, entry, 0);
        close_end(selection, entry, 1);
        return (struct selected){0};
    }
    entry->far |= !position && begins_with_length(headers);
    uint32_t most = entry->far ? STREAM_BYTES : FIRST_BYTES;
    if (position >= most)
        return (struct selected){0};
    uint32_t room = most - position;
    return (struct selected){captured < room ? captured : room, position};
}

NOINLINE struct selected selection_segment(struct selection *selection, uint32_t hash, unsigned end,
                                           const struct headers *headers) {
    const struct tcp_header *tcp = &headers->tcp;
    hash += !hash;
    struct selection_entry *entry = entry_at(selection, hash);
    if (tcp->flags & TCP_SYN)
        entry = note_syn(selection, entry, hash, end, tcp->sequence + 1);
    else if (entry->hash != hash || !((entry->known | entry->closed) >> end & 1))
        entry = note_middle(selection, entry, hash, end, headers);
    return entry && is_open(entry, end) ? select_part(selection, entry, end, headers)
                                        : (struct selected){0};
}

void selection_pass(struct selection *selection, uint32_t hash, unsigned end,
                    const struct headers *headers) {
    hash += !hash;
    struct selection_entry *entry = entry_at(selection, hash);
    if (entry->hash != hash || !is_open(entry, end))
        return;
    uint32_t position = headers->tcp.sequence - entry->first[end];
    if (position > PAST_BYTES && position <= INT32_MAX)
        close_end(selection, entry, end);
}

bool selection_begins(const struct headers *headers) {
    return headers->payload_captured && begins_well(headers);
}

static bool is_dns_datagram(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    uint32_t captured = headers->payload_captured;
    if (has_port(headers, PORT_DNS))
        return captured;
    uint16_t port = has_port(headers, PORT_MDNS)    ? PORT_MDNS
                    : has_port(headers, PORT_LLMNR) ? PORT_LLMNR
                                                    : 0;
    return (port || dns_may_begin(bytes, captured)) && !has_port(headers, PORT_NETBIOS) &&
           dns_plausible(bytes, captured, headers->payload_length, port);
}

struct selected selection_datagram(const struct headers *headers) {
    uint32_t captured = headers->payload_captured;
    if (!is_dns_datagram(headers) && !quic_begins(headers->payload, captured))
        return (struct selected){0};
    return (struct selected){captured < DATAGRAM_BYTES ? captured : DATAGRAM_BYTES, 0};
}
