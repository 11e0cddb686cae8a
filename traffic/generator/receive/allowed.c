/* SPDX-License-Identifier: Apache-2.0 */
/* Bits behind the prefix must be 0, because "10.1.2.3/8" is more often a mistake than 10.0.0.0/8.
 */
#include "receive/allowed.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"

/* Compares the first `bits` bits. */
static bool same_prefix(const uint8_t *one, const uint8_t *other, unsigned bits) {
    unsigned bytes = bits / 8, rest = bits % 8;
    return !memcmp(one, other, bytes) && (!rest || !((one[bytes] ^ other[bytes]) >> (8 - rest)));
}

/* Returns whether all bits behind the first `bits` are 0. */
static bool ends_in_zeros(const uint8_t *address, unsigned size, unsigned bits) {
    for (unsigned bit = bits; bit < size * 8; bit++)
        if (address[bit / 8] >> (7 - bit % 8) & 1)
            return false;
    return true;
}

bool allowed_networks_take(void *networks, const char *text, const char **expected) {
    struct allowed_networks *to = networks;
    struct allowed_network *network = &to->list[to->count];
    char copy[INET6_ADDRSTRLEN + 5], *prefix = copy;
    *expected = to->count == MAX_ALLOWED
                    ? "at most 64 networks"
                    : "an address or a network without bits after its prefix, as in 192.0.2.0/24";
    if (to->count == MAX_ALLOWED || snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    strsep(&prefix, "/");
    network->family = strchr(copy, ':') ? AF_INET6 : AF_INET;
    unsigned size = network->family == AF_INET6 ? 16 : 4;
    uint64_t bits = size * 8;
    if (inet_pton(network->family, copy, network->address) != 1 ||
        (prefix && (!units_parse_whole(prefix, UNIT_COUNT, "", &bits) || bits > size * 8)) ||
        !ends_in_zeros(network->address, size, (unsigned)bits))
        return false;
    network->prefix = (unsigned)bits;
    to->count++;
    return true;
}

bool allowed_networks_contain(const struct allowed_networks *networks, const union endpoint *peer) {
    const uint8_t *address = peer->address.sa_family == AF_INET6
                                 ? peer->ipv6.sin6_addr.s6_addr
                                 : (const uint8_t *)&peer->ipv4.sin_addr;
    for (unsigned i = 0; i < networks->count; i++)
        if (networks->list[i].family == peer->address.sa_family &&
            same_prefix(networks->list[i].address, address, networks->list[i].prefix))
            return true;
    return !networks->count;
}
