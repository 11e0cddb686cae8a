/* SPDX-License-Identifier: Apache-2.0 */
/* The pseudonyms. A kept bit is one whose flip is 0 for each address with the same bits before it,
 * so that the mapping stays one-to-one and preserves prefixes. An address that must stay itself
 * changes places with the one that would get its pseudonym: these two alone break the prefixes.
 * Pseudonyms are cached at a place that depends on the key, so that memory is constant. */
#include "cut/address_map.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DIGEST_KEY_SIZE == crypto_shorthash_KEYBYTES, "a key of SipHash-2-4");
_Static_assert(ADDRESS_KEY_SIZE == crypto_kdf_KEYBYTES, "a key of the derivation");
_Static_assert(ADDRESS_KEY_SIZE == 2 * AES128_KEY_SIZE, "key and padding");

#define DERIVED_FOR "wiretale" /* crypto_kdf_CONTEXTBYTES */
#define MAC_SIZE    6
#define IPV4_SIZE   4
#define IPV6_SIZE   16

bool address_map_open(struct address_map *map, const uint8_t *key) {
    map->cache = sodium_init() < 0 ? NULL : calloc(ADDRESS_CACHE_SIZE, sizeof *map->cache);
    aes128_set_encrypt_key(&map->aes, key);
    aes128_encrypt(&map->aes, AES_BLOCK_SIZE, map->padding, key + AES128_KEY_SIZE);
    crypto_kdf_derive_from_key(map->mac_key, sizeof map->mac_key, 1, DERIVED_FOR, key);
    crypto_kdf_derive_from_key(map->payload_key, sizeof map->payload_key, 2, DERIVED_FOR, key);
    return map->cache != NULL;
}

void address_map_close(struct address_map *map) {
    free(map->cache);
    sodium_memzero(map, sizeof *map);
}

static uint64_t digest_of(const uint8_t *key, const uint8_t *bytes, size_t size) {
    uint64_t digest;
    crypto_shorthash((uint8_t *)&digest, bytes, size, key);
    return digest;
}

uint64_t address_map_digest(const struct address_map *map, const uint8_t *payload, size_t size) {
    return digest_of(map->payload_key, payload, size);
}

static bool bit_at(const uint8_t *bytes, unsigned bit) {
    return bytes[bit / 8] >> (7 - bit % 8) & 1;
}

/* Whether bit `bit` is kept: the class of IPv4, and the way to ff00::/8 with flags and scope and to
 * fe80::/10. */
static bool bit_is_kept(const uint8_t *address, size_t size, unsigned bit) {
    bool after_ones = bit < 8 && address[0] >> (8 - bit) == 0xff >> (8 - bit);
    if (size == IPV4_SIZE)
        return bit < 4 && after_ones;
    if (after_ones || (address[0] == 0xff && bit < 16))
        return true;
    return address[0] == 0xfe && (bit == 8 || (bit == 9 && address[1] & 0x80));
}

/* A block is the bits before this one, then the padding; its first bit in AES flips this one. */
static void map_bits(const struct address_map *map, const uint8_t *from, uint8_t *to, size_t size) {
    uint8_t block[AES_BLOCK_SIZE], coded[AES_BLOCK_SIZE];
    memcpy(block, map->padding, sizeof block);
    memset(to, 0, size);
    for (unsigned bit = 0; bit < size * 8; bit++) {
        aes128_encrypt(&map->aes, sizeof block, coded, block);
        bool flip = !bit_is_kept(from, size, bit) && bit_at(coded, 0);
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        if (bit_at(from, bit) != flip)
            to[bit / 8] |= mask;
        block[bit / 8] = (uint8_t)((block[bit / 8] & ~mask) | (from[bit / 8] & mask));
    }
}

/* 0.0.0.0 and ::, 255.255.255.255, ::1. */
static bool is_fixed(const uint8_t *address, size_t size) {
    static const uint8_t null[IPV6_SIZE], all[IPV4_SIZE] = {255, 255, 255, 255};
    if (!memcmp(address, null, size - 1) && address[size - 1] <= (size == IPV6_SIZE))
        return true;
    return size == IPV4_SIZE && !memcmp(address, all, IPV4_SIZE);
}

/* Follows the pseudonyms of fixed addresses to one that is free; that of `from` is one-to-one. */
static void map_ip(const struct address_map *map, const uint8_t *from, uint8_t *to, size_t size) {
    uint8_t taken[IPV6_SIZE];
    memcpy(to, from, size);
    if (is_fixed(from, size))
        return;
    do {
        memcpy(taken, to, size);
        map_bits(map, taken, to, size);
    } while (is_fixed(to, size));
}

/* Keeps the group and local bits; the rest is a digest: 46 bits, so that two addresses of a capture
 * hardly ever have one pseudonym. */
static void map_mac(const struct address_map *map, const uint8_t *from, uint8_t *to) {
    static const uint8_t null[MAC_SIZE], all[MAC_SIZE] = {255, 255, 255, 255, 255, 255};
    memcpy(to, from, MAC_SIZE);
    if (!memcmp(from, null, MAC_SIZE) || !memcmp(from, all, MAC_SIZE))
        return;
    uint64_t digest = digest_of(map->mac_key, from, MAC_SIZE);
    memcpy(to, &digest, MAC_SIZE);
    to[0] = (uint8_t)((to[0] & ~3) | (from[0] & 3));
}

void address_map_replace(struct address_map *map, uint8_t *address, size_t size) {
    uint64_t digest = digest_of(map->mac_key, address, size);
    struct cached_address *cached = &map->cache[digest % ADDRESS_CACHE_SIZE];
    if (cached->size != size || memcmp(cached->from, address, size) != 0) {
        cached->size = (uint8_t)size;
        memcpy(cached->from, address, size);
        if (size == MAC_SIZE)
            map_mac(map, address, cached->to);
        else
            map_ip(map, address, cached->to, size);
    }
    memcpy(address, cached->to, size);
}
