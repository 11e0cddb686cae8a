/* SPDX-License-Identifier: Apache-2.0 */
/* Adds rows, and restores the order of packets at the end of a batch (row_sink.h).
 *
 * A buffered row keeps the batch index of the packet that it belongs to. At the end of the batch
 * the rows are sorted by it, and rows of one packet stay in the order in which they came. Flows
 * that the batch began are numbered anew by their first packets; the rows of these flows, whose
 * tables are grouped by flow, are permuted instead of sorted. */
#include "rows/row_sink.h"

#include <stdlib.h>

_Static_assert(events_column_count <= PENDING_COLUMNS, "a row of events fits");
_Static_assert(blocks_column_count <= PENDING_COLUMNS, "a row of blocks fits");
_Static_assert(queries_column_count <= PENDING_COLUMNS, "a row of queries fits");
_Static_assert(events_flow == 0 && blocks_flow == 0 && queries_flow == 0,
               "the flow is their first column");

static bool is_grouped(enum table_number number) {
    return number == TABLE_flows || number == TABLE_directions || number == TABLE_series ||
           number == TABLE_turns || number == TABLE_handshakes || number == TABLE_requests;
}

void row_sink_open(struct row_sink *sink, bool packets_only) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&sink->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    sink->packets_only = packets_only;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_init(&sink->tables[i], (enum table_number)i, &sink->texts,
                   is_grouped((enum table_number)i));
}

void row_sink_free_buffers(struct row_sink *sink) {
    free(sink->new_flows);
    free(sink->events.rows);
    free(sink->blocks.rows);
    free(sink->queries.rows);
    sink->new_flows = NULL;
    sink->events = sink->blocks = sink->queries = (struct pending_rows){0};
    sink->new_flow_count = sink->new_flow_room = 0;
}

void row_sink_free(struct row_sink *sink) {
    row_sink_free_buffers(sink);
    free(sink->quic_names.list);
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_free(&sink->tables[i]);
    string_table_free(&sink->texts);
    pthread_mutex_destroy(&sink->lock);
}

static struct pending_rows *pending_of(struct row_sink *sink, enum table_number number) {
    return number == TABLE_events   ? &sink->events
           : number == TABLE_blocks ? &sink->blocks
                                    : &sink->queries;
}

void row_sink_begin_batch(struct row_sink *sink, uint32_t first_flow) {
    sink->buffered = true;
    sink->first_flow = first_flow;
    sink->new_flow_count = 0;
    sink->events.count = sink->blocks.count = sink->queries.count = 0;
}

void row_writer_begin_flow(struct row_writer *writer, const struct flow *flow, uint32_t next_flow) {
    struct row_sink *sink = writer->sink;
    /* Bounds the buffers when a million flows end at once. Each emission is sorted by itself. */
    if (sink->events.count >= MAX_PENDING || sink->blocks.count >= MAX_PENDING ||
        sink->queries.count >= MAX_PENDING) {
        row_sink_end_batch(sink);
        row_sink_begin_batch(sink, next_flow);
    }
    writer->batch_index = flow->number;
}

void row_sink_note_new_flow(const struct row_writer *writer, struct flow *flow) {
    struct row_sink *sink = writer->sink;
    if (!sink->buffered)
        return;
    if (list_grow(&sink->new_flows, &sink->new_flow_room, sink->new_flow_count + 1,
                  sizeof *sink->new_flows))
        sink->new_flows[sink->new_flow_count++] = (struct new_flow){writer->batch_index, flow};
    else
        sink->out_of_memory = true;
}

/* A flow that began and ended in the same batch must not be renumbered through its pointer, because
 * its memory may already hold another flow. Its rows are renumbered without it. */
void row_sink_note_end(struct row_sink *sink, const struct flow *flow) {
    uint32_t place = flow->number - sink->first_flow;
    if (sink->buffered && flow->number >= sink->first_flow && place < sink->new_flow_count)
        sink->new_flows[place].flow = NULL;
}

uint64_t row_sink_rows(const struct row_sink *sink, enum table_number number) {
    const struct pending_rows *pending = number == TABLE_events   ? &sink->events
                                         : number == TABLE_blocks ? &sink->blocks
                                                                  : &sink->queries;
    return sink->tables[number].row_count + (sink->buffered ? pending->count : 0);
}

/* Keeps a row of events, blocks or queries. Values are copied without the room of wider tables: a
 * pending row takes 136 bytes instead of a whole struct row. Returns false without memory. */
static bool append(struct pending_rows *pending, uint32_t batch_index, const struct row *row) {
    if (!list_grow(&pending->rows, &pending->room, pending->count + 1, sizeof *pending->rows))
        return false;
    struct pending_row *place = &pending->rows[pending->count++];
    place->batch_index = batch_index;
    place->known = (uint32_t)row->known[0];
    for (unsigned i = 0; i < PENDING_COLUMNS; i++)
        place->value[i] = row_known(row, i) ? row->value[i] : 0;
    return true;
}

/* While rows are buffered, the number is the place in the order of arrival; table_add_moved() keeps
 * it valid for amendments when the row gets another place. */
uint64_t row_sink_add(const struct row_writer *writer, enum table_number number,
                      const struct row *row) {
    struct row_sink *sink = writer->sink;
    uint64_t place = row_sink_rows(sink, number);
    if (!sink->buffered)
        add_row(sink, number, row);
    else if (!append(pending_of(sink, number), writer->batch_index, row))
        sink->out_of_memory = true;
    return place;
}

/* --- the end of a batch --------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the places of elements, whose first member is the batch index, in its order: the lower
 * half of each word is a place. NULL without memory. */
static uint64_t *sort_places(const void *list, size_t count, size_t size) {
    uint64_t *keys = malloc(count * sizeof *keys);
    if (!keys)
        return NULL;
    for (size_t i = 0; i < count; i++)
        keys[i] = (uint64_t) * (const uint32_t *)((const char *)list + i * size) << 32 | i;
    qsort(keys, count, sizeof *keys, ascending);
    return keys;
}

/* Numbers the flows that the batch began by their first packets; writes the rank of each, by the
 * number that it had, to `ranks`. Returns false without memory. */
static bool number_flows(struct row_sink *sink, uint32_t *ranks) {
    uint64_t *keys = sort_places(sink->new_flows, sink->new_flow_count, sizeof *sink->new_flows);
    bool done = keys;
    for (size_t rank = 0; keys && rank < sink->new_flow_count; rank++) {
        uint32_t place = (uint32_t)keys[rank];
        ranks[place] = (uint32_t)rank;
        if (sink->new_flows[place].flow)
            sink->new_flows[place].flow->number = sink->first_flow + (uint32_t)rank;
    }
    free(keys);
    for (unsigned i = 0; done && i < TABLE_COUNT; i++)
        if (is_grouped((enum table_number)i))
            done = table_permute_groups(&sink->tables[i], sink->first_flow, ranks,
                                        sink->new_flow_count);
    return done;
}

/* Restores a row, with the final number of its flow if the batch began that. */
static void unpack(const struct row_sink *sink, const struct pending_row *pending,
                   const uint32_t *ranks, struct row *row) {
    row_clear(row);
    row->known[0] = pending->known;
    for (unsigned i = 0; i < PENDING_COLUMNS; i++)
        row->value[i] = pending->value[i];
    if (row_known(row, events_flow) && row->value[events_flow] >= sink->first_flow)
        row->value[events_flow] =
            sink->first_flow + ranks[row->value[events_flow] - sink->first_flow];
}

/* Adds the buffered rows to their table in the order of packets. Returns false without memory. */
static bool emit(struct row_sink *sink, enum table_number number, const uint32_t *ranks) {
    struct pending_rows *pending = pending_of(sink, number);
    struct table *table = &sink->tables[number];
    uint64_t *keys = sort_places(pending->rows, pending->count, sizeof *pending->rows);
    bool done = keys && table_begin_moved(table, pending->count);
    for (size_t i = 0; done && i < pending->count; i++) {
        uint32_t place = (uint32_t)keys[i];
        struct row row;
        unpack(sink, &pending->rows[place], ranks, &row);
        done = table_add_moved(table, place, &row);
    }
    free(keys);
    return done;
}

void row_sink_end_batch(struct row_sink *sink) {
    sink->buffered = false;
    if (sink->out_of_memory) /* a new flow may be missing, and there will be no tables */
        return;
    if (!sink->new_flow_count && !sink->events.count && !sink->blocks.count && !sink->queries.count)
        return;
    uint32_t *ranks = malloc((sink->new_flow_count + 1) * sizeof *ranks);
    bool done = ranks && (!sink->new_flow_count || number_flows(sink, ranks));
    if (done && sink->events.count)
        done = emit(sink, TABLE_events, ranks);
    if (done && sink->blocks.count)
        done = emit(sink, TABLE_blocks, ranks);
    if (done && sink->queries.count)
        done = emit(sink, TABLE_queries, ranks);
    free(ranks);
    sink->out_of_memory |= !done;
}
