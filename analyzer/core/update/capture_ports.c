/* SPDX-License-Identifier: Apache-2.0 */
/* A port is a number of PORT_BITS bits, a hash of link addresses and interface. Its name is a slot
 * of a table of that size: the addresses of the first packet. If another pair of addresses has the
 * same number, the slot is shared and gives no name.
 *
 * Pairs of ports are a list with a bound. Each field of a pair is a sum, a minimum or a maximum, so
 * that each worker may have a list of its own. If the list is full, further pairs
 * are not counted. */
#include "update/capture_ports.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"

#define NAMES     (1u << PORT_BITS)
#define PAIRS     1024u
#define BUCKETS   2048u
#define ETHERNET  1 /* LINKTYPE_ETHERNET */
#define ADDRESSES 12u

enum name_state { NAME_NONE, NAME_KNOWN, NAME_SHARED };

struct port_name {
    uint64_t complement; /* of the first packet's interface and hash; 0 without a packet */
    uint8_t state;       /* enum name_state */
    uint8_t addressed;   /* `addresses` is set: destination, source */
    uint8_t addresses[ADDRESSES];
};

struct pair {
    uint64_t packets;
    int64_t delay_ns_max;
    uint32_t interface; /* of the second port */
    uint16_t port[2];   /* the first may be NO_PORT */
    uint8_t ttl_min[2], ttl_max[2];
};

struct port_pairs {
    struct pair pairs[PAIRS];
    uint32_t pair_count;
    uint16_t buckets[BUCKETS]; /* index of a pair + 1, 0 if empty; probed linearly */
};

struct capture_ports {
    struct port_name names[NAMES];
    struct port_pairs pairs;
};

/* Few of its pages are used. */
struct capture_ports *capture_ports_open(void) {
    return huge_pages_map(sizeof(struct capture_ports), false);
}

void capture_ports_close(struct capture_ports *ports) {
    if (ports)
        munmap(ports, sizeof *ports);
}

static uint64_t complement_of(const struct headers *headers, const struct packet_info *packet) {
    return ~((uint64_t)packet->capture << 32 | headers->link_hash);
}

bool capture_ports_has(const struct capture_ports *ports, const struct headers *headers,
                       const struct packet_info *packet) {
    const struct port_name *name = &ports->names[packet->port];
    uint64_t complement = __atomic_load_n(&name->complement, __ATOMIC_RELAXED);
    return LIKELY(complement == complement_of(headers, packet)) ||
           __atomic_load_n(&name->state, __ATOMIC_RELAXED) == NAME_SHARED;
}

void capture_ports_note(struct capture_ports *ports, const struct packet *packet,
                        const struct headers *headers, const struct packet_info *info) {
    struct port_name *name = &ports->names[info->port];
    if (capture_ports_has(ports, headers, info))
        return;
    bool known = name->state;
    __atomic_store_n(&name->state, known ? NAME_SHARED : NAME_KNOWN, __ATOMIC_RELAXED);
    if (known)
        return;
    __atomic_store_n(&name->complement, complement_of(headers, info), __ATOMIC_RELAXED);
    name->addressed = packet->link_type == ETHERNET && packet->captured >= ADDRESSES;
    if (name->addressed)
        memcpy(name->addresses, packet->data, ADDRESSES);
}

/* Returns the pair, which is added if it is new; NULL if the list is full. */
static struct pair *pair_of(struct port_pairs *list, uint32_t interface, uint16_t first,
                            uint16_t second) {
    uint32_t at = (first * 31u + second * 7u + interface) % BUCKETS;
    for (; list->buckets[at]; at = (at + 1) % BUCKETS) {
        struct pair *pair = &list->pairs[list->buckets[at] - 1];
        if (pair->interface == interface && pair->port[0] == first && pair->port[1] == second)
            return pair;
    }
    if (list->pair_count == PAIRS)
        return NULL;
    struct pair *pair = &list->pairs[list->pair_count++];
    list->buckets[at] = (uint16_t)list->pair_count;
    *pair = (struct pair){
        .interface = interface, .port = {first, second}, .ttl_min = {UINT8_MAX, UINT8_MAX}};
    return pair;
}

static void note_ttl(struct pair *pair, unsigned side, uint8_t ttl) {
    if (ttl < pair->ttl_min[side])
        pair->ttl_min[side] = ttl;
    if (ttl > pair->ttl_max[side])
        pair->ttl_max[side] = ttl;
}

/* Adds a pair of another list, if there is room. */
static void join_pair(struct port_pairs *list, const struct pair *other) {
    struct pair *pair = pair_of(list, other->interface, other->port[0], other->port[1]);
    if (!pair)
        return;
    pair->packets += other->packets;
    if (other->delay_ns_max > pair->delay_ns_max)
        pair->delay_ns_max = other->delay_ns_max;
    for (unsigned side = 0; side < 2; side++) {
        note_ttl(pair, side, other->ttl_min[side]);
        note_ttl(pair, side, other->ttl_max[side]);
    }
}

void capture_ports_join(struct capture_ports *ports, const struct port_pairs *list) {
    for (uint32_t i = 0; list && i < list->pair_count; i++)
        join_pair(&ports->pairs, &list->pairs[i]);
}

bool port_pairs_add(struct port_pairs **list, const struct packet_info *packet,
                    const struct segment_effect *effect) {
    if (!*list && !(*list = calloc(1, sizeof **list)))
        return false;
    struct pair *pair = pair_of(*list, packet->capture, effect->first_port, packet->port);
    if (!pair)
        return true;
    pair->packets++;
    if (effect->port_delay_ns > pair->delay_ns_max)
        pair->delay_ns_max = effect->port_delay_ns;
    note_ttl(pair, 0, effect->first_ttl);
    note_ttl(pair, 1, packet->ttl);
    return true;
}

/* --- sums ------------------------------------------------------------------------------------ */

static uint32_t interface_of(const struct port_name *name) {
    return (uint32_t)(~name->complement >> 32);
}

static struct port_of_pair port_of(const struct capture_ports *ports, const struct pair *pair,
                                   unsigned side) {
    const struct port_name *name = &ports->names[pair->port[side]];
    struct port_of_pair port = {.named = name->state == NAME_KNOWN,
                                .ttl_min = pair->ttl_min[side],
                                .ttl_max = pair->ttl_max[side]};
    if (!port.named)
        return port;
    port.interface = interface_of(name);
    port.addressed = name->addressed;
    memcpy(port.destination, name->addresses, sizeof port.destination);
    memcpy(port.source, name->addresses + sizeof port.destination, sizeof port.source);
    return port;
}

/* Orders pairs by frequency, then by their ports. */
static bool precedes(const struct pair *one, const struct pair *other) {
    if (one->packets != other->packets)
        return one->packets > other->packets;
    if (one->port[0] != other->port[0])
        return one->port[0] < other->port[0];
    return one->port[1] < other->port[1];
}

void capture_ports_sum(const struct capture_ports *ports, uint32_t interface, unsigned most,
                       struct second_ports *sum) {
    const struct port_pairs *list = &ports->pairs;
    const struct pair *named[PORT_PAIRS_MOST] = {NULL};
    *sum = (struct second_ports){0};
    for (uint32_t i = 0; i < list->pair_count; i++) {
        const struct pair *pair = &list->pairs[i];
        if (pair->interface != interface)
            continue;
        sum->packets += pair->packets;
        if (pair->delay_ns_max > sum->delay_ns_max)
            sum->delay_ns_max = pair->delay_ns_max;
        if (pair->port[0] == NO_PORT)
            continue;
        for (unsigned k = 0; k < most; k++) {
            if (named[k] && !precedes(pair, named[k]))
                continue;
            const struct pair *moved = named[k];
            named[k] = pair;
            pair = moved;
            if (!pair)
                break;
        }
    }
    for (; sum->count < most && named[sum->count]; sum->count++) {
        const struct pair *pair = named[sum->count];
        sum->pairs[sum->count].packets = pair->packets;
        sum->pairs[sum->count].ports_number = (uint32_t)pair->port[0] << 16 | pair->port[1];
        for (unsigned side = 0; side < 2; side++)
            sum->pairs[sum->count].ports[side] = port_of(ports, pair, side);
    }
}
