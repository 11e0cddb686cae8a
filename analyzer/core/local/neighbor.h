/* SPDX-License-Identifier: Apache-2.0 */
/* Which MAC addresses claim an IP address: in ARP packets with it as the sender, and in neighbor
 * solicitations and advertisements. */
#ifndef WIRETALE_NEIGHBOR_H
#define WIRETALE_NEIGHBOR_H

#include "exchange/exchange.h"

/* All bytes are set: they are compared. */
struct neighbor_key {
    uint64_t path;
    uint8_t address[16]; /* IPv4 in the first 4 bytes, the rest 0 */
    uint8_t mac[MAC_BYTES];
    uint16_t version; /* of IP */
    uint32_t interface;
    uint32_t none; /* 0 */
};

struct neighbor {
    struct neighbor_key key;
    int64_t first_ns, last_ns, conflict_ns; /* TIME_UNKNOWN without a time */
    uint64_t first_frame, last_frame;
    uint64_t conflict_frame, other_frame; /* both answers of the first conflict, or 0 */
    uint64_t claims, answers, conflicts;
    uint16_t vlan;
};

/* Notes that a MAC address claims an address; `answers` if it was asked for it. */
void neighbor_claim(struct local_exchanges *local, const struct local_packet *packet,
                    unsigned version, const uint8_t *address, const uint8_t *mac, bool answers);
/* Notes that two MAC addresses answered the same request: one that has been answered, and another
 * one with this packet. */
void neighbor_conflict(struct local_exchanges *local, const struct local_packet *packet,
                       const struct local_exchange *exchange, const uint8_t *mac);
/* Adds the row of a neighbor. */
void neighbor_row_add(const struct local_exchanges *local, const void *entry,
                      struct row_sink *sink);

#endif
