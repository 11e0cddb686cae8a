/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#define GROUP_BITS 14 /* of the hash: flows that share them are taken together */
#define GROUPS     (1u << GROUP_BITS)

_Static_assert(GROUP_BITS >= FLOW_PART_BITS, "a part is some groups");

static uint32_t group_of(struct turn turn) {
    return turn.hash >> (32 - GROUP_BITS);
}

/* A counting sort by the hash, the packets of a group in their order. */
void batch_set_turns(struct batch *batch) {
    uint32_t places[GROUPS] = {0}, sum = 0;
    for (size_t i = 0; i < batch->count; i++)
        places[group_of(batch->order[i])]++;
    for (size_t group = 0; group < GROUPS; group++) {
        uint32_t size = places[group];
        if (group % (GROUPS / FLOW_PARTS) == 0)
            batch->parts[group / (GROUPS / FLOW_PARTS)] = sum;
        places[group] = sum;
        sum += size;
    }
    batch->parts[FLOW_PARTS] = sum;
    for (size_t i = 0; i < batch->count; i++)
        batch->turns[places[group_of(batch->order[i])]++] = batch->order[i];
}
