/* SPDX-License-Identifier: Apache-2.0 */
/* The final numbers of flows. Each shard counts its own flows in the order of processing; after
 * each batch those that began in it are sorted by the packets that began them, and go on from the
 * number of the last batch. So a number is final as soon as its batch is done. When all rows are
 * added, the rows of each flow, which are groups in its shard, become those of its number. No row
 * is copied. */
#include <stdlib.h>

#include "base/arena.h"
#include "update/update.h"

/* A flow by the packet that began it. */
struct flow_place {
    uint64_t at;
    uint32_t shard, number; /* in its shard */
};

static int compare(const void *left, const void *right) {
    const struct flow_place *a = left, *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Lists the flows that began, in order. */
static void sort_flows(const struct updater *updater, struct flow_place *flows) {
    size_t filled = 0;
    bool sorted = true;
    for (uint32_t s = 0; s < 1u << updater->numbers.shard_bits; s++) {
        const struct shard *shard = &updater->shards[s];
        for (size_t i = 0; i < shard->begun_count; i++) {
            uint32_t number = shard->begun[i];
            flows[filled] = (struct flow_place){shard->firsts[number], s, number};
            sorted &= !filled || flows[filled - 1].at <= flows[filled].at;
            filled++;
        }
    }
    if (!sorted)
        qsort(flows, filled, sizeof *flows, compare);
}

bool flow_numbers_add(struct updater *updater) {
    struct flow_numbers *numbers = &updater->numbers;
    unsigned shards = 1u << numbers->shard_bits;
    size_t count = 0;
    for (unsigned i = 0; i < shards; i++)
        count += updater->shards[i].begun_count;
    if (!count)
        return true;
    struct flow_place *flows =
        numbers->count + count < FLOW_NONE ? malloc(count * sizeof *flows) : NULL;
    if (!flows)
        return false;
    bool done = true;
    for (unsigned i = 0; done && i < shards; i++)
        done = list_grow(&numbers->final[i], &updater->shards[i].final_room,
                         updater->shards[i].flow_count, sizeof **numbers->final);
    if (done)
        sort_flows(updater, flows);
    for (size_t i = 0; done && i < count; i++)
        numbers->final[flows[i].shard][flows[i].number] = numbers->count++;
    for (unsigned i = 0; i < shards; i++)
        updater->shards[i].begun_count = 0;
    free(flows);
    return done;
}

bool flow_numbers_order(struct row_sink *sink, struct updater *updater) {
    struct table_groups *groups[SHARDS];
    bool done = true;
    for (unsigned t = 0; done && t < TABLE_COUNT; t++) {
        for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
            groups[i] = &updater->shards[i].groups[t];
        done = row_sink_order_groups(sink, (enum table_number)t, groups);
        for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++) {
            free(groups[i]->list);
            *groups[i] = (struct table_groups){0};
        }
    }
    row_sink_settle(sink);
    return done;
}

bool flow_numbers_open(struct flow_numbers *numbers) {
    numbers->count = 0;
    numbers->final = calloc(1u << numbers->shard_bits, sizeof *numbers->final);
    return numbers->final;
}

void flow_numbers_free(struct flow_numbers *numbers) {
    for (unsigned i = 0; numbers->final && i < 1u << numbers->shard_bits; i++)
        free(numbers->final[i]);
    free(numbers->final);
    numbers->final = NULL;
}
