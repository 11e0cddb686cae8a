/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that all shards share. While one of them may be reached, the first worker processes the
 * packets of all shards in the order of the file (updater.serial), so that the packets alone decide
 * what is evicted or dropped, and not the number of workers.
 *
 * Of too many live flows, the one that would be due first ends: a heap has their due times, and one
 * that is behind is corrected when it comes to the top, because packets do not touch the heap. A
 * flow that is over stays in it until then. Of too many datagrams, a complete one ends, because it
 * was counted whole; else the oldest. Datagrams of all shards end in the order of their packets,
 * because fragments that waited for the first one then begin flows. */
#include <stdlib.h>

#include "update/update.h"

uint32_t live_flows(const struct updater *updater) {
    uint32_t count = 0;
    for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
        count += flow_table_count(updater->shards[i].flows);
    return count;
}

uint32_t kept_datagrams(const struct updater *updater) {
    uint32_t count = 0;
    for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
        if (updater->shards[i].datagrams)
            count += reassembly_count(updater->shards[i].datagrams);
    return count;
}

/* --- flows -------------------------------------------------------------------------------------
 */

static bool precedes(const struct eviction_candidate *one, const struct eviction_candidate *other) {
    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->first < other->first;
}

/* Moves an element down until none below it precedes it. */
static void sift_down(struct eviction *eviction, size_t at) {
    struct eviction_candidate moved = eviction->heap[at];
    for (size_t child; (child = 2 * at + 1) < eviction->count; at = child) {
        if (child + 1 < eviction->count &&
            precedes(&eviction->heap[child + 1], &eviction->heap[child]))
            child++;
        if (!precedes(&eviction->heap[child], &moved))
            break;
        eviction->heap[at] = eviction->heap[child];
    }
    eviction->heap[at] = moved;
}

static bool push(struct updater *updater, struct flow *flow) {
    struct eviction *eviction = &updater->eviction;
    struct eviction_candidate added = {flow_due_ns(flow), flow_first(updater, flow), flow,
                                       flow->number};
    size_t at = eviction->count;
    if (!list_grow(&eviction->heap, &eviction->room, at + 1, sizeof *eviction->heap))
        return false;
    for (eviction->count++; at && precedes(&added, &eviction->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        eviction->heap[at] = eviction->heap[(at - 1) / 2];
    eviction->heap[at] = added;
    return true;
}

void eviction_note(struct updater *updater, struct flow *flow) {
    struct eviction *eviction = &updater->eviction;
    if (eviction->current)
        eviction->current =
            eviction->count < 2 * (size_t)updater->max_flows + 1 && push(updater, flow);
}

/* Gathers the live flows. Returns false without memory. */
static bool gather(struct updater *updater) {
    struct eviction *eviction = &updater->eviction;
    uint32_t place = 0;
    bool done = true;
    eviction->count = 0;
    for (struct flow *flow; done && (flow = flow_memory_next(updater->memory, &place));)
        done = push(updater, flow);
    return eviction->current = done;
}

/* Returns the flow that is due first, NULL without one. Its place may have been used again. */
static struct flow *first_due(struct eviction *eviction) {
    while (eviction->count) {
        struct eviction_candidate *top = eviction->heap;
        bool live = top->flow->live && top->flow->number == top->number;
        int64_t due_ns = live ? flow_due_ns(top->flow) : top->due_ns;
        if (live && due_ns <= top->due_ns)
            return top->flow;
        if (live)
            top->due_ns = due_ns;
        else
            *top = eviction->heap[--eviction->count];
        if (eviction->count)
            sift_down(eviction, 0);
    }
    return NULL;
}

void make_room_for_flow(struct worker *worker) {
    struct updater *updater = worker->updater;
    struct shard *shard = worker->shard;
    if (live_flows(updater) < updater->max_flows)
        return;
    struct flow *oldest =
        updater->eviction.current || gather(updater) ? first_due(&updater->eviction) : NULL;
    if (!oldest) {
        worker->sink.out_of_memory = true;
        return;
    }
    worker_enter(worker, updater->owners[shard_of_flow(oldest->hash)]);
    flow_end_now(worker, oldest, WORD_EVICTED);
    updater->evicted_flows++;
    worker_enter(worker, shard);
}

/* --- datagrams ---------------------------------------------------------------------------------
 */

void make_room_for_datagram(void *context) {
    struct worker *worker = context;
    struct updater *updater = worker->updater;
    struct shard *own = worker->shard;
    if (!updater->serial || kept_datagrams(updater) < DATAGRAMS_MOST)
        return;
    size_t count = (size_t)1 << updater->numbers.shard_bits;
    struct shard *shard = oldest_datagram(updater->shards, count, true, NULL);
    bool complete = shard != NULL;
    if (!shard && !(shard = oldest_datagram(updater->shards, count, false, NULL)))
        return;
    worker_enter(worker, shard);
    reassembly_evict(shard->datagrams, complete);
    updater->evicted_datagrams += !complete;
    worker_enter(worker, own);
}
