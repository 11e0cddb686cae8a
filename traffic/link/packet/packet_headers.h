/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of packets: those that identify a packet, in the truth file as in captures, and those of
 * the ICMP messages that the link sends. */
#ifndef WIRETALE_LINK_PACKET_HEADERS_H
#define WIRETALE_LINK_PACKET_HEADERS_H

#include "packet/link_packet.h"

#define MAX_TOO_BIG_FRAME (ETHERNET_BYTES + 8u + 1280u)

/* The link's own addresses, from which it answers. */
struct link_addresses {
    uint8_t ip4[4];
    uint8_t ip6[16];
};

/* Writes addresses, ports, numbers and sizes of the packet into the record, and the offset of its
 * IP header. Any bytes are valid input; the record holds as much as they contain.
 *
 * Returns false if the frame is not an IP packet, or if it is one that must not be emulated: hosts
 * find each other by neighbor discovery (RFC 4861) and multicast listener discovery (RFC 3810), as
 * by ARP, and without them nothing would pass. */
bool packet_identify(const uint8_t *frame, uint32_t size, struct truth_record *truth,
                     uint32_t *ip_at);

/* Marks the packet "congestion experienced" (RFC 3168, section 5), and corrects the checksum of its
 * IPv4 header. Returns false if its transport is not ECN-capable: the packet is then unchanged. */
bool packet_mark(struct link_packet *packet);

/* Makes the frame of "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443) to the
 * packet's sender; it quotes the packet. Returns its size, at most MAX_TOO_BIG_FRAME, or 0 if no
 * message may be sent about this packet: a later fragment, an ICMP error, a multicast
 * (RFC 1122, 3.2.2; RFC 4443, 2.4). */
uint32_t icmp_too_big(const struct link_packet *packet, uint16_t mtu,
                      const struct link_addresses *from, uint8_t *frame);

#endif
