/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanges and hosts of all interfaces, and their bounds. */
#ifndef WIRETALE_LOCAL_STATE_H
#define WIRETALE_LOCAL_STATE_H

#include "local/keyed_list.h"
#include "rows/row_sink.h"

#define MAX_LOCAL_ROWS  1000000u   /* rows of exchanges */
#define LOCAL_OPEN_MOST (1u << 16) /* exchanges that are kept at once, the latest of their ends */
#define GROUPS_MOST     (1u << 14) /* multicast groups */
#define NEIGHBORS_MOST  (1u << 16) /* addresses with their MAC addresses */

struct local_exchanges {
    struct row_sink *sink;
    struct keyed_list exchanges; /* struct local_exchange */
    struct keyed_list neighbors; /* struct neighbor */
    struct keyed_list groups;    /* struct group */
    uint64_t rows;               /* of exchanges */
    uint64_t replaced;           /* exchanges that were given up for newer ones */
    bool out_of_memory;
};

#endif
