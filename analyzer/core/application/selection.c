/* SPDX-License-Identifier: Apache-2.0 */
/* Selects first bytes in the reader's thread, packet by packet in file order.
 *
 * A hash table has an entry for each TCP connection whose SYN was captured, or whose segment begins
 * like a request or a ClientHello: the sequence number of the first byte of each direction. A
 * segment is selected if it is within FIRST_BYTES of it. If the first byte of a direction does not
 * match any protocol, both directions are closed, and further segments cost one lookup. The table
 * is as large as ENTRIES allow; if it is full, all entries are dropped, so that the selection
 * depends only on the packets and never on the seed of the hash. */
#include <stdlib.h>

#include "application/application.h"
#include "base/bytes.h"

#define ENTRIES      (1u << 18)
#define ENTRIES_MOST (ENTRIES / 2)

enum { ONE_END = 1, BOTH_ENDS = 3 };

struct entry {
    uint32_t hash;     /* 0: unused */
    uint32_t first[2]; /* sequence number of the first byte, by end of the flow key */
    uint8_t known;     /* bit `end`: first[end] is valid */
    uint8_t closed;    /* bit `end`: nothing more is selected */
};

struct selection {
    struct entry *entries;
    uint32_t used;
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
static inline struct entry *entry_at(const struct selection *selection, uint32_t hash) {
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

/* Begins the entry of a connection; returns NULL if its table was full. */
static struct entry *begin_entry(struct selection *selection, struct entry *entry, uint32_t hash) {
    if (entry->hash != hash && selection->used >= ENTRIES_MOST) {
        memset(selection->entries, 0, ENTRIES * sizeof *selection->entries);
        selection->used = 0;
        entry = entry_at(selection, hash);
    }
    selection->used += entry->hash != hash;
    *entry = (struct entry){.hash = hash};
    return entry;
}

/* A SYN with another sequence number begins a new connection. */
static struct entry *note_syn(struct selection *selection, struct entry *entry, uint32_t hash,
                              unsigned end, const struct tcp_header *tcp) {
    uint32_t first = tcp->sequence + 1;
    bool new = entry->hash != hash;
    if (new || (entry->known >> end & 1 && entry->first[end] != first))
        entry = begin_entry(selection, entry, hash);
    entry->first[end] = first;
    entry->known |= (uint8_t)(ONE_END << end);
    return entry;
}

/* Of a stream whose SYN was not captured: a segment that begins well is taken for its first one.
 * Its acknowledgment is the first byte of the answer. */
static struct entry *note_middle(struct selection *selection, struct entry *entry, uint32_t hash,
                                 unsigned end, const struct headers *headers) {
    if (!begins_well(headers))
        return NULL;
    if (entry->hash != hash)
        entry = begin_entry(selection, entry, hash);
    entry->first[end] = headers->tcp.sequence;
    entry->known |= (uint8_t)(ONE_END << end);
    if (!(entry->known >> !end & 1) && headers->tcp.flags & TCP_ACK) {
        entry->first[!end] = headers->tcp.acknowledgment;
        entry->known |= (uint8_t)(ONE_END << !end);
    }
    return entry;
}

NOINLINE struct selected selection_segment(struct selection *selection, uint32_t hash, unsigned end,
                                           const struct headers *headers) {
    const struct tcp_header *tcp = &headers->tcp;
    uint32_t sequence = tcp->sequence + !!(tcp->flags & TCP_SYN);
    hash += !hash;
    struct entry *entry = entry_at(selection, hash);
    if (tcp->flags & TCP_SYN)
        entry = note_syn(selection, entry, hash, end, tcp);
    else if (entry->hash == hash && entry->closed >> end & 1)
        return (struct selected){0};
    else if (entry->hash != hash || !(entry->known >> end & 1))
        entry = note_middle(selection, entry, hash, end, headers);
    if (!entry || !headers->payload_captured)
        return (struct selected){0};
    uint32_t position = sequence - entry->first[end];
    if (position >= FIRST_BYTES)
        return (struct selected){0};
    if (!position && !begins_well(headers)) {
        entry->closed = BOTH_ENDS;
        return (struct selected){0};
    }
    uint32_t room = FIRST_BYTES - position;
    uint32_t captured = headers->payload_captured;
    return (struct selected){captured < room ? captured : room, position};
}

struct selected selection_datagram(const struct headers *headers) {
    uint32_t captured = headers->payload_captured;
    if (!is_dns_port(headers) && !quic_begins(headers->payload, captured))
        return (struct selected){0};
    return (struct selected){captured < DATAGRAM_BYTES ? captured : DATAGRAM_BYTES, 0};
}
