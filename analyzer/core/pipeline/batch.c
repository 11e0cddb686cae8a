/* SPDX-License-Identifier: Apache-2.0 */
/* Empties batches and sorts their packets by flow. A batch is never freed before the reader is: its
 * pages are reused, and those that a smaller capacity leaves unused return to the kernel. */
#include "pipeline/batch.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/arena.h"

#define GROUP_BITS 14 /* bits of the hash; flows that share them are processed together */
#define GROUPS     (1u << GROUP_BITS)

_Static_assert(GROUP_BITS >= FLOW_PART_BITS, "a part is some groups");

/* Returns the whole huge pages of a list behind its first `first` bytes to the kernel; they are
 * zero if they are used again. Partial pages stay, because other lists of the batch share them. */
static void give_back(void *list, size_t size, size_t first) {
    uintptr_t from = ((uintptr_t)list + first + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t until = ((uintptr_t)list + size) / HUGE_PAGE * HUGE_PAGE;
    if (from < until)
        madvise((void *)from, until - from, MADV_DONTNEED);
}

void batch_begin(struct batch *batch, size_t most) {
    if (most < batch->most) {
        give_back(batch->decoded, sizeof batch->decoded, most * sizeof *batch->decoded);
        give_back(batch->extras, sizeof batch->extras, most * sizeof *batch->extras);
        give_back(batch->in_order, sizeof batch->in_order, most * sizeof *batch->in_order);
        give_back(batch->by_flow, sizeof batch->by_flow, most * sizeof *batch->by_flow);
    }
    batch->most = most;
    batch->count = batch->mark_count = 0;
    batch->packets = 0;
    batch->out_of_memory = false;
    batch->next_extras = batch->extras;
    batch->next_headers = batch->headers;
    batch->selected_bytes = batch->selected_count = 0;
}

static uint32_t group_of(struct batch_entry turn) {
    return turn.hash >> (32 - GROUP_BITS);
}

/* A counting sort by the upper bits of the hash, in two passes over the packets. It is stable, so
 * packets of one flow stay in file order, which TCP state depends on. A group may mix the packets
 * of several flows; that costs some cache misses, but no correctness. The list of places takes
 * 64 KiB of the stack, so STACK_BYTES of the reader must have room for it. */
void batch_sort_by_flow(struct batch *batch) {
    uint32_t places[GROUPS] = {0}, sum = 0;
    for (size_t i = 0; i < batch->count; i++)
        places[group_of(batch->in_order[i])]++;
    for (size_t group = 0; group < GROUPS; group++) {
        uint32_t size = places[group];
        if (group % (GROUPS / FLOW_PARTS) == 0)
            batch->parts[group / (GROUPS / FLOW_PARTS)] = sum;
        places[group] = sum;
        sum += size;
    }
    batch->parts[FLOW_PARTS] = sum;
    for (size_t i = 0; i < batch->count; i++)
        batch->by_flow[places[group_of(batch->in_order[i])]++] = batch->in_order[i];
}
