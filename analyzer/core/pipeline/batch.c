/* SPDX-License-Identifier: Apache-2.0 */
/* Empties batches and sorts their packets by flow. A batch is never freed before the reader is: its
 * pages are reused, and those that a smaller capacity leaves unused return to the kernel. */
#include "pipeline/batch.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/arena.h"

#define GROUP_BITS 14 /* bits of the hash; flows that share them are processed together */
#define GROUPS     (1u << GROUP_BITS)

_Static_assert(GROUP_BITS >= SHARD_BITS, "a shard is some groups");

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
        give_back(batch->in_order, sizeof batch->in_order,
                  (most + BATCH_HEADERS) * sizeof *batch->in_order);
        give_back(batch->by_flow, sizeof batch->by_flow,
                  (most + BATCH_HEADERS) * sizeof *batch->by_flow);
    }
    batch->most = most;
    batch->count = batch->entries = batch->mark_count = 0;
    batch->packets = 0;
    batch->out_of_memory = false;
    batch->next_extras = batch->extras;
    batch->next_headers = batch->headers;
    batch->selected_bytes = batch->selected_count = 0;
}

/* A counting sort by the upper bits of the hash, in two passes over the packets. It is stable, so
 * packets of one flow stay in file order, which TCP state depends on. A group may mix the packets
 * of several flows; that costs some cache misses, but no correctness. The list of places takes
 * 64 KiB of the stack, so STACK_BYTES of the reader must have room for it. */
void batch_sort(struct batch *batch, bool by_flow) {
    uint32_t places[GROUPS] = {0}, sum = 0;
    uint32_t mask = (by_flow ? GROUPS - 1 : (SHARDS - 1) * (GROUPS / SHARDS)) << (32 - GROUP_BITS);
    for (size_t i = 0; i < batch->entries; i++)
        places[(batch->in_order[i].hash & mask) >> (32 - GROUP_BITS)]++;
    for (size_t group = 0; group < GROUPS; group++) {
        uint32_t size = places[group];
        if (group % (GROUPS / SHARDS) == 0)
            batch->parts[group / (GROUPS / SHARDS)] = sum;
        places[group] = sum;
        sum += size;
    }
    batch->parts[SHARDS] = sum;
    for (size_t i = 0; i < batch->entries; i++) {
        uint32_t group = (batch->in_order[i].hash & mask) >> (32 - GROUP_BITS);
        batch->by_flow[places[group]++] = batch->in_order[i];
    }
}
