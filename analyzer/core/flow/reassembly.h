/* SPDX-License-Identifier: Apache-2.0 */
/* Fragmented IP datagrams: which bytes arrived, and in which order.
 *
 * Payload is not reassembled; the missing ranges are kept (RFC 815). Fragments that come again are
 * put together, too, because a mirror or the network may have duplicated the datagram. At most
 * DATAGRAMS_MOST are kept, of several tables together if reassembly_open() has a function for it.
 */
#ifndef WIRETALE_REASSEMBLY_H
#define WIRETALE_REASSEMBLY_H

#include "base/range_set.h"
#include "decode/headers.h"
#include "flow/flow.h"

#define DATAGRAMS_MOST        65536u
#define DATAGRAM_UNBOUNDED    UINT32_MAX /* end of the last gap until the last fragment arrives */
#define DATAGRAM_WAITING_MOST 256u       /* fragments that wait for the first one */
#define FLOW_NONE             UINT32_MAX
#define DATAGRAM_COPIES_MOST  3u /* that can be incomplete at the same time */

struct datagram_key {
    uint8_t source[16], destination[16];
    uint32_t identification, path;
    uint8_t protocol, ip_version;
    uint16_t zero; /* compared as bytes */
};

/* An open datagram is kept for so long after its first fragment, ns. */
#define DATAGRAM_KEPT_NS INT64_C(120000000000)

/* What arrived of a datagram, or of a copy of it. */
struct coverage {
    struct range_set gaps;            /* bytes of the IP payload that did not arrive */
    uint32_t ip_bytes, payload_bytes; /* of its fragments */
    uint16_t port;                    /* of the capture, that stored the first of them */
    uint8_t ttl;
    bool begun;
    bool gaps_lost; /* some were dropped, so it can never be known to be complete */
};

struct address_pair;

struct datagram {
    struct datagram_key key;
    struct datagram *chain, *older, *newer;
    struct address_pair *pair; /* of its key */
    uint32_t pair_number;      /* among those of the pair */
    bool complete, end_known, first_seen, counted;
    bool timed;                             /* the times are those of its fragments */
    bool has_tcp, has_payload;              /* the first fragment had them */
    uint8_t transport_header;               /* bytes before the payload in the first fragment */
    uint16_t source_port, destination_port; /* ports of the first fragment */
    uint64_t head; /* distinguishes transport headers; 0 before the first fragment */
    struct tcp_header tcp;
    struct sequence_payload payload; /* its beginning */
    int64_t first_ns, last_ns, complete_ns;
    uint64_t first_frame, last_frame;
    uint64_t begun, completed; /* the caller's: positions of these fragments, 0 before */
    uint64_t head_at;          /* likewise, of the first one with an offset of 0 */
    uint32_t capture;
    uint32_t flow, direction; /* of the fragment that was counted last, if `counted` */
    uint32_t fragments, duplicates, overlaps, out_of_order, late;
    uint32_t size, received, highest; /* bytes; `highest` is an offset */
    uint64_t overhead_bytes;
    struct coverage original, copies[DATAGRAM_COPIES_MOST];
    struct coverage *covered; /* that the fragment taken last completed, or NULL */
    struct packet_info *waiting;
    uint32_t waiting_count, waiting_room;
};

enum fragment_verdict { FRAGMENT_NEW, FRAGMENT_DUPLICATE, FRAGMENT_OVERLAP };

struct reassembly;

/* Called for each datagram that is over; it is freed afterwards. */
typedef void datagram_finished(void *context, struct datagram *datagram);

/* Called before a datagram is added: it may evict others. */
typedef void reassembly_room(void *context);

/* `make_room` is NULL for a table with a limit of its own. Returns NULL without memory.
 * reassembly_use() must come next. */
struct reassembly *reassembly_open(datagram_finished *finished, reassembly_room *make_room);
/* Sets the context of the functions, and the pool from which datagrams are allocated. */
void reassembly_use(struct reassembly *table, void *context, struct pool *pool);
/* Frees the table without reporting its datagrams. */
void reassembly_close(struct reassembly *table);

/* Adds a fragment to its datagram, which is returned, valid until the next call; NULL without
 * memory. Sets `*verdict`. Reports another datagram of the same key if the fragment cannot belong
 * to it. */
struct datagram *reassembly_take(struct reassembly *table, const struct headers *headers,
                                 uint32_t path, const struct packet_info *packet,
                                 enum fragment_verdict *verdict);
/* Keeps a fragment until the first one arrives, which has the ports. Returns false at the bound. */
bool datagram_wait(struct reassembly *table, struct datagram *datagram,
                   const struct packet_info *packet);

/* Forgets the flows of datagrams for which a list has FLOW_NONE, by number without its lower bits.
 */
void reassembly_forget_flows(struct reassembly *table, const uint32_t *numbers, unsigned bits);
/* Returns the number of datagrams that are kept. */
uint32_t reassembly_count(const struct reassembly *table);
/* Returns the position at which the oldest datagram that is complete was completed, or the oldest
 * one that is not was begun; UINT64_MAX without one. */
uint64_t reassembly_oldest(const struct reassembly *table, bool complete);
/* The same of a datagram whose time has passed at `now_ns`. */
uint64_t reassembly_oldest_due(const struct reassembly *table, bool complete, int64_t now_ns);
/* Reports and frees the oldest datagram. */
void reassembly_evict(struct reassembly *table, bool complete);

#endif
