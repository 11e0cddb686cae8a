/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbors are listed with their first claim. Once NEIGHBORS_MOST are listed, further ones are
 * left out, so that the rows do not depend on the order in which hosts would be replaced.
 *
 * A conflict is two MAC addresses that answer one request: all owners of an address hear the
 * broadcast that asks for it. One answer after the other is none, because a standby router, a
 * sleep proxy or another adapter may have taken over. */
#include "local/neighbor.h"

#define CONFLICT_NS INT64_C(1000000000) /* both owners answer within this time */

_Static_assert(sizeof(struct neighbor_key) == 40, "words without padding");

static struct neighbor_key key_of(const struct local_packet *packet, unsigned version,
                                  const uint8_t *address, const uint8_t *mac) {
    struct neighbor_key key = {.path = packet->path, .interface = packet->interface};
    memcpy(key.address, address, version == 4 ? 4 : 16);
    memcpy(key.mac, mac, MAC_BYTES);
    key.version = (uint16_t)version;
    return key;
}

void neighbor_claim(struct local_exchanges *local, const struct local_packet *packet,
                    unsigned version, const uint8_t *address, const uint8_t *mac, bool answers) {
    struct neighbor_key key = key_of(packet, version, address, mac);
    if (!is_mac(mac))
        return;
    struct neighbor *neighbor = keyed_list_find(&local->neighbors, &key);
    if (!neighbor) {
        if (keyed_list_replaced(&local->neighbors))
            return;
        neighbor = keyed_list_add(&local->neighbors, &key);
        local->out_of_memory |= !neighbor;
        if (!neighbor)
            return;
        neighbor->first_ns = packet->time_ns;
        neighbor->first_frame = packet->frame;
        neighbor->vlan = packet->vlan;
    }
    neighbor->last_ns = packet->time_ns;
    neighbor->last_frame = packet->frame;
    neighbor->claims++;
    neighbor->answers += answers;
}

static void count_conflict(struct local_exchanges *local, const struct neighbor_key *key,
                           int64_t time_ns, uint64_t frame, uint64_t other_frame) {
    struct neighbor *neighbor = keyed_list_find(&local->neighbors, key);
    if (!neighbor)
        return;
    if (!neighbor->conflicts++) {
        neighbor->conflict_ns = time_ns;
        neighbor->conflict_frame = frame;
        neighbor->other_frame = other_frame;
    }
}

void neighbor_conflict(struct local_exchanges *local, const struct local_packet *packet,
                       const struct local_exchange *exchange, const uint8_t *mac) {
    int64_t before_ns = exchange->answered_ns;
    bool timed = before_ns != TIME_UNKNOWN && packet->time_ns != TIME_UNKNOWN;
    bool both = is_mac(mac) && is_mac(exchange->mac) && memcmp(mac, exchange->mac, MAC_BYTES) != 0;
    if (!both || !timed || packet->time_ns < before_ns || packet->time_ns - before_ns > CONFLICT_NS)
        return;
    struct neighbor_key keys[] = {
        key_of(packet, exchange->key.version, exchange->key.server, exchange->mac),
        key_of(packet, exchange->key.version, exchange->key.server, mac)};
    count_conflict(local, &keys[0], before_ns, exchange->answered_frame, packet->frame);
    count_conflict(local, &keys[1], packet->time_ns, packet->frame, exchange->answered_frame);
}

void neighbor_row_add(const struct local_exchanges *local, const void *entry,
                      struct row_sink *sink) {
    (void)local;
    const struct neighbor *neighbor = entry;
    const struct neighbor_key *key = &neighbor->key;
    struct row row;
    row_clear(&row);
    row_set(&row, neighbors_capture, key->interface);
    row_set(&row, neighbors_address, add_address(sink, key->version, key->address));
    row_set_mac(sink, &row, neighbors_mac, key->mac);
    row_set_if(&row, neighbors_vlan, neighbor->vlan, neighbor->vlan);
    row_set_if(&row, neighbors_first_ns, neighbor->first_ns != TIME_UNKNOWN, neighbor->first_ns);
    row_set_if(&row, neighbors_last_ns, neighbor->last_ns != TIME_UNKNOWN, neighbor->last_ns);
    row_set(&row, neighbors_first_frame, (int64_t)neighbor->first_frame);
    row_set(&row, neighbors_last_frame, (int64_t)neighbor->last_frame);
    row_set(&row, neighbors_claims, (int64_t)neighbor->claims);
    row_set(&row, neighbors_answers, (int64_t)neighbor->answers);
    row_set(&row, neighbors_conflicts, (int64_t)neighbor->conflicts);
    if (neighbor->conflicts) {
        row_set(&row, neighbors_conflict_ns, neighbor->conflict_ns);
        row_set(&row, neighbors_conflict_frame, (int64_t)neighbor->conflict_frame);
        row_set(&row, neighbors_other_frame, (int64_t)neighbor->other_frame);
    }
    add_row(sink, TABLE_neighbors, &row);
}
