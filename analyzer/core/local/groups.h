/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast groups of IPv4: the reports of their members, and the queries of a router (IGMP). */
#ifndef WIRETALE_LOCAL_GROUPS_H
#define WIRETALE_LOCAL_GROUPS_H

#include "exchange/exchange.h"

/* All bytes are set: they are compared. Address 0 has the general queries. */
struct group_key {
    uint64_t path;
    uint32_t interface;
    uint8_t address[4];
};

struct group {
    struct group_key key;
    int64_t first_ns, last_ns, query_ns; /* TIME_UNKNOWN without a time */
    uint64_t first_frame, last_frame;    /* reports; 0 without one */
    uint64_t query_frame, reports, queries;
    uint16_t vlan;
};

void igmp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers);
/* Adds the row of a group, if it has a report. */
void group_row_add(const struct local_exchanges *local, const void *entry, struct row_sink *sink);

#endif
