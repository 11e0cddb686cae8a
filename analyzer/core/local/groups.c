/* SPDX-License-Identifier: Apache-2.0 */
/* IGMP (RFC 2236, 3376): who wants a group, and whether a router asks for members.
 *
 *   OFFSET SIZE                                   record of a version 3 report, from 8 on
 *   0      1    11 query, 12 and 16 report,       0   1   type
 *               22 report of version 3            1   1   length of auxiliary data, 4 bytes each
 *   4      4    group; 0 in a general query       2   2   number of sources, 4 bytes each
 *   6      2    22: number of records             4   4   group
 *
 * Records that want no source leave the group and do not count. Once GROUPS_MOST are listed,
 * further groups are left out. */
#include "local/groups.h"

#include "base/bytes.h"

#define MESSAGE_BYTES 8u
#define RECORD_BYTES  8u
#define RECORDS_MOST  64u /* of a message */

enum igmp_type {
    IGMP_QUERY = 0x11,
    IGMP_REPORT_1 = 0x12,
    IGMP_REPORT_2 = 0x16,
    IGMP_REPORT_3 = 0x22
};
enum record_type { IS_EXCLUDE = 2, TO_EXCLUDE = 4 };

_Static_assert(sizeof(struct group_key) == 16, "words without padding");

/* Returns the group, which begins with this packet if it is new; NULL if there are too many, or
 * without memory. */
static struct group *group_of(struct local_exchanges *local, const struct local_packet *place,
                              const uint8_t *address) {
    struct group_key key = {.path = place->path, .interface = place->interface};
    memcpy(key.address, address, sizeof key.address);
    struct group *group = keyed_list_find(&local->groups, &key);
    if (group || keyed_list_replaced(&local->groups))
        return group;
    group = keyed_list_add(&local->groups, &key);
    local->out_of_memory |= !group;
    if (group) {
        group->vlan = place->vlan;
        group->first_ns = group->last_ns = group->query_ns = TIME_UNKNOWN;
    }
    return group;
}

static void take_report(struct local_exchanges *local, const struct local_packet *place,
                        const uint8_t *address) {
    struct group *group = (address[0] & 0xF0) == 0xE0 ? group_of(local, place, address) : NULL;
    if (!group)
        return;
    if (!group->reports++) {
        group->first_ns = place->time_ns;
        group->first_frame = place->frame;
    }
    group->last_ns = place->time_ns;
    group->last_frame = place->frame;
}

static void take_query(struct local_exchanges *local, const struct local_packet *place,
                       const uint8_t *address) {
    struct group *group = group_of(local, place, address);
    if (!group)
        return;
    group->queries++;
    group->query_ns = place->time_ns;
    group->query_frame = place->frame;
}

static void take_records(struct local_exchanges *local, const struct local_packet *place,
                         const uint8_t *bytes, uint32_t length) {
    uint32_t count = load_be16(bytes + 6), at = MESSAGE_BYTES;
    for (uint32_t i = 0; i < count && i < RECORDS_MOST && at + RECORD_BYTES <= length; i++) {
        uint32_t sources = load_be16(bytes + at + 2);
        uint8_t type = bytes[at];
        if (type == IS_EXCLUDE || type == TO_EXCLUDE || sources)
            take_report(local, place, bytes + at + 4);
        at += RECORD_BYTES + 4 * sources + 4 * bytes[at + 1];
    }
}

void igmp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers) {
    const uint8_t *bytes = headers->payload;
    if (headers->payload_captured < MESSAGE_BYTES)
        return;
    switch (bytes[0]) {
    case IGMP_QUERY: take_query(local, place, bytes + 4); break;
    case IGMP_REPORT_1:
    case IGMP_REPORT_2: take_report(local, place, bytes + 4); break;
    case IGMP_REPORT_3: take_records(local, place, bytes, headers->payload_captured); break;
    default: break;
    }
}

/* Returns the latest query for a group: its own, or a general one; NULL without one. */
static const struct group *latest_query(const struct keyed_list *groups,
                                        const struct group *group) {
    struct group_key key = {.path = group->key.path, .interface = group->key.interface};
    const struct group *general = keyed_list_find(groups, &key);
    if (!general || general->query_frame < group->query_frame)
        general = group;
    return general->query_frame ? general : NULL;
}

void group_row_add(const struct local_exchanges *local, const void *entry, struct row_sink *sink) {
    const struct group *group = entry, *query = latest_query(&local->groups, group);
    struct row row;
    if (!group->reports)
        return;
    row_clear(&row);
    row_set(&row, groups_capture, group->key.interface);
    row_set(&row, groups_address, add_address(sink, 4, group->key.address));
    row_set_if(&row, groups_vlan, group->vlan, group->vlan);
    row_set(&row, groups_reports, (int64_t)group->reports);
    row_set_if(&row, groups_first_ns, group->first_ns != TIME_UNKNOWN, group->first_ns);
    row_set_if(&row, groups_last_ns, group->last_ns != TIME_UNKNOWN, group->last_ns);
    row_set(&row, groups_first_frame, (int64_t)group->first_frame);
    row_set(&row, groups_last_frame, (int64_t)group->last_frame);
    if (query) {
        row_set_if(&row, groups_query_ns, query->query_ns != TIME_UNKNOWN, query->query_ns);
        row_set(&row, groups_query_frame, (int64_t)query->query_frame);
    }
    add_row(sink, TABLE_groups, &row);
}
