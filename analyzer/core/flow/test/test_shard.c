/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that influence each other are in one shard, and shards are filled evenly. */
#include "flow/shard.h"

#include <string.h>

#include "common/test/check.h"

#define SHARDS 64u
#define PAIRS  64000u

static const struct shard_key key = {{0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x5A5A5A5AA5A5A5A5}};

static struct headers headers_of(uint32_t source, uint32_t destination) {
    struct headers headers = {.layer = LAYER_TRANSPORT, .ip_version = 4, .protocol = IP_UDP};
    memcpy(headers.source, &source, sizeof source);
    memcpy(headers.destination, &destination, sizeof destination);
    return headers;
}

/* Directions, ports, protocols, encapsulations and fragments make no difference. */
static void check_together(void) {
    for (uint32_t i = 0; i < 1000; i++) {
        struct headers there = headers_of(i, 7 * i + 1), back = headers_of(7 * i + 1, i);
        uint32_t shard = shard_of(&key, &there, SHARDS);
        back.source_port = 53;
        back.protocol = IP_TCP;
        CHECK_INT(shard_of(&key, &back, SHARDS), shard);
        there.fragment = true;
        there.fragment_offset = 1480;
        there.layer = LAYER_NETWORK;
        there.path_depth = 1;
        CHECK_INT(shard_of(&key, &there, SHARDS), shard);
        CHECK(shard < SHARDS);
        there.layer = LAYER_LINK;
        CHECK_INT(shard_of(&key, &there, SHARDS), SHARD_NONE);
    }
}

/* An error from a router is in the shard of the quoted packet, whichever direction that had. */
static void check_errors(void) {
    struct headers error = headers_of(99, 1), quoted = headers_of(1, 2);
    error.protocol = IP_ICMP;
    CHECK_INT(shard_of_quoted(&key, &error, SHARDS), SHARD_NONE);
    error.icmp.quotes = true;
    memcpy(error.icmp.quoted_source, quoted.destination, 16);
    memcpy(error.icmp.quoted_destination, quoted.source, 16);
    CHECK_INT(shard_of_quoted(&key, &error, SHARDS), shard_of(&key, &quoted, SHARDS));
    error.fragment = true;
    CHECK_INT(shard_of_quoted(&key, &error, SHARDS), SHARD_NONE);
    CHECK_INT(shard_of_quoted(&key, &quoted, SHARDS), SHARD_NONE);
}

/* Each of `count` shards has its part of the pairs, for IPv6 whose upper halves are equal too. */
static void check_even(uint32_t count, bool ipv6) {
    uint32_t filled[SHARDS] = {0};
    for (uint32_t i = 0; i < PAIRS; i++) {
        struct headers headers = headers_of(ipv6 ? 0x20010DB8 : 0x0A000000 + i,
                                            ipv6 ? 0x20010DB9 : 0x0A000001 + (i >> 8));
        if (ipv6)
            memcpy(headers.source + 12, &i, sizeof i);
        uint32_t shard = shard_of(&key, &headers, count);
        CHECK(shard < count);
        filled[shard % SHARDS]++;
    }
    for (uint32_t i = 0; i < count; i++)
        CHECK(filled[i] > PAIRS / count * 8 / 10 && filled[i] < PAIRS / count * 12 / 10);
}

int main(void) {
    check_together();
    check_errors();
    check_even(SHARDS, false);
    check_even(SHARDS, true);
    check_even(3, false);
    return 0;
}
