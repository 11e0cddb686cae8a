/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges on the local network, which belong to no flow or to several: ARP (RFC 826, 5227),
 * neighbor discovery (RFC 4861), DHCP (RFC 2131), and multicast groups (IGMP, RFC 3376). Those of
 * RADIUS (RFC 2865), SIP (RFC 3261) and SCTP (RFC 9260) are here too, because one flow has many of
 * them at once, and those of services that say yes or no (service/service.h).
 *
 *   local_concerns() -> local_take() (in file order) -> rows of exchanges and neighbors
 *
 * The thread that completes chunks takes the packets, because an exchange spans packets that no
 * shard has together. Each interface of a capture is by itself, so that the packets of one file
 * suffice for its rows: shard/split.c takes them, and its shards do not. All input is hostile:
 * lengths are checked, and each list has a bound. */
#ifndef WIRETALE_LOCAL_H
#define WIRETALE_LOCAL_H

#include "decode/headers.h"
#include "exchange/exchange.h"
#include "service/service.h"

static inline bool is_dhcp_port(uint16_t port) {
    return port == 67 || port == 68;
}

static inline bool is_radius_port(uint16_t port) {
    return port == 1812 || port == 1813 || port == 1645 || port == 1646;
}

static inline bool is_sip_port(uint16_t port) {
    return port >= 5060 && port <= 5080; /* phones and trunks count on from 5060 */
}

/* Returns whether a datagram, or its first fragment, has ports of these services. */
static inline bool local_concerns_ports(uint16_t source, uint16_t destination, bool fragment) {
    return (!fragment && is_dhcp_port(source) && is_dhcp_port(destination)) ||
           is_radius_port(source) || is_radius_port(destination) || is_sip_port(source) ||
           is_sip_port(destination);
}

/* Returns whether a packet of SCTP begins with INIT, INIT ACK, ABORT, COOKIE ECHO or COOKIE ACK. */
static inline bool local_concerns_chunk(const struct headers *headers) {
    return headers->layer == LAYER_TRANSPORT && !headers->fragment &&
           headers->payload_captured >= 4 && headers->payload[0] < 12 &&
           0xC46 >> headers->payload[0] & 1;
}

/* Returns whether a packet may be one of these. Most packets cost this much. */
static inline bool local_concerns(const struct headers *headers) {
    if (!LIKELY(!(headers->arp_offset | headers->control_offset)))
        return true;
    if (headers->protocol == IP_IGMP || headers->protocol == IP_VRRP)
        return headers->layer == LAYER_NETWORK && !headers->fragment;
    if (headers->protocol == IP_TCP)
        return service_concerns(headers);
    if (headers->protocol == IP_UDP)
        return headers->layer == LAYER_TRANSPORT &&
               (local_concerns_ports(headers->source_port, headers->destination_port,
                                     headers->fragment) ||
                service_concerns(headers));
    if (headers->protocol == IP_SCTP)
        return local_concerns_chunk(headers);
    return headers->protocol == IP_ICMPV6 && headers->layer == LAYER_TRANSPORT &&
           !headers->fragment &&
           (headers->icmp.type == ICMPV6_SOLICITATION ||
            headers->icmp.type == ICMPV6_ADVERTISEMENT || headers->icmp.type == ICMPV6_ROUTER);
}

/* Makes an empty state. Rows of exchanges go into the sink, which must live as long. */
void local_init(struct local_exchanges *local, struct row_sink *sink);
void local_free(struct local_exchanges *local);

/* Takes a packet of which local_concerns() is true. */
void local_take(struct local_exchanges *local, const struct packet *packet,
                const struct headers *headers);

/* Returns the time of the last packet of an interface, TIME_UNKNOWN without one. */
typedef int64_t local_end(const void *context, uint32_t interface);
/* Gives up all exchanges that wait for an answer, and adds the rows of neighbors to the first sink.
 * Sets its out_of_memory if memory ran out. */
void local_finish(struct local_exchanges *local, struct row_sink *first, local_end *end_of,
                  const void *context);

#endif
