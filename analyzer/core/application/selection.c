/* SPDX-License-Identifier: Apache-2.0 */
/* Selects first bytes in the reader's thread, packet by packet in file order.
 *
 * A hash table has an entry for each TCP connection whose SYN was captured, or whose segment begins
 * like a request or a ClientHello: the sequence number of the first byte of each direction. A
 * segment is selected if it is within FIRST_BYTES of it. If the first byte of a direction does not
 * match any protocol, both directions are closed; a direction is closed too when it is far past its
 * first bytes. Buckets count the open directions, so that most other segments need no lookup. The
 * table is as large as ENTRIES allow; if it is full, all entries are dropped, so that the selection
 * depends only on the packets and never on the seed of the hash. */
#include <stdlib.h>

#include "application/application.h"
#include "base/bytes.h"

#define ENTRIES      (1u << 18)
#define ENTRIES_MOST (ENTRIES / 2)

#define PAST_BYTES (FIRST_BYTES + 65536u) /* no segment comes so late that it is before these */

struct selection_entry {
    uint32_t hash;     /* 0: unused */
    uint32_t first[2]; /* sequence number of the first byte, by end of the flow key */
    uint8_t known;     /* bit `end`: first[end] is valid */
    uint8_t closed;    /* bit `end`: nothing more is selected */
};

struct selection *selection_open(void) {
    struct selection *selection = calloc(1, sizeof *selection);
    if (selection && !(selection->entries = calloc(ENTRIES, sizeof *selection->entries))) {
        free(selection);
        return NULL;
    }
    return selection;
}

void selection_close(struct selection *selection) {
    if (selection)
        free(selection->entries);
    free(selection);
}

/* Returns the entry of a hash, or the unused one that it would take. */
static inline struct selection_entry *entry_at(const struct selection *selection, uint32_t hash) {
    uint32_t place = hash % ENTRIES;
    while (selection->entries[place].hash && selection->entries[place].hash != hash)
        place = (place + 1) % ENTRIES;
    return &selection->entries[place];
}

static bool is_dns_port(const struct headers *headers) {
    return headers->source_port == PORT_DNS || headers->destination_port == PORT_DNS;
}

/* Returns whether a stream that begins with these bytes may be of a known protocol. */
static bool begins_well(const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    if (is_dns_port(headers))
        return true;
    uint32_t captured = headers->payload_captured;
    return tls_begins(bytes, captured) || http_begins(bytes, captured);
}

static bool is_open(const struct selection_entry *entry, unsigned end) {
    return (entry->known & ~entry->closed) >> end & 1;
}

static void set_first(struct selection *selection, struct selection_entry *entry, unsigned end,
                      uint32_t first) {
    uint8_t *bucket = selection_bucket(selection, entry->hash, end);
    if (!is_open(entry, end) && *bucket < UINT8_MAX)
        ++*bucket;
    entry->first[end] = first;
    entry->known |= (uint8_t)(1u << end);
}

static void close_end(struct selection *selection, struct selection_entry *entry, unsigned end) {
    uint8_t *bucket = selection_bucket(selection, entry->hash, end);
    if (is_open(entry, end) && *bucket < UINT8_MAX)
        --*bucket;
    entry->closed |= (uint8_t)(1u << end);
}

/* Begins the entry of a connection, in place of an older one of the same flow. */
static struct selection_entry *begin_entry(struct selection *selection,
                                           struct selection_entry *entry, uint32_t hash) {
    bool new = entry->hash != hash;
    if (new && selection->used >= ENTRIES_MOST) {
        memset(selection->entries, 0, ENTRIES * sizeof *selection->entries);
        memset(selection->open, 0, sizeof selection->open);
        selection->used = 0;
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

/* Of a stream whose SYN was not captured: a segment that begins well is taken for its first one.
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
    if (position >= FIRST_BYTES || !captured)
        return (struct selected){0};
    if (!position && !begins_well(headers)) {
        close_end(selection, entry, 0);
        close_end(selection, entry, 1);
        return (struct selected){0};
    }
    uint32_t room = FIRST_BYTES - position;
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

struct selected selection_datagram(const struct headers *headers) {
    uint32_t captured = headers->payload_captured;
    if (!is_dns_port(headers) && !quic_begins(headers->payload, captured))
        return (struct selected){0};
    return (struct selected){captured < DATAGRAM_BYTES ? captured : DATAGRAM_BYTES, 0};
}
