/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis to which files are added as they come. Between two files the rows of the flows that
 * ended are taken, and their memory with them; what is left is the state of open flows.
 *
 * The rows that are taken have numbers of their own, in the order of their flows, and the final
 * numbers of open flows close up behind them. A flow keeps its number in its shard, which another
 * one may have when its rows are taken, so that lists do not grow with the time. Rows that an open
 * flow has already (blocks, exchanges, datagrams) are copied; its events are no rows yet. */
#include <stdlib.h>

#include "base/bytes.h"
#include "pipeline/analysis.h"
#include "pipeline/state.h"

/* Tables with rows of flows that are open. */
static const enum table_number ordered[] = {TABLE_blocks, TABLE_exchanges, TABLE_datagrams};
#define ORDERED (sizeof ordered / sizeof *ordered)

static unsigned shard_count(const struct analysis *analysis) {
    return 1u << analysis->updater.numbers.shard_bits;
}

/* Returns the place of the final number of a flow, by its provisional one. */
static uint32_t *final_number(const struct flow_numbers *numbers, uint32_t provisional) {
    unsigned bits = numbers->shard_bits;
    return &numbers->final[provisional & ((1u << bits) - 1)][provisional >> bits];
}

/* Lists the provisional numbers of all flows in the order of their final ones. NULL without memory.
 */
static uint32_t *list_flows(const struct analysis *analysis) {
    const struct flow_numbers *numbers = &analysis->updater.numbers;
    uint32_t *list = calloc((size_t)numbers->count + 1, sizeof *list);
    for (uint32_t s = 0; list && s < shard_count(analysis); s++)
        for (uint32_t i = 0; i < analysis->updater.shards[s].flow_count; i++)
            if (numbers->final[s][i] != FLOW_NONE)
                list[numbers->final[s][i]] = i << numbers->shard_bits | s;
    return list;
}

/* Begins numbers in which no flow has one. Returns false without memory. */
static bool begin_numbers(struct analysis *analysis) {
    struct flow_numbers *numbers = &analysis->updater.numbers;
    bool done = flow_numbers_open(numbers);
    for (unsigned i = 0; done && i < shard_count(analysis); i++) {
        struct shard *shard = &analysis->updater.shards[i];
        shard->final_room = 0;
        done = list_grow(&numbers->final[i], &shard->final_room, (size_t)shard->flow_count + 1,
                         sizeof **numbers->final);
        if (done)
            memset(numbers->final[i], UINT8_MAX, shard->flow_count * sizeof **numbers->final);
    }
    return done;
}

/* Gives the numbers to the flows that ended and to those that are open, each in their order. The
 * latter are known by a number. Returns false without memory. */
static bool divide_numbers(struct analysis *analysis, struct flow_numbers *ended,
                           const uint32_t *flows, size_t count) {
    struct flow_numbers *open = &analysis->updater.numbers;
    for (size_t i = 0; i < count; i++) {
        struct shard *shard = &analysis->updater.shards[flows[i] & (shard_count(analysis) - 1)];
        if (*final_number(open, flows[i]) != FLOW_NONE) {
            *final_number(open, flows[i]) = open->count++;
            continue;
        }
        *final_number(ended, flows[i]) = ended->count++;
        if (!list_grow(&shard->spare, &shard->spare_room, shard->spare_count + 1,
                       sizeof *shard->spare))
            return false;
        shard->spare[shard->spare_count++] = flows[i] >> open->shard_bits;
    }
    return true;
}

/* Moves the numbers of the flows that ended to `ended`. Others have FLOW_NONE from now on, or a
 * number of an open flow. Returns false without memory. */
static bool take_numbers(struct analysis *analysis, struct flow_numbers *ended) {
    struct updater *updater = &analysis->updater;
    uint32_t place = 0, count = updater->numbers.count, *flows = list_flows(analysis);
    *ended = updater->numbers;
    ended->count = 0;
    bool done = begin_numbers(analysis) && flows;
    for (struct flow *flow; done && (flow = flow_memory_next(updater->memory, &place));)
        *final_number(&updater->numbers, flow->number) = 0;
    done = done && divide_numbers(analysis, ended, flows, count);
    for (unsigned i = 0; done && i < shard_count(analysis); i++)
        if (updater->shards[i].datagrams)
            reassembly_forget_flows(updater->shards[i].datagrams, updater->numbers.final[i],
                                    updater->numbers.shard_bits);
    updater->eviction.current = false; /* it has numbers that others may have now */
    free(flows);
    return done;
}

/* --- rows of open flows ------------------------------------------------------------------------
 */

/* Copies the texts of a row from one sink to another. */
static void copy_texts(struct row_sink *sink, const struct table *table, struct row *row) {
    for (unsigned c = 0; c < table->schema->column_count; c++) {
        size_t size;
        if (!row_known(row, c) || table->schema->columns[c].type < TYPE_TEXT)
            continue;
        const char *text = string_table_get(table->texts, row->value[c], &size);
        row_set_stored(sink, row, c, string_table_add_bytes(&sink->texts, text, size));
    }
}

/* Moves the rows of open flows from a complete table to the rows of the first worker. */
static void move_rows(struct analysis *analysis, struct table *table, enum table_number number) {
    struct row_sink *sink = rows_of(analysis);
    struct table_cursor cursor = {0};
    struct row row;
    uint64_t left = 0;
    table->flows = NULL; /* the numbers before are read */
    for (uint64_t i = 0; table_next(table, &cursor, &row); i++) {
        struct row_order order = table->order[i];
        uint32_t *now = final_number(&analysis->updater.numbers, (uint32_t)row.value[0]);
        if (!row_known(&row, 0) || *now == FLOW_NONE) {
            table->order[left++] = order;
            continue;
        }
        copy_texts(sink, table, &row);
        sink->out_of_memory |= !table_add_ordered(&sink->tables[number], &row, &order);
    }
    table->row_count = left;
}

/* --- taking ------------------------------------------------------------------------------------
 */

/* Moves the rows, and what is counted with them, into an analysis of their own, which is finished.
 */
static void move_out(struct analysis *analysis, struct analysis *taken) {
    struct row_sink *rows = &taken->updater.workers[0].sink;
    *rows = *rows_of(analysis);
    rows->encapsulations = NULL;
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        rows->tables[i].texts = &rows->texts;
        rows->tables[i].filled = NULL;
    }
    taken->totals = analysis->totals;
    taken->totals.flows = taken->updater.numbers.count;
    analysis->totals = (struct analysis_totals){.near_limit = analysis->totals.near_limit};
}

/* Begins rows and counts anew, with so many events of open flows. */
static bool begin_rows(struct analysis *analysis, uint64_t events_kept) {
    struct updater *updater = &analysis->updater;
    struct reader_input *input = &analysis->input;
    for (unsigned i = 0; i < updater->worker_count; i++) {
        struct worker *worker = &updater->workers[i];
        if (i) /* those of the first were moved */
            row_sink_free(&worker->sink);
        open_rows(analysis, worker);
        worker->shard = NULL;
        worker->found = NULL;
        free(worker->mirrored);
        free(worker->pairs);
        worker->mirrored = NULL;
        worker->mirrored_room = 0;
        worker->pairs = NULL;
    }
    rows_of(analysis)->events_kept = events_kept;
    local_free(&analysis->local);
    row_sink_free(&analysis->local_rows);
    open_local(analysis);
    interface_counts_restart(&input->counts, input->files);
    input->wanted.excluded = (struct excluded_packets){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    updater->evicted_flows = updater->evicted_datagrams = 0;
    capture_ports_close(updater->ports);
    updater->ports = capture_ports_open();
    return updater->ports;
}

static void end_reading(struct analysis *analysis) {
    finish_reading(analysis);
    reader_close(analysis->reader);
    analysis->reader = NULL;
}

struct analysis *analysis_take(struct analysis *analysis, struct error *error) {
    struct analysis_totals *totals;
    struct analysis *taken = analysis_empty(&totals);
    error->kind = ERROR_NONE;
    end_reading(analysis);
    bool done = taken && take_numbers(analysis, &taken->updater.numbers);
    uint32_t first = analysis->input.counts.first;
    if (done) {
        rows_of(analysis)->numbers = &taken->updater.numbers;
        complete_rows(analysis);
        note_totals(analysis);
        move_out(analysis, taken);
        struct row_sink *rows = rows_of(taken);
        done = begin_rows(analysis, rows->events_kept);
        for (unsigned i = 0; done && i < ORDERED; i++) {
            move_rows(analysis, &rows->tables[ordered[i]], ordered[i]);
            rows->tables[ordered[i]].flows = rows->numbers;
        }
        done = done && row_sink_sort(rows);
        number_interfaces(analysis->input.files, first, rows, &taken->interfaces);
        done = done && !rows->out_of_memory && !rows_of(analysis)->out_of_memory;
    }
    if (done)
        return taken;
    analysis_close(taken);
    error_set(error, ERROR_MEMORY, "out of memory while the tables were made");
    return NULL;
}

bool analysis_follow(struct analysis *analysis, const struct analysis_files *files,
                     struct error *error) {
    size_t interfaces = merged_input_interfaces(analysis->input.files)->count;
    if (analysis->input.counts.first < interfaces)
        return error_set(error, ERROR_USAGE, "rows are taken before a file follows");
    struct merged_input *next =
        merged_input_follow(analysis->input.files, files->paths, files->names, files->count, error);
    if (!next)
        return false;
    analysis->input.files = next;
    analysis->totals.bytes_total = merged_input_bytes_total(next);
    return true;
}

/* --- the open flows, for a restart -------------------------------------------------------------
 */

/* Returns the first packet of a flow: the number of its file among all that were given, and the
 * frame. */
static uint64_t first_packet(const struct analysis *analysis, const struct flow *flow) {
    const struct interface_list *list = merged_input_interfaces(analysis->input.files);
    return (uint64_t)list->items[flow->first_capture]->file_index << OPEN_FLOW_FRAME_BITS |
           (flow->first_frame & ((UINT64_C(1) << OPEN_FLOW_FRAME_BITS) - 1));
}

static int compare_packets(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

uint64_t *analysis_open_flows(struct analysis *analysis, size_t *count) {
    struct updater *updater = &analysis->updater;
    uint64_t *list = malloc(((size_t)live_flows(updater) + 1) * sizeof *list);
    uint32_t place = 0;
    *count = 0;
    for (struct flow *flow; list && (flow = flow_memory_next(updater->memory, &place));)
        list[(*count)++] = first_packet(analysis, flow);
    if (list)
        qsort(list, *count, sizeof *list, compare_packets);
    return list;
}

void analysis_keep_flows(struct analysis *analysis, const uint64_t *flows, size_t count) {
    struct updater *updater = &analysis->updater;
    struct worker *worker = &updater->workers[0];
    uint32_t place = 0;
    for (struct flow *flow; (flow = flow_memory_next(updater->memory, &place));) {
        uint64_t packet = first_packet(analysis, flow);
        if (count && bsearch(&packet, flows, count, sizeof packet, compare_packets))
            continue;
        worker_enter(worker, updater->owners[shard_of_flow(flow->hash)]);
        flow_release(worker, flow);
        flow_table_remove(worker->shard->flows, flow);
    }
    worker->found = NULL;
}
