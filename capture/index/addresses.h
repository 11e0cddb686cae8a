/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses and ports in a packet: of each IP header, also inside VLANs, MPLS, PPPoE and
 * tunnels, of the packet that an ICMP error quotes, and of ARP. */
#ifndef WIRETALE_CAPTURE_ADDRESSES_H
#define WIRETALE_CAPTURE_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

enum address_size { ADDRESS_PORT = 2, ADDRESS_IPV4 = 4, ADDRESS_IPV6 = 16 };

struct address {
    uint8_t size; /* enum address_size */
    uint8_t bytes[ADDRESS_IPV6];
};

#define ADDRESSES_MAX 32 /* of a packet; further ones are left out */

/* Lists the addresses and returns their number. `data` has `captured` bytes. */
size_t packet_addresses(uint16_t link_type, const uint8_t *data, size_t captured,
                        struct address list[ADDRESSES_MAX]);

/* Returns a hash of an address. */
uint32_t address_hash(const struct address *address);

#endif
