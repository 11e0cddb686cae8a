/* SPDX-License-Identifier: Apache-2.0 */
/* A light count of TCP segments that were sent again: those whose data does not reach beyond what
 * their direction has shown. Segments that came out of order count, too; keep-alives, and copies
 * that a mirror port makes of IPv4, do not. It serves a rule, not an analysis. */
#ifndef WIRETALE_CAPTURE_REPEATS_H
#define WIRETALE_CAPTURE_REPEATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define REPEATS_FLOWS 4096u /* directions; a new one of the same place takes it */

struct repeats_flow {
    uint32_t key;  /* of addresses and ports; 0: free */
    uint32_t next; /* sequence number behind its data */
    uint32_t seq;  /* of its last segment, */
    uint16_t id;   /* and its IP ID */
};

/* Of one reading thread; any thread may read the counts. */
struct repeats {
    _Atomic uint64_t segments, repeated; /* with data */
    uint64_t seed[2];                    /* no sender knows which directions share a place */
    struct repeats_flow flows[REPEATS_FLOWS];
};

void repeats_open(struct repeats *repeats);

/* Takes a packet of a file's link type; others than Ethernet, Linux cooked and raw IP do not count.
 */
void repeats_take(struct repeats *repeats, int link_type, const uint8_t *packet, size_t captured);

#endif
