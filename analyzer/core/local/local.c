/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a packet to the protocol that it is of. */
#include "local/local.h"

#include <stddef.h>
#include <stdlib.h>

#include "local/announcers.h"
#include "local/groups.h"
#include "local/neighbor.h"

void local_init(struct local_exchanges *local, struct row_sink *sink) {
    *local = (struct local_exchanges){.sink = sink};
    keyed_list_init(&local->exchanges, sizeof(struct local_exchange), sizeof(struct exchange_key),
                    LOCAL_OPEN_MOST);
    keyed_list_init(&local->neighbors, sizeof(struct neighbor), sizeof(struct neighbor_key),
                    NEIGHBORS_MOST);
    keyed_list_init(&local->groups, sizeof(struct group), sizeof(struct group_key), GROUPS_MOST);
    keyed_list_init(&local->announcers, sizeof(struct announcer), sizeof(struct announcer_key),
                    ANNOUNCERS_MOST);
}

void local_free(struct local_exchanges *local) {
    keyed_list_free(&local->announcers);
    keyed_list_free(&local->groups);
    keyed_list_free(&local->exchanges);
    keyed_list_free(&local->neighbors);
}

static struct local_packet place_of(const struct packet *packet, const struct headers *headers) {
    struct local_packet place = {.time_ns =
                                     packet_is_timed(packet) ? packet->time_ns : TIME_UNKNOWN,
                                 .frame = packet->frame,
                                 .interface = packet->interface};
    for (unsigned i = 0; i < headers->path_depth; i++) {
        const struct path_step *step = &headers->path[i];
        place.path =
            place.path * UINT64_C(0x100000001b3) + ((uint64_t)step->kind << 32 | step->id) + 1;
        if (step->kind == PATH_VLAN)
            place.vlan = (uint16_t)step->id;
    }
    return place;
}

static void datagram_take(struct local_exchanges *local, const struct local_packet *place,
                          const struct headers *headers) {
    uint16_t source = headers->source_port, destination = headers->destination_port;
    if (is_dhcp_port(source) && is_dhcp_port(destination))
        dhcp_take(local, place, headers);
    else if (is_sip_port(source) || is_sip_port(destination))
        sip_take(local, place, headers);
    else if (is_radius_port(source) || is_radius_port(destination))
        radius_take(local, place, headers);
    else
        service_take(local, place, headers);
}

void local_take(struct local_exchanges *local, const struct packet *packet,
                const struct headers *headers) {
    struct local_packet place = place_of(packet, headers);
    if (headers->arp_offset)
        arp_take(local, &place, packet, headers);
    else if (headers->control_offset && headers->control_is_wlan)
        wlan_take(local, &place, packet, headers);
    else if (headers->control_offset && headers->control_is_login)
        eapol_take(local, &place, packet, headers);
    else if (headers->control_offset && headers->control_is_bridge)
        bridge_take(local, &place, packet, headers);
    else if (headers->control_offset)
        pause_take(local, &place, packet, headers);
    else if (headers->protocol == IP_VRRP)
        vrrp_take(local, &place, headers);
    else if (headers->protocol == IP_IGMP)
        igmp_take(local, &place, headers);
    else if (headers->protocol == IP_TCP)
        service_take(local, &place, headers);
    else if (headers->protocol == IP_SCTP)
        sctp_take(local, &place, headers);
    else if (headers->protocol == IP_UDP)
        datagram_take(local, &place, headers);
    else if (headers->icmp.type == ICMPV6_ROUTER)
        router_take(local, &place, headers);
    else
        nd_take(local, &place, packet, headers);
}

/* An entry of a list, and its interface. */
struct listed {
    uint32_t interface, number;
};

typedef void add_entry(const struct local_exchanges *local, const void *entry,
                       struct row_sink *sink);

static int compare(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    if (a->interface != b->interface)
        return a->interface < b->interface ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* Adds the rows of a list, those of an interface together, in the order of their first packets.
 * `interface_at` is the place of its number in an entry. Returns false without memory. */
static bool add_rows(const struct local_exchanges *local, const struct keyed_list *list,
                     size_t interface_at, add_entry *add, struct row_sink *sink) {
    struct listed *sorted = malloc(((size_t)list->count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint8_t *entry = keyed_list_at(list, i);
        sorted[i].number = i;
        memcpy(&sorted[i].interface, entry + interface_at, sizeof sorted[i].interface);
    }
    qsort(sorted, list->count, sizeof *sorted, compare);
    for (uint32_t i = 0; i < list->count; i++)
        add(local, keyed_list_at(list, sorted[i].number), sink);
    free(sorted);
    return true;
}

void local_finish(struct local_exchanges *local, struct row_sink *first, local_end *end_of,
                  const void *context) {
    for (uint32_t i = 0; i < local->exchanges.count; i++) {
        const struct local_exchange *exchange = keyed_list_at(&local->exchanges, i);
        if (!exchange->settled)
            exchange_give_up(local, exchange, end_of(context, exchange->key.interface));
    }
    bool done = add_rows(local, &local->neighbors, offsetof(struct neighbor_key, interface),
                         neighbor_row_add, first) &&
                add_rows(local, &local->groups, offsetof(struct group_key, interface),
                         group_row_add, first) &&
                add_rows(local, &local->announcers, offsetof(struct announcer_key, interface),
                         announcer_row_add, first);
    first->out_of_memory |= local->out_of_memory || local->sink->out_of_memory || !done;
}
