/* SPDX-License-Identifier: Apache-2.0 */
/* The final numbers of flows. Each shard counts its own flows in the order of processing; at the
 * end all are sorted by the packets that began them, and the rows of each flow, which are groups in
 * its shard, become those of its number. No row is copied. */
#include <stdlib.h>

#include "update/update.h"

static int compare(const void *left, const void *right) {
    const struct flow_place *a = left, *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Returns the flows in order and sets their count, which is at most that; NULL without memory. */
static struct flow_place *sort_flows(const struct updater *updater, size_t *count) {
    struct flow_place *flows = malloc((*count + 1) * sizeof *flows);
    size_t filled = 0;
    bool sorted = true;
    if (!flows)
        return NULL;
    for (uint32_t s = 0; s < 1u << updater->numbers.shard_bits; s++)
        for (uint32_t i = 0; i < updater->shards[s].flow_count; i++) {
            if (updater->shards[s].firsts[i] == FLOW_IS_OPEN)
                continue;
            flows[filled] = (struct flow_place){updater->shards[s].firsts[i], s, i};
            sorted &= !filled || flows[filled - 1].at <= flows[filled].at;
            filled++;
        }
    if (!sorted)
        qsort(flows, filled, sizeof *flows, compare);
    *count = filled;
    return flows;
}

/* Returns false without memory. */
static bool number(struct updater *updater, const struct flow_place *flows, size_t count) {
    unsigned shards = 1u << updater->numbers.shard_bits;
    uint32_t **final = calloc(shards, sizeof *final);
    updater->numbers.final = final;
    if (!final)
        return false;
    for (unsigned i = 0; i < shards; i++) {
        final[i] = malloc(((size_t)updater->shards[i].flow_count + 1) * sizeof **final);
        if (!final[i])
            return false;
    }
    for (size_t i = 0; i < count; i++)
        final[flows[i].shard][flows[i].number] = (uint32_t)i;
    return true;
}

/* The lists of the shards are freed one by one. Returns false without memory. */
static bool order_groups(struct row_sink *sink, struct updater *updater,
                         const struct flow_place *flows, size_t count) {
    struct table_groups *groups[SHARDS];
    bool done = true;
    for (unsigned t = 0; done && t < TABLE_COUNT; t++) {
        for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
            groups[i] = &updater->shards[i].groups[t];
        done = row_sink_order_groups(sink, (enum table_number)t, groups, flows, count);
        for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++) {
            free(groups[i]->list);
            *groups[i] = (struct table_groups){0};
        }
    }
    return done;
}

bool flow_numbers_set(struct row_sink *sink, struct updater *updater) {
    size_t count = 0;
    for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
        count += updater->shards[i].flow_count;
    struct flow_place *flows = count < UINT32_MAX ? sort_flows(updater, &count) : NULL;
    bool done = flows && number(updater, flows, count) && order_groups(sink, updater, flows, count);
    free(flows);
    row_sink_settle(sink);
    return done;
}

void flow_numbers_free(struct flow_numbers *numbers) {
    for (unsigned i = 0; numbers->final && i < 1u << numbers->shard_bits; i++)
        free(numbers->final[i]);
    free(numbers->final);
    numbers->final = NULL;
}
