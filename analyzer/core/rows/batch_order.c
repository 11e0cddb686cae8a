/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/batch_order.h"

#include <stdlib.h>

#include "pipeline/analysis_state.h"

_Static_assert(events_column_count <= HELD_COLUMNS, "a row of events fits");
_Static_assert(blocks_column_count <= HELD_COLUMNS, "a row of blocks fits");
_Static_assert(events_flow == 0 && blocks_flow == 0, "the flow is the first column of both");

static const enum table_number grouped_tables[] = {TABLE_flows, TABLE_directions, TABLE_series};

static struct held_rows *held_of(struct analysis *analysis, enum table_number number) {
    return number == TABLE_events ? &analysis->order.events : &analysis->order.blocks;
}

/* Room for one element more; the list doubles. */
static bool has_room(void **list, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 256;
    void *grown = realloc(*list, wanted * size);
    if (!grown)
        return false;
    *list = grown;
    *room = wanted;
    return true;
}

void batch_order_begin(struct analysis *analysis) {
    struct batch_order *order = &analysis->order;
    order->active = true;
    order->first_flow = analysis->flow_count;
    order->birth_count = order->events.count = order->blocks.count = 0;
}

void batch_order_take_flow(struct worker *worker, const struct flow *flow) {
    struct analysis *analysis = worker->analysis;
    const struct batch_order *order = &analysis->order;
    if (order->events.count >= HELD_MOST || order->blocks.count >= HELD_MOST) {
        batch_order_end(analysis);
        batch_order_begin(analysis);
    }
    worker->turn = flow->number;
}

void batch_order_note_birth(const struct worker *worker, struct flow *flow) {
    struct analysis *analysis = worker->analysis;
    struct batch_order *order = &analysis->order;
    if (!order->active)
        return;
    if (!has_room((void **)&order->births, &order->birth_room, order->birth_count,
                  sizeof *order->births)) {
        analysis->out_of_memory = true;
        return;
    }
    order->births[order->birth_count++] = (struct birth){worker->turn, flow};
}

void batch_order_note_end(struct analysis *analysis, const struct flow *flow) {
    struct batch_order *order = &analysis->order;
    uint32_t birth = flow->number - order->first_flow;
    if (order->active && flow->number >= order->first_flow && birth < order->birth_count)
        order->births[birth].flow = NULL;
}

uint64_t batch_order_rows(const struct analysis *analysis, enum table_number number) {
    const struct batch_order *order = &analysis->order;
    uint64_t rows = analysis->tables[number].row_count;
    if (!order->active)
        return rows;
    return rows + (number == TABLE_events ? order->events.count : order->blocks.count);
}

static bool hold(struct held_rows *held, uint32_t turn, const struct row *row) {
    if (!has_room((void **)&held->rows, &held->room, held->count, sizeof *held->rows))
        return false;
    struct held_row *place = &held->rows[held->count++];
    place->turn = turn;
    place->known = (uint32_t)row->known[0];
    for (unsigned i = 0; i < HELD_COLUMNS; i++)
        place->value[i] = row_known(row, i) ? row->value[i] : 0;
    return true;
}

uint64_t batch_order_add(const struct worker *worker, enum table_number number,
                         const struct row *row) {
    struct analysis *analysis = worker->analysis;
    uint64_t place = batch_order_rows(analysis, number);
    if (!analysis->order.active)
        add_row(analysis, number, row);
    else if (!hold(held_of(analysis, number), worker->turn, row))
        analysis->out_of_memory = true;
    return place;
}

/* --- the end of a batch --------------------------------------------------------------------- */

/* Sorted by turn, and those of one turn as they came: the first member of each is its turn. */
static uint64_t key_of(uint32_t turn, size_t place) {
    return (uint64_t)turn << 32 | place;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The places in the order of their turns; NULL without memory. */
static uint64_t *sorted(const void *list, size_t count, size_t size) {
    uint64_t *keys = malloc(count * sizeof *keys);
    if (!keys)
        return NULL;
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(*(const uint32_t *)((const char *)list + i * size), i);
    qsort(keys, count, sizeof *keys, ascending);
    return keys;
}

/* Numbers the flows that the batch began by their first packets: `ranks` of each by the number it
 * had. False without memory. */
static bool number_flows(struct analysis *analysis, uint32_t *ranks) {
    struct batch_order *order = &analysis->order;
    uint64_t *keys = sorted(order->births, order->birth_count, sizeof *order->births);
    bool done = keys;
    for (size_t rank = 0; keys && rank < order->birth_count; rank++) {
        uint32_t place = (uint32_t)keys[rank];
        ranks[place] = (uint32_t)rank;
        if (order->births[place].flow)
            order->births[place].flow->number = order->first_flow + (uint32_t)rank;
    }
    free(keys);
    for (size_t i = 0; done && i < sizeof grouped_tables / sizeof *grouped_tables; i++)
        done = table_permute_groups(&analysis->tables[grouped_tables[i]], order->first_flow, ranks,
                                    order->birth_count);
    return done;
}

static void unhold(const struct batch_order *order, const struct held_row *held,
                   const uint32_t *ranks, struct row *row) {
    row_clear(row);
    row->known[0] = held->known;
    for (unsigned i = 0; i < HELD_COLUMNS; i++)
        row->value[i] = held->value[i];
    if (row_known(row, events_flow) && row->value[events_flow] >= order->first_flow)
        row->value[events_flow] =
            order->first_flow + ranks[row->value[events_flow] - order->first_flow];
}

/* Adds the rows that were held; false without memory. */
static bool add_held(struct analysis *analysis, enum table_number number, const uint32_t *ranks) {
    struct held_rows *held = held_of(analysis, number);
    struct table *table = &analysis->tables[number];
    uint64_t *keys = sorted(held->rows, held->count, sizeof *held->rows);
    bool done = keys && table_begin_moved(table, held->count);
    for (size_t i = 0; done && i < held->count; i++) {
        uint32_t place = (uint32_t)keys[i];
        struct row row;
        unhold(&analysis->order, &held->rows[place], ranks, &row);
        done = table_add_moved(table, place, &row);
    }
    free(keys);
    return done;
}

void batch_order_end(struct analysis *analysis) {
    struct batch_order *order = &analysis->order;
    order->active = false;
    if (analysis->out_of_memory) /* a birth may be missing, and there will be no tables */
        return;
    if (!order->birth_count && !order->events.count && !order->blocks.count)
        return;
    uint32_t *ranks = malloc((order->birth_count + 1) * sizeof *ranks);
    bool done = ranks && (!order->birth_count || number_flows(analysis, ranks));
    if (done && order->events.count)
        done = add_held(analysis, TABLE_events, ranks);
    if (done && order->blocks.count)
        done = add_held(analysis, TABLE_blocks, ranks);
    free(ranks);
    analysis->out_of_memory |= !done;
}

void batch_order_free(struct batch_order *order) {
    free(order->births);
    free(order->events.rows);
    free(order->blocks.rows);
    *order = (struct batch_order){0};
}
