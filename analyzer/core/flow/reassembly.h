/* SPDX-License-Identifier: Apache-2.0 */
/* Fragmented IP datagrams: which bytes arrived, and in which order.
 *
 * Payload is not reassembled; the missing ranges are kept (RFC 815). At most DATAGRAMS_MOST are
 * open; above that the oldest ends first. */
#ifndef WIRETALE_REASSEMBLY_H
#define WIRETALE_REASSEMBLY_H

#include "base/range_set.h"
#include "decode/headers.h"
#include "flow/flow.h"

#define DATAGRAMS_MOST        65536u
#define DATAGRAM_UNBOUNDED    UINT32_MAX /* end of the last gap until the last fragment arrives */
#define DATAGRAM_WAITING_MOST 256u       /* fragments that wait for the first one */

struct datagram_key {
    uint8_t source[16], destination[16];
    uint32_t identification, path;
    uint8_t protocol, ip_version;
    uint16_t zero; /* compared as bytes */
};

struct datagram {
    struct datagram_key key;
    struct datagram *chain, *older, *newer;
    bool complete, end_known, first_seen, gaps_lost, counted;
    bool timed;                             /* the times are those of its fragments */
    uint8_t transport_header;               /* bytes before the payload in the first fragment */
    uint16_t source_port, destination_port; /* ports of the first fragment */
    uint32_t tcp_sequence;                  /* of the first payload byte */
    int64_t first_ns, last_ns, complete_ns;
    uint64_t first_frame, last_frame;
    uint32_t capture;
    uint32_t flow, direction; /* of the fragment that was counted last, if `counted` */
    uint32_t fragments, duplicates, overlaps, out_of_order, late;
    uint32_t size, received, highest; /* bytes; `highest` is an offset */
    uint64_t overhead_bytes;
    struct range_set gaps; /* bytes of the IP payload that did not arrive */
    struct packet_info *waiting;
    uint32_t waiting_count, waiting_room;
};

enum fragment_verdict { FRAGMENT_NEW, FRAGMENT_DUPLICATE, FRAGMENT_OVERLAP };

struct reassembly;

/* Called for each datagram that is over; it is freed afterwards. */
typedef void datagram_finished(void *context, struct datagram *datagram);

/* Returns NULL without memory. The pool must outlive the table. */
struct reassembly *reassembly_open(datagram_finished *finished, void *context, struct pool *pool);
/* Frees the table without reporting; reassembly_finish() must come first if rows are wanted. */
void reassembly_close(struct reassembly *table);

/* Adds a fragment to its datagram, which is returned, valid until the next call; NULL without
 * memory. Sets `*verdict`. Reports another datagram of the same key if the fragment cannot belong
 * to it. */
struct datagram *reassembly_take(struct reassembly *table, const struct headers *headers,
                                 uint32_t path, const struct packet_info *seen,
                                 enum fragment_verdict *verdict);
/* Keeps a fragment until the first one arrives, which has the ports. Returns false at the bound. */
bool datagram_wait(struct reassembly *table, struct datagram *datagram,
                   const struct packet_info *seen);

/* Reports and frees the datagrams whose time has passed at `now_ns`. */
void reassembly_expire(struct reassembly *table, int64_t now_ns);
/* Reports and frees all datagrams, at the end of the capture. */
void reassembly_finish(struct reassembly *table);
/* Returns the number of datagrams that are kept. */
uint32_t reassembly_count(const struct reassembly *table);
uint64_t reassembly_evicted(const struct reassembly *table);

#endif
