/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed pseudonyms of addresses, for captures that leave the house.
 *
 * IP addresses are mapped by Crypto-PAn (Xu, Fan, Ammar and Moon, ICNP 2002): bit n is flipped by
 * AES-128 of the n bits before it and a padding, so that two addresses with a common prefix of n
 * bits have pseudonyms with a common prefix of n bits, and no more. It is one-to-one, and one key
 * gives the same pseudonyms in each capture, and in other Crypto-PAn programs but for the bits
 * below.
 *
 * A few bits are kept, because protocols and findings depend on them: the class of an IPv4 address
 * (its bits up to the first 0, at most four), so that a multicast address stays one, and the first
 * bits of IPv6 multicast and link-local addresses. 0.0.0.0, 255.255.255.255, :: and ::1 stay as
 * they are. MAC addresses keep their group and local bits; the broadcast address and the null
 * address stay. */
#ifndef WIRETALE_ADDRESS_MAP_H
#define WIRETALE_ADDRESS_MAP_H

#include <nettle/aes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_KEY_SIZE   32    /* bytes: the key of AES, and the padding before its encryption */
#define DIGEST_KEY_SIZE    16    /* bytes */
#define ADDRESS_CACHE_SIZE 16384 /* pseudonyms that are kept: at most one in each place */

struct address_map {
    struct aes128_ctx aes;
    uint8_t padding[16];
    uint8_t mac_key[DIGEST_KEY_SIZE], payload_key[DIGEST_KEY_SIZE];
    struct cached_address {
        uint8_t size; /* bytes of the address; 0: the place is empty */
        uint8_t from[16], to[16];
    } * cache; /* ADDRESS_CACHE_SIZE places */
};

/* Takes a secret key of ADDRESS_KEY_SIZE bytes. Returns false without memory. */
bool address_map_open(struct address_map *map, const uint8_t *key);
void address_map_close(struct address_map *map);

/* Replaces an IPv4 (4 bytes), MAC (6) or IPv6 (16) address by its pseudonym. */
void address_map_replace(struct address_map *map, uint8_t *address, size_t size);

/* Returns a keyed digest of payload, from which it cannot be found without the key. Its key is
 * another one, because the digests of addresses are secret: payload that looks like the input of
 * one would show bits of it. */
uint64_t address_map_digest(const struct address_map *map, const uint8_t *payload, size_t size);

#endif
