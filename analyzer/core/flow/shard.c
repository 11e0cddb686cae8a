/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses are ordered before they are hashed, because both directions of a flow must be in
 * one shard; any fixed order would do. */
#include "flow/shard.h"

#include <string.h>

uint32_t shard_of_addresses(const struct shard_key *key, const uint8_t source[static 16],
                            const uint8_t destination[static 16], uint32_t count) {
    uint64_t ends[2][2];
    memcpy(ends[0], source, sizeof ends[0]);
    memcpy(ends[1], destination, sizeof ends[1]);
    bool second = ends[0][0] != ends[1][0] ? ends[0][0] > ends[1][0] : ends[0][1] > ends[1][1];
    return shard_of_hash(shard_hash(key->seed, ends[second], ends[!second]), count);
}

uint32_t shard_of(const struct shard_key *key, const struct headers *headers, uint32_t count) {
    if (headers->layer < LAYER_NETWORK)
        return SHARD_NONE;
    return shard_of_addresses(key, headers->source, headers->destination, count);
}

uint32_t shard_of_quoted(const struct shard_key *key, const struct headers *headers,
                         uint32_t count) {
    if (!is_icmp_error(headers))
        return SHARD_NONE;
    return shard_of_addresses(key, headers->icmp.quoted_source, headers->icmp.quoted_destination,
                              count);
}
