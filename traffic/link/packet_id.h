/* SPDX-License-Identifier: Apache-2.0 */
/* What tells a packet from all others, in captures as well. */
#ifndef WIRETALE_LINK_PACKET_ID_H
#define WIRETALE_LINK_PACKET_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "truth_record.h"

/* Writes the packet's identity into the record, and where its IP header is. False: no IP packet, or
 * one by which hosts find each other on a link (neighbour discovery, multicast listeners): as ARP,
 * it is of the link itself. */
bool packet_identify(const uint8_t *frame, uint32_t size, struct truth_record *truth,
                     uint32_t *ip_at);

#endif
