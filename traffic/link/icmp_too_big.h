/* SPDX-License-Identifier: Apache-2.0 */
/* "Fragmentation needed" (RFC 1191) and "packet too big" (RFC 4443) for a packet that the link
 * cannot carry. */
#ifndef WIRETALE_LINK_ICMP_TOO_BIG_H
#define WIRETALE_LINK_ICMP_TOO_BIG_H

#include <stdint.h>

#include "link_packet.h"

#define TOO_BIG_FRAME_MOST (ETHERNET_BYTES + 8u + 1280u)

/* Who answers: addresses of the link. */
struct link_addresses {
    uint8_t ip4[4];
    uint8_t ip6[16];
};

/* The answer to the packet's sender, as a frame of TOO_BIG_FRAME_MOST bytes at most; its size, 0:
 * none is due. */
uint32_t icmp_too_big(const struct link_packet *packet, uint16_t mtu,
                      const struct link_addresses *from, uint8_t *frame);

#endif
