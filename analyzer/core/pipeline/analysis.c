/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an analysis. One thread decodes batches; all process them in shards (process.c). Neither the
 * number of threads nor that of shards changes a row.
 *
 * Memory: max_flows bounds the live flows, MEMORY_LIMIT all lists that grow with them, and
 * rows.h the rows of events and blocks. The tables of flows grow with the capture. If an
 * allocation fails in a worker, it sets sink.out_of_memory, and the next check ends the analysis
 * with ERROR_MEMORY; so no function below returns errors packet by packet. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "pipeline/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "common/portable.h"
#include "local/host_ids.h"
#include "pipeline/state.h"

/* bytes; a smaller capture is analyzed in small pages, because zeroing huge ones would cost more
 * than its packets */
#define INPUT_SMALL       (256u << 10)
#define FLOWS_LISTED_MOST (1u << 26)

/* Sets a bit for each wanted flow; returns false without memory. Numbers from FLOWS_LISTED_MOST on
 * are ignored, so the bits take 8 MiB at most. */
static bool list_flows(struct analysis *analysis) {
    struct wanted_packet_rows *packets = &analysis->mode.packets;
    struct updater *updater = &analysis->updater;
    if (packets->kind != PACKETS_OF_FLOWS)
        return true;
    updater->packet_flows = flow_set(packets->flows, packets->flow_count, FLOWS_LISTED_MOST,
                                     &updater->packet_flow_count);
    packets->flows = NULL; /* the caller owns it */
    const struct analysis *first = analysis->mode.first;
    analysis->mode.first = NULL; /* likewise */
    if (!updater->packet_flows || !first || first->totals.near_limit)
        return updater->packet_flows;
    updater->choice = pair_choice_open(analysis_table(first, TABLE_flows), updater->packet_flows,
                                       updater->packet_flow_count);
    return updater->choice;
}

void open_rows(struct analysis *analysis, struct worker *worker) {
    struct updater *updater = &analysis->updater;
    row_sink_open(&worker->sink, (unsigned)(worker - updater->workers),
                  has_packets_alone(&analysis->mode.packets));
    if (updater->identified)
        worker->sink.tables[TABLE_packets].schema = &schemas[IDENTIFIED_PACKETS];
    worker->sink.encapsulations = updater->encapsulations;
    worker->sink.numbers = &updater->numbers;
}

/* Gives each worker rows and an allowance. Returns false without memory. */
static bool open_workers(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    updater->workers = calloc(analysis->input.jobs, sizeof *updater->workers);
    for (; updater->workers && updater->worker_count < analysis->input.jobs;
         updater->worker_count++) {
        struct worker *worker = &updater->workers[updater->worker_count];
        open_rows(analysis, worker);
        worker->updater = updater;
        worker->rows.sink = &worker->sink;
        worker->events = worker_events(worker);
        worker->allowance.memory = &updater->pool_memory;
        worker->ending.charged = &worker->allowance;
    }
    return updater->workers;
}

/* Exchanges of the local network are rows of the first reading, and of all shards together. */
void open_local(struct analysis *analysis) {
    row_sink_open(&analysis->local_rows, analysis->input.jobs, false);
    local_init(&analysis->local, &analysis->local_rows);
    if (!has_packets_alone(&analysis->mode.packets) && !analysis->mode.shard)
        analysis->input.local = &analysis->local;
}

/* Gives each shard a table of flows. The limit of their pools is a common one, because flows are
 * not spread evenly over the shards. Returns false without memory. */
static bool open_shards(struct updater *updater, unsigned bits, bool small) {
    pool_memory_open(&updater->pool_memory, MEMORY_LIMIT, small);
    updater->numbers.shard_bits = bits;
    updater->shards = calloc(1u << bits, sizeof *updater->shards);
    for (unsigned i = 0; updater->shards && i < 1u << bits; i++) {
        updater->shards[i].number = i;
        if (!(updater->shards[i].flows = flow_table_open(updater->memory)))
            return false;
    }
    for (unsigned i = 0; updater->shards && i < SHARDS; i++)
        updater->owners[i] = &updater->shards[i >> (SHARD_BITS - bits)];
    return updater->shards && flow_numbers_open(&updater->numbers);
}

/* Returns the number of processors on which this process may run. */
static unsigned processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* Packets as rows need the final numbers of flows at once, which one shard can give. A small
 * capture is processed sooner than more are opened. */
static unsigned shard_bits(const struct analysis *analysis) {
    bool small = analysis->input.small && analysis->input.jobs == 1;
    bool one = analysis->mode.packets.kind != PACKETS_NONE || small;
    return one ? 0 : SHARD_BITS;
}

/* Returns false without memory; analysis_close() frees the part that was opened. */
static bool open_state(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    bool small = analysis->totals.bytes_total && analysis->totals.bytes_total < INPUT_SMALL &&
                 !analysis->mode.running;
    unsigned jobs = analysis->options.jobs ? analysis->options.jobs : small ? 1 : processors();
    analysis->input.small = small;
    analysis->input.again = analysis->mode.first;
    analysis->input.jobs = jobs < PARTS_MOST ? jobs : PARTS_MOST - 1; /* one is of local_rows */
    hash_seed_fill(updater->seeds.seed, SHARD_SEEDS);
    updater->memory = flow_memory_open(analysis->options.max_flows, !small);
    updater->encapsulations = encapsulation_table_open();
    updater->ports = capture_ports_open();
    updater->begins = analysis->mode.shard;
    updater->selection = selection_open();
    open_local(analysis);
    analysis->input.host_ids = host_ids_open();
    return updater->memory && updater->encapsulations && updater->ports && updater->selection &&
           analysis->input.host_ids && open_shards(updater, shard_bits(analysis), small) &&
           open_workers(analysis) && list_flows(analysis);
}

/* Compiles the filter first: an invalid expression must be a usage error before any file is
 * opened. */
static bool open_input(struct analysis *analysis, const struct analysis_files *files,
                       struct error *error) {
    const char *filter = analysis->options.filter;
    analysis->options.filter = NULL; /* the caller owns it */
    if (filter && !(analysis->input.wanted.filter = bpf_filter_open(filter, error)))
        return false;
    analysis->input.files = merged_input_open(files->paths, files->names, files->count, error);
    if (!analysis->input.files)
        return false;
    analysis->totals.bytes_total = merged_input_bytes_total(analysis->input.files);
    return open_state(analysis) ||
           error_set(error, ERROR_MEMORY, "out of memory before the first packet");
}

struct analysis *analysis_open(const struct analysis_files *files,
                               const struct analysis_options *options,
                               const struct reading_mode *mode, struct error *error) {
    struct analysis *analysis = calloc(1, sizeof *analysis);
    error->kind = ERROR_NONE;
    if (!analysis) {
        error_set(error, ERROR_MEMORY, "out of memory before the first packet");
        return NULL;
    }
    analysis->options = *options;
    analysis->mode = *mode;
    wanted_packets_begin(&analysis->input.wanted, options->start_ns, options->end_ns);
    analysis->input.updater = &analysis->updater;
    analysis->packets = 1;
    analysis->updater.identified = mode->packets.kind == PACKETS_IDENTIFIED;
    analysis->updater.packets_all =
        mode->packets.kind == PACKETS_ALL || analysis->updater.identified;
    analysis->updater.time_spans = mode->time_spans;
    analysis->updater.block_size = options->block_size;
    analysis->updater.packet_rows_most = mode->packet_rows_most;
    analysis->updater.max_flows = options->max_flows;
    if (open_input(analysis, files, error))
        return analysis;
    analysis_close(analysis);
    return NULL;
}

static void close_shards(struct updater *updater) {
    for (unsigned i = 0; updater->shards && i < 1u << updater->numbers.shard_bits; i++) {
        struct shard *shard = &updater->shards[i];
        if (shard->datagrams) {
            reassembly_use(shard->datagrams, NULL, &shard->pool);
            reassembly_close(shard->datagrams);
        }
        if (shard->flows)
            flow_table_close(shard->flows);
        for (unsigned t = 0; t < TABLE_COUNT; t++)
            free(shard->groups[t].list);
        free(shard->firsts);
        free(shard->begins);
        free(shard->begun);
        free(shard->spare);
    }
    if (updater->shards)
        pool_memory_close(&updater->pool_memory);
    free(updater->shards);
}

/* Frees everything but the tables, which the caller reads after analysis_finish(). The pointers are
 * cleared, because analysis_close() calls this a second time. */
static void close_state(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    struct reader_input *input = &analysis->input;
    bool live = !analysis->totals.finished || rows_of(analysis)->out_of_memory;
    uint32_t place = 0;
    for (struct flow *flow;
         live && updater->memory && (flow = flow_memory_next(updater->memory, &place));) {
        worker_enter(&updater->workers[0], updater->owners[shard_of_flow(flow->hash)]);
        flow_release(&updater->workers[0], flow);
    }
    close_shards(updater);
    for (unsigned i = 0; i < updater->worker_count; i++) {
        struct worker *worker = &updater->workers[i];
        free(worker->mirrored);
        free(worker->pairs);
        worker->mirrored = NULL;
        worker->pairs = NULL;
    }
    if (updater->memory)
        flow_memory_close(updater->memory);
    if (updater->encapsulations)
        encapsulation_table_close(updater->encapsulations);
    bpf_filter_close(input->wanted.filter);
    merged_input_close(input->files);
    interface_counts_free(&input->counts);
    local_free(&analysis->local);
    free(input->host_ids);
    *input = (struct reader_input){0};
    capture_ports_close(updater->ports);
    selection_close(updater->selection);
    free(updater->packet_flows);
    pair_choice_close(updater->choice);
    free(updater->eviction.heap);
    *updater = (struct updater){.workers = updater->workers,
                                .worker_count = updater->worker_count,
                                .numbers = updater->numbers};
}

void analysis_close(struct analysis *analysis) {
    if (!analysis)
        return;
    struct updater *updater = &analysis->updater;
    reader_close(analysis->reader);
    close_state(analysis);
    for (unsigned i = 0; i < updater->worker_count; i++)
        row_sink_free(&updater->workers[i].sink);
    row_sink_free(&analysis->local_rows);
    free(updater->workers);
    flow_numbers_free(&updater->numbers);
    free(analysis->begins);
    free(analysis);
}

bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error) {
    bool ended;
    error->kind = ERROR_NONE;
    if (!analysis->input.files)
        return false;
    if (!analysis->reader) {
        merged_input_read_ahead(analysis->input.files, analysis->input.jobs);
        analysis->reader = reader_start(&analysis->input);
    }
    if (!analysis->reader)
        return error_set(error, ERROR_MEMORY, "no thread to read with");
    for (uint64_t done = 0; done < most;) {
        struct batch *batch = reader_next(analysis->reader, &ended);
        if (!batch)
            return !ended;
        process_batch(analysis, batch);
        done += batch->count;
        reader_done(analysis->reader);
        if (rows_of(analysis)->out_of_memory)
            return error_set(error, ERROR_MEMORY, "out of memory after %llu packets",
                             (unsigned long long)analysis->totals.packets);
    }
    return true;
}

/* Processes the batches that were read before the stop. */
void finish_reading(struct analysis *analysis) {
    bool ended;
    if (!analysis->reader)
        return;
    reader_stop(analysis->reader);
    for (struct batch *batch; (batch = reader_next(analysis->reader, &ended));) {
        process_batch(analysis, batch);
        reader_done(analysis->reader);
    }
    reader_release(analysis->reader);
}

void note_totals(struct analysis *analysis) {
    const struct row_sink *rows = rows_of(analysis);
    analysis->totals.flows = analysis->updater.numbers.count;
    analysis->totals.evicted_datagrams = analysis->updater.evicted_datagrams;
    analysis->totals.evicted_flows = analysis->updater.evicted_flows;
    analysis->totals.packet_rows_dropped = analysis->updater.packet_rows_dropped;
    analysis->totals.events_dropped = rows->events_dropped;
    analysis->totals.blocks_dropped = rows->blocks_dropped;
    analysis->totals.exchanges_dropped = rows->exchanges_dropped;
    analysis->totals.excluded = analysis->input.wanted.excluded;
    analysis->totals.judged = rows->judged;
    analysis->totals.finished = true;
    analysis->totals.filter_refused = bpf_filter_refused(analysis->input.wanted.filter);
    analysis->totals.bytes_read = merged_input_bytes_read(analysis->input.files);
}

/* Keeps the packet that began each flow of a shard of a cluster, by the number of the flow. Returns
 * false without memory. */
static bool keep_begins(struct analysis *analysis) {
    const struct updater *updater = &analysis->updater;
    if (!updater->begins || !updater->numbers.final)
        return true;
    analysis->begins = calloc(analysis->totals.flows + 1, sizeof *analysis->begins);
    for (unsigned s = 0; analysis->begins && s < 1u << updater->numbers.shard_bits; s++)
        for (uint32_t i = 0; i < updater->shards[s].flow_count; i++)
            analysis->begins[updater->numbers.final[s][i]] = updater->shards[s].begins[i];
    return analysis->begins;
}

bool analysis_finish(struct analysis *analysis, struct error *error) {
    error->kind = ERROR_NONE;
    if (!analysis->input.files)
        return true;
    finish_reading(analysis);
    finish_flows(analysis);
    note_totals(analysis);
    struct row_sink *rows = rows_of(analysis);
    rows->out_of_memory |= !row_sink_sort(rows) || !keep_begins(analysis);
    number_interfaces(analysis->input.files, analysis->input.counts.first, rows,
                      &analysis->interfaces);
    close_state(analysis);
    give_back_memory(); /* the tables may live for long */
    return !rows->out_of_memory ||
           error_set(error, ERROR_MEMORY, "out of memory while the tables were made");
}

struct analysis *analysis_empty(struct analysis_totals **totals) {
    struct analysis *analysis = calloc(1, sizeof *analysis);
    struct worker *worker = analysis ? calloc(1, sizeof *worker) : NULL;
    if (!worker) {
        free(analysis);
        return NULL;
    }
    analysis->updater.workers = worker;
    analysis->updater.worker_count = 1;
    row_sink_open(&worker->sink, 0, false);
    worker->sink.numbers = &analysis->updater.numbers;
    analysis->totals.finished = analysis->totals.near_limit = true;
    *totals = &analysis->totals;
    return analysis;
}

struct row_sink *analysis_sink(struct analysis *analysis) {
    return rows_of(analysis);
}

const struct table *analysis_table(const struct analysis *analysis, enum table_number number) {
    return &analysis->updater.workers[0].sink.tables[number];
}

const struct flow_begin *analysis_begins(const struct analysis *analysis) {
    return analysis->begins;
}

const struct analysis_totals *analysis_totals(const struct analysis *analysis) {
    return &analysis->totals;
}
