/* SPDX-License-Identifier: Apache-2.0 */
/* Who announces itself to the local network: routers (VRRP, router advertisements of IPv6), ports
 * that want a pause of their link (IEEE 802.3 annex 31B), and bridges (IEEE 802.1D). */
#ifndef WIRETALE_LOCAL_ANNOUNCERS_H
#define WIRETALE_LOCAL_ANNOUNCERS_H

#include "exchange/exchange.h"

/* All bytes are set: they are compared. */
struct announcer_key {
    uint64_t path;
    uint8_t source[16];     /* IPv4 in the first 4 bytes; 0 of a pause and a bridge */
    uint8_t mac[MAC_BYTES]; /* of a pause or bridge; else 0 */
    uint16_t number;        /* VRRP: virtual router; bridge_change: the first is 1 */
    uint32_t interface;
    uint16_t kind, version; /* enum word: announcers.kind; version of IP, 0 without one */
};

struct announcer {
    struct announcer_key key;
    int64_t first_ns, last_ns; /* TIME_UNKNOWN without a time */
    uint64_t first_frame, last_frame, packets, withdrawals;
    uint32_t value; /* VRRP: priority; router: lifetime, s; router_na: its router flag; pause: the
                       longest, in quanta; bridge: changes of the topology that it told */
    bool changing;  /* bridge: the latest BPDU told one */
    uint16_t vlan;
    bool addressed; /* `address` is set */
    uint8_t prefix_length;
    uint8_t address[16]; /* VRRP: the first virtual address; router: the least prefix */
};

void vrrp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers);
void router_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct headers *headers);
/* A neighbor advertisement, of which those of routers are noted that announced themselves before.
 */
void router_flag_take(struct local_exchanges *local, const struct local_packet *place,
                      const struct headers *headers);
void bridge_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct packet *packet, const struct headers *headers);
void pause_take(struct local_exchanges *local, const struct local_packet *place,
                const struct packet *packet, const struct headers *headers);
/* Adds the row of an announcer. */
void announcer_row_add(const struct local_exchanges *local, const void *entry,
                       struct row_sink *sink);

#endif
