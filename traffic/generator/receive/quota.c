/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of blocks that each address may move in a time: a token bucket per IPv4 address or IPv6
 * network of 64 bits, because a host of IPv6 has that many addresses. A bucket is full at first and
 * fills at quota / time, so there is no hour at which all may begin anew at once.
 *
 * A test takes the bytes of its plan out of the bucket when it begins, so that parallel tests
 * cannot spend them twice, and returns the rest when it ends. The table is bounded and searched in
 * full, once for each test. If it must make room, it forgets the address that lacks the least: one
 * that has used much stays, however many others come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/units_text.h"
#include "receive/quota.h"

#define LEAST_GRANT 32 /* bytes of the smallest block */

struct quota_address {
    int family;
    uint8_t prefix[8];
    double left;      /* bytes at `at_ns`; a test may exceed its grant by a batch of blocks */
    uint64_t at_ns;   /* monotonic */
    uint64_t running; /* tests */
};

/* Both parts must be given, because a quota without a time would end the service of a host that
 * keeps its address. */
bool quota_take(void *into, const char *text, const char **expected) {
    struct quota *quota = into;
    char bytes[32];
    const char *time = strchr(text, '/');
    *expected = "bytes in a time, as in 10G/24h";
    if (!time || time - text >= (ptrdiff_t)sizeof bytes)
        return false;
    memcpy(bytes, text, (size_t)(time - text));
    bytes[time - text] = 0;
    return units_parse_whole(bytes, UNIT_SIZE, "", &quota->bytes) && quota->bytes &&
           quota->bytes <= INT64_MAX && units_parse_whole(time + 1, UNIT_TIME, "", &quota->ns) &&
           quota->ns >= NS_PER_S && quota->ns <= 1000000 * NS_PER_S;
}

static struct quota_address address_of(const union endpoint *peer) {
    struct quota_address address = {.family = peer->address.sa_family};
    if (address.family == AF_INET6)
        memcpy(address.prefix, &peer->ipv6.sin6_addr, sizeof address.prefix);
    else
        memcpy(address.prefix, &peer->ipv4.sin_addr, sizeof peer->ipv4.sin_addr);
    return address;
}

static void refill(const struct quota *quota, struct quota_address *address, uint64_t now_ns) {
    double most = (double)quota->bytes;
    double more = most * (double)(now_ns - address->at_ns) / (double)quota->ns;
    address->left = address->left + more < most ? address->left + more : most;
    address->at_ns = now_ns;
}

/* Returns the entry of the address, or NULL. */
static struct quota_address *find(const struct quota *quota, const struct quota_address *wanted) {
    for (uint32_t i = 0; i < quota->count; i++)
        if (quota->list[i].family == wanted->family &&
            !memcmp(quota->list[i].prefix, wanted->prefix, sizeof wanted->prefix))
            return &quota->list[i];
    return NULL;
}

/* Returns room for a new entry. There are fewer tests at once than entries, so one always has none
 * that runs. */
static struct quota_address *make_room(struct quota *quota) {
    struct quota_address *fullest = NULL;
    if (quota->count < MAX_QUOTA_ADDRESSES)
        return &quota->list[quota->count++];
    for (uint32_t i = 0; i < quota->count; i++)
        if (!quota->list[i].running && (!fullest || quota->list[i].left > fullest->left))
            fullest = &quota->list[i];
    return fullest;
}

uint64_t quota_grant(struct quota *quota, const union endpoint *peer, uint64_t wanted,
                     uint64_t now_ns, char error[ERROR_SIZE]) {
    struct quota_address wanted_address = address_of(peer), *address;
    if (!quota->list && !(quota->list = calloc(MAX_QUOTA_ADDRESSES, sizeof *quota->list))) {
        snprintf(error, ERROR_SIZE, "the receiver is out of memory or threads");
        return 0;
    }
    for (uint32_t i = 0; i < quota->count; i++)
        refill(quota, &quota->list[i], now_ns);
    address = find(quota, &wanted_address);
    if (!address) {
        address = make_room(quota);
        *address = wanted_address;
        address->left = (double)quota->bytes;
        address->at_ns = now_ns;
    }
    double all = address->left > 0 ? address->left : 0, grant = wanted ? (double)wanted : all;
    if (grant > all || grant < LEAST_GRANT) {
        double missing = ((double)quota->bytes - address->left) / (double)quota->bytes;
        snprintf(error, ERROR_SIZE,
                 "the quota of this address has %s left of %s; all in %s (--quota)",
                 UNITS_SHOW(SHOWN_BYTES, all), UNITS_SHOW(SHOWN_BYTES, quota->bytes),
                 UNITS_SHOW(SHOWN_DURATION, ceil(missing * (double)quota->ns / 1e9) * 1e9));
        return 0;
    }
    address->left -= grant;
    address->running++;
    return (uint64_t)grant;
}

void quota_return(struct quota *quota, const union endpoint *peer, uint64_t granted,
                  uint64_t moved) {
    struct quota_address wanted = address_of(peer), *address = find(quota, &wanted);
    if (!granted || !address)
        return;
    address->left += (double)granted - (double)moved;
    address->running--;
}
