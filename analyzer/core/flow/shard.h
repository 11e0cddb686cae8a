/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets must be processed together, in file order.
 *
 * Flows are divided into shards by a seeded hash of their addresses, those of the innermost IP
 * header, without regard to the direction, to ports and to encapsulations: so all fragments of a
 * datagram, the flow that their ports select, copies from a mirror port and connections on reused
 * ports are in one shard. An ICMP error concerns two: that of its own flow, in which it is a
 * packet, and that of the flow whose packet it quotes. */
#ifndef WIRETALE_SHARD_H
#define WIRETALE_SHARD_H

#include "common/hash.h"
#include "decode/headers.h"

#define SHARD_SEEDS 3u
#define SHARD_NONE  UINT32_MAX

/* Shards are equal if their keys are: hash_seed_fill() makes a key that a sender cannot foresee. */
struct shard_key {
    uint64_t seed[SHARD_SEEDS];
};

/* Returns the hash of two addresses of two words each, in the order of struct flow_key. */
static inline uint64_t shard_hash(const uint64_t seed[static SHARD_SEEDS], const uint64_t first[2],
                                  const uint64_t second[2]) {
    uint64_t hash = hash_fold(first[0] ^ seed[0], second[0] ^ seed[1]);
    if (first[1] | second[1]) /* the other half of an IPv6 address */
        hash ^= hash_fold(first[1] ^ seed[1], second[1] ^ seed[2]);
    return hash;
}

/* Returns the shard of such a hash. The multiplication spreads its lower bits, the best ones, and
 * the upper bits of the product fill any number of shards evenly. */
static inline uint32_t shard_of_hash(uint64_t hash, uint32_t count) {
    return (uint32_t)((hash * UINT64_C(0x9E3779B97F4A7C15) >> 32) * count >> 32);
}

/* Returns the shard of the flows between two addresses, below `count`. IPv4 is in the first 4
 * bytes, and the rest is 0. */
uint32_t shard_of_addresses(const struct shard_key *key, const uint8_t source[static 16],
                            const uint8_t destination[static 16], uint32_t count);

/* Returns the shard of a packet's own flow, below `count`; SHARD_NONE if it has no IP header. */
uint32_t shard_of(const struct shard_key *key, const struct headers *headers, uint32_t count);

/* Returns whether the packet is an ICMP error that concerns the flow whose packet it quotes. A
 * fragment of one concerns only its own flow. */
static inline bool is_icmp_error(const struct headers *headers) {
    return is_icmp(headers->protocol) && headers->layer == LAYER_TRANSPORT && !headers->fragment &&
           headers->icmp.quotes;
}

/* Returns the shard of the flow that an ICMP error quotes, SHARD_NONE of any other packet. */
uint32_t shard_of_quoted(const struct shard_key *key, const struct headers *headers,
                         uint32_t count);

#endif
