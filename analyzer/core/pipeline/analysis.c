/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an analysis. The reader's thread decodes batches; both threads process them by flow, in
 * shards, and prefetch the state of the flows of upcoming packets so that cache misses overlap.
 *
 * A batch runs in file order if its packets may affect one another across flows: with fragments
 * or ICMP errors, close to a limit, or if packets are wanted as rows. Both ways must return the
 * same rows. The reader owns the files, the filter and the counts of interfaces until
 * reader_stop().
 *
 * Memory: flows_most bounds the live flows, MEMORY_LIMIT all lists that grow with them, and
 * rows.h the rows of events and blocks. The tables of flows grow with the capture. If an
 * allocation fails in a worker, it sets sink.out_of_memory, and the next check ends the analysis
 * with ERROR_MEMORY; so no function below returns errors packet by packet. */
#include "pipeline/analysis.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/reader.h"

#define MEMORY_LIMIT ((size_t)512 << 20)
/* bytes; a smaller capture is analyzed in small pages, because zeroing huge ones would cost more
 * than its packets */
#define INPUT_SMALL       (256u << 10)
#define FLOWS_LISTED_MOST (1u << 26)
/* Packets between two stages of prefetching, and the number of stages. */
#define PREFETCH_DISTANCE 4u
#define PREFETCH_STAGES   4u

/* Events that a packet rarely exceeds. */
#define EVENTS_PER_PACKET 8u

struct analysis {
    struct analysis_options options;
    struct reader_input input; /* the reader's while it runs */
    struct reader *reader;     /* NULL before the first step and after the end */
    struct updater updater;
    struct analysis_totals totals;
};

/* Sets a bit for each wanted flow; returns false without memory. Numbers from FLOWS_LISTED_MOST on
 * are ignored, so the bits take 8 MiB at most. */
static bool list_flows(struct analysis *analysis) {
    const struct analysis_options *options = &analysis->options;
    struct updater *updater = &analysis->updater;
    if (options->packets != PACKETS_OF_FLOWS)
        return true;
    updater->packet_flows = flow_set(options->packet_flows, options->packet_flow_count,
                                     FLOWS_LISTED_MOST, &updater->packet_flow_count);
    analysis->options.packet_flows = NULL; /* the caller owns it */
    return updater->packet_flows;
}

/* Gives each worker a pool of its own, so that allocation needs no lock. All pools are charged
 * against one limit, because flows are not spread evenly over the workers. */
static void open_workers(struct updater *updater, bool small) {
    updater->memory_left = MEMORY_LIMIT;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &updater->workers[i];
        *worker = (struct worker){.rows = {.sink = &updater->sink}, .updater = updater};
        worker->rows.pool = (struct pool){.budget = &updater->memory_left, .small_pages = small};
    }
}

/* Returns false without memory; analysis_close() frees the part that was opened. The datagrams
 * belong to the first worker, which alone processes fragments. */
static bool open_state(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    bool small = analysis->totals.bytes_total && analysis->totals.bytes_total < INPUT_SMALL;
    analysis->input.small = small;
    open_workers(updater, small);
    updater->flows = flow_table_open(analysis->options.flows_most, !small);
    updater->encapsulations = updater->sink.encapsulations = encapsulation_table_open();
    updater->ports = capture_ports_open();
    updater->selection = selection_open();
    updater->datagrams =
        reassembly_open(datagram_finish, &updater->workers[0], &updater->workers[0].rows.pool);
    return updater->flows && updater->encapsulations && updater->ports && updater->selection &&
           updater->datagrams && list_flows(analysis);
}

/* Compiles the filter first: an invalid expression must be a usage error before any file is
 * opened. */
static bool open_input(struct analysis *analysis, const char *const *paths, size_t count,
                       struct error *error) {
    const char *filter = analysis->options.filter;
    analysis->options.filter = NULL; /* the caller owns it */
    if (filter && !(analysis->input.filter = bpf_filter_open(filter, error)))
        return false;
    analysis->input.files = merged_input_open(paths, count, error);
    if (!analysis->input.files)
        return false;
    analysis->totals.bytes_total = merged_input_bytes_total(analysis->input.files);
    return open_state(analysis) ||
           error_set(error, ERROR_MEMORY, "out of memory before the first packet");
}

struct analysis *analysis_open(const char *const *paths, size_t count,
                               const struct analysis_options *options, struct error *error) {
    struct analysis *analysis = calloc(1, sizeof *analysis);
    error->kind = ERROR_NONE;
    if (!analysis) {
        error_set(error, ERROR_MEMORY, "out of memory before the first packet");
        return NULL;
    }
    analysis->options = *options;
    analysis->input.start_ns = options->start_ns;
    analysis->input.end_ns = options->end_ns;
    analysis->input.excluded =
        (struct excluded_packets){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    analysis->input.updater = &analysis->updater;
    analysis->input.by_flow = !options->interfaces_only && options->packets == PACKETS_NONE;
    analysis->updater.packets_all = options->packets == PACKETS_ALL;
    analysis->updater.block_size = options->block_size;
    analysis->updater.packet_rows_most = options->packet_rows_most;
    row_sink_open(&analysis->updater.sink, options->packets == PACKETS_OF_FLOWS);
    if (open_input(analysis, paths, count, error))
        return analysis;
    analysis_close(analysis);
    return NULL;
}

/* Frees everything but the tables, which the caller reads after analysis_finish(). Each pointer is
 * cleared, because analysis_close() calls this a second time. */
static void close_state(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    struct reader_input *input = &analysis->input;
    if (updater->flows)
        flow_table_close(updater->flows);
    if (updater->datagrams)
        reassembly_close(updater->datagrams);
    for (unsigned i = 0; i < WORKERS; i++)
        pool_close(&updater->workers[i].rows.pool);
    if (updater->encapsulations)
        encapsulation_table_close(updater->encapsulations);
    bpf_filter_close(input->filter);
    merged_input_close(input->files);
    interface_counts_free(&input->counts);
    *input = (struct reader_input){0};
    free(updater->mirrored);
    capture_ports_close(updater->ports);
    selection_close(updater->selection);
    free(updater->packet_flows);
    row_sink_free_buffers(&updater->sink);
    updater->flows = NULL;
    updater->datagrams = NULL;
    updater->encapsulations = NULL;
    updater->mirrored = NULL;
    updater->ports = NULL;
    updater->selection = NULL;
    updater->packet_flows = NULL;
}

void analysis_close(struct analysis *analysis) {
    size_t place = 0;
    if (!analysis)
        return;
    struct updater *updater = &analysis->updater;
    reader_close(analysis->reader);
    for (struct flow *flow; updater->flows && (flow = flow_table_drain(updater->flows, &place));)
        flow_release(&updater->workers[0], flow);
    close_state(analysis);
    row_sink_free(&updater->sink);
    free(analysis);
}

/* Prefetches in stages: the decoded packet itself for the most distant one, for closer ones the
 * slot of its flow, then the flow, then the lists of the flow. */
static inline void prefetch_packet(const struct batch *batch, const struct batch_entry *turn) {
    const char *lines = (const char *)&batch->decoded[turn->packet];
    __builtin_prefetch(lines);
    __builtin_prefetch(lines + LINE_BYTES);
}

#define BEFORE(calls) (1u << ((calls)*PREFETCH_DISTANCE))

/* `firsts` has a bit for each of the latest packets, the newest in bit 0: whether it is the
 * first of several successive packets of one flow. */
static inline void prefetch_flow(const struct flow_table *flows, const struct batch_entry *entries,
                                 size_t i, uint32_t firsts) {
    if (firsts & BEFORE(1))
        flow_table_prefetch_slot(flows, entries[i - PREFETCH_DISTANCE].hash);
    if (firsts & BEFORE(2))
        flow_table_prefetch_flow(flows, entries[i - 2 * PREFETCH_DISTANCE].hash);
    if (firsts & BEFORE(3))
        flow_table_prefetch_lists(flows, entries[i - 3 * PREFETCH_DISTANCE].hash);
}

/* Prefetches for packet `i`, if there is one, and continues for those before it. Returns
 * `firsts` with the bit of packet i. */
static inline uint32_t prefetch_ahead(const struct flow_table *flows, const struct batch *batch,
                                      const struct batch_entry *entries, size_t count, size_t i,
                                      uint32_t firsts) {
    firsts <<= 1;
    if (i < count) {
        prefetch_packet(batch, &entries[i]);
        firsts |= !i || entries[i].hash != entries[i - 1].hash;
    }
    if (firsts & (BEFORE(1) | BEFORE(2) | BEFORE(3)))
        prefetch_flow(flows, entries, i, firsts);
    return firsts;
}

/* Processes entries in their order on the worker's thread. PREFETCH_STAGES * PREFETCH_DISTANCE
 * packets before its turn a packet is fetched itself; the first loop fills that pipeline. */
static void process_packets(struct worker *worker, struct batch *batch,
                            const struct batch_entry *entries, size_t count) {
    const struct flow_table *flows = worker->updater->flows;
    uint32_t firsts = 0;
    worker->found = NULL; /* another worker may have ended it */
    worker->extras = batch->extras;
    worker->selected = batch->selected;
    for (size_t i = 0; i < PREFETCH_STAGES * PREFETCH_DISTANCE; i++)
        firsts = prefetch_ahead(flows, batch, entries, count, i, firsts);
    for (size_t i = 0; i < count; i++) {
        firsts = prefetch_ahead(flows, batch, entries, count,
                                i + PREFETCH_STAGES * PREFETCH_DISTANCE, firsts);
        worker->rows.batch_index = entries[i].packet;
        packet_dispatch(worker, &batch->decoded[entries[i].packet]);
    }
}

/* Advances the clock to a mark and ends the flows that were silent for too long. */
static void reach_mark(struct analysis *analysis, const struct mark *mark) {
    analysis->totals.bytes_read = mark->bytes_read;
    analysis->updater.now_ns = mark->now_ns;
    analysis->updater.timed = mark->timed;
    flow_expire(&analysis->updater);
}

/* The wheel of the flow table must have a time before the first flow is put into it. */
static void set_clock(struct analysis *analysis, const struct mark *mark) {
    if (mark->timed && !analysis->updater.timed) /* sets the clock of the expiry */
        flow_table_expired(analysis->updater.flows, mark->now_ns, flow_due_ns);
}

/* Expires flows at every mark instead of once per batch: if a limit is close, their memory and
 * their places in the table should be free before the next packets need them. */
static void process_in_file_order(struct analysis *analysis, struct batch *batch) {
    uint32_t first = 0;
    for (size_t i = 0; i < batch->mark_count; first = batch->marks[i++].count) {
        const struct mark *mark = &batch->marks[i];
        set_clock(analysis, mark);
        process_packets(&analysis->updater.workers[0], batch, &batch->in_order[first],
                        mark->count - first);
        reach_mark(analysis, mark);
    }
}

static void process_shard(struct worker *worker, struct batch *batch, unsigned part) {
    uint32_t first = batch->parts[part], count = batch->parts[part + 1] - first;
    if (count)
        process_packets(worker, batch, batch->by_flow + first, count);
}

/* The clock is that of the first mark with a time, as it would be in file order. Marks in between
 * are skipped: the flows expire after the last one. */
static void process_by_flow(struct analysis *analysis, struct batch *batch) {
    for (size_t i = 0; i < batch->mark_count && !analysis->updater.timed; i++) {
        set_clock(analysis, &batch->marks[i]);
        analysis->updater.timed = batch->marks[i].timed;
    }
    row_sink_begin_batch(&analysis->updater.sink, analysis->updater.flow_count);
    reader_process_shards(analysis->reader, batch, process_shard);
    row_sink_end_batch(&analysis->updater.sink);
    reach_mark(analysis, &batch->marks[batch->mark_count - 1]);
}

/* Returns whether packets of different flows may affect each other. Fragments and ICMP errors
 * concern a flow that their own hash does not select; a pending datagram writes rows when it
 * expires. At a limit, the order of packets decides which flow is evicted, which rows are dropped
 * and which list cannot grow. Each check assumes the most that the batch could add. */
static bool needs_file_order(const struct analysis *analysis, const struct batch *batch) {
    const struct analysis_options *options = &analysis->options;
    uint64_t events = analysis->updater.sink.tables[TABLE_events].row_count;
    uint64_t blocks = analysis->updater.sink.tables[TABLE_blocks].row_count;
    uint64_t queries = analysis->updater.sink.tables[TABLE_queries].row_count;
    uint64_t most = EVENTS_PER_PACKET * batch->count;
    return options->packets != PACKETS_NONE || batch->next_headers > batch->headers ||
           reassembly_count(analysis->updater.datagrams) ||
           flow_table_count(analysis->updater.flows) + batch->count > options->flows_most ||
           events + most > MAX_EVENTS || blocks + most > MAX_BLOCK_ROWS ||
           queries + most > MAX_QUERY_ROWS ||
           analysis->updater.holding_first_bytes + batch->selected_count > FIRST_BYTES_FLOWS ||
           (analysis->updater.initial_flows < FIRST_BYTES_FLOWS &&
            analysis->updater.initial_flows + batch->selected_count > FIRST_BYTES_FLOWS) ||
           analysis->updater.memory_left < MEMORY_LIMIT / 2;
}

/* No worker runs between two batches, so that the pools may be changed from this thread. */
static void process_batch(struct analysis *analysis, struct batch *batch) {
    for (unsigned i = 0; i < WORKERS; i++)
        pool_return_unused(&analysis->updater.workers[i].rows.pool);
    if (!analysis->options.interfaces_only) {
        if (needs_file_order(analysis, batch))
            process_in_file_order(analysis, batch);
        else
            process_by_flow(analysis, batch);
    }
    analysis->totals.bytes_read = batch->marks[batch->mark_count - 1].bytes_read;
    analysis->totals.packets += batch->packets;
    analysis->updater.sink.out_of_memory |= batch->out_of_memory;
}

bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error) {
    bool ended;
    error->kind = ERROR_NONE;
    if (!analysis->input.files)
        return false;
    if (!analysis->reader && !(analysis->reader = reader_start(&analysis->input)))
        return error_set(error, ERROR_MEMORY, "no thread to read with");
    for (uint64_t done = 0; done < most;) {
        struct batch *batch = reader_next(analysis->reader, &ended);
        if (!batch)
            return !ended;
        process_batch(analysis, batch);
        done += batch->packets;
        reader_done(analysis->reader);
        if (analysis->updater.sink.out_of_memory)
            return error_set(error, ERROR_MEMORY, "out of memory after %llu packets",
                             (unsigned long long)analysis->totals.packets);
    }
    return true;
}

/* Processes the batches that were read before the stop. */
static void finish_reading(struct analysis *analysis) {
    bool ended;
    if (!analysis->reader)
        return;
    reader_stop(analysis->reader);
    for (struct batch *batch; (batch = reader_next(analysis->reader, &ended));) {
        process_batch(analysis, batch);
        reader_done(analysis->reader);
    }
    reader_close(analysis->reader);
    analysis->reader = NULL;
}

/* Datagrams end before flows, because they add to the counts of live flows. Flows are drained in
 * the order of memory; their events and blocks are buffered under the flow's number, so that the
 * order of rows does not depend on it. */
static void finish_flows(struct analysis *analysis) {
    size_t place = 0;
    finish_reading(analysis);
    reassembly_finish(analysis->updater.datagrams);
    row_sink_begin_batch(&analysis->updater.sink, analysis->updater.flow_count);
    for (struct flow *flow; (flow = flow_table_drain(analysis->updater.flows, &place));) {
        row_writer_begin_flow(&analysis->updater.workers[0].rows, flow,
                              analysis->updater.flow_count);
        flow_finish(&analysis->updater.workers[0], flow, WORD_END_OF_CAPTURE);
    }
    row_sink_end_batch(&analysis->updater.sink);
    interface_rows_add(&analysis->updater.sink, analysis->input.files, &analysis->input.counts,
                       &(struct interface_duplicates){analysis->updater.mirrored,
                                                      analysis->updater.mirrored_room,
                                                      analysis->updater.ports},
                       !analysis->options.interfaces_only);
}

static void note_totals(struct analysis *analysis) {
    analysis->totals.flows = analysis->updater.flow_count;
    analysis->totals.evicted_datagrams = reassembly_evicted(analysis->updater.datagrams);
    analysis->totals.evicted_flows = analysis->updater.evicted_flows;
    analysis->totals.packet_rows_dropped = analysis->updater.packet_rows_dropped;
    analysis->totals.events_dropped = analysis->updater.sink.events_dropped;
    analysis->totals.blocks_dropped = analysis->updater.sink.blocks_dropped;
    analysis->totals.queries_dropped = analysis->updater.sink.queries_dropped;
    analysis->totals.turns_dropped = analysis->updater.sink.turns_dropped;
    analysis->totals.excluded = analysis->input.excluded;
    analysis->totals.judged = analysis->updater.sink.judged;
    analysis->totals.finished = true;
    if (analysis->input.filter)
        analysis->totals.filter_refused = bpf_filter_refused(analysis->input.filter);
    analysis->totals.bytes_read = merged_input_bytes_read(analysis->input.files);
}

bool analysis_finish(struct analysis *analysis, struct error *error) {
    error->kind = ERROR_NONE;
    if (!analysis->input.files)
        return true;
    finish_flows(analysis);
    note_totals(analysis);
    table_settle(&analysis->updater.sink.tables[TABLE_events]);
    table_settle(&analysis->updater.sink.tables[TABLE_blocks]);
    analysis->updater.sink.out_of_memory |= !quic_names_collect(&analysis->updater.sink);
    close_state(analysis);
#ifdef __GLIBC__
    /* The tables may live for long: return the memory of the analysis to the kernel now. */
    malloc_trim(0);
#endif
    return !analysis->updater.sink.out_of_memory ||
           error_set(error, ERROR_MEMORY, "out of memory while the tables were made");
}

const struct table *analysis_table(const struct analysis *analysis, enum table_number number) {
    return &analysis->updater.sink.tables[number];
}

bool analysis_add_finding(struct analysis *analysis, const struct finding *finding) {
    struct row row;
    int64_t cost, impact;
    /* A REAL is stored as its bits. */
    memcpy(&cost, &finding->cost, sizeof cost);
    memcpy(&impact, &finding->impact, sizeof impact);
    row_clear(&row);
    row_set_text(&analysis->updater.sink, &row, findings_code, finding->code);
    row_set_text(&analysis->updater.sink, &row, findings_severity, finding->severity);
    row_set_text(&analysis->updater.sink, &row, findings_scope, finding->scope);
    row_set_if(&row, findings_flow, finding->flow >= 0, finding->flow);
    row_set_text(&analysis->updater.sink, &row, findings_sentence, finding->sentence);
    row_set_if(&row, findings_cost, !isnan(finding->cost), cost);
    row_set_text(&analysis->updater.sink, &row, findings_cost_unit, finding->cost_unit);
    row_set_if(&row, findings_impact, !isnan(finding->impact), impact);
    row_set_text(&analysis->updater.sink, &row, findings_evidence, finding->evidence);
    row_set_text(&analysis->updater.sink, &row, findings_advice, finding->advice);
    row_set_text(&analysis->updater.sink, &row, findings_filter, finding->filter);
    add_row(&analysis->updater.sink, TABLE_findings, &row);
    return !analysis->updater.sink.out_of_memory;
}

size_t analysis_initials(const struct analysis *analysis) {
    return analysis->updater.sink.quic_names.count;
}

const char *analysis_initial(const struct analysis *analysis, size_t number, size_t *size) {
    const struct row_sink *sink = &analysis->updater.sink;
    return string_table_get(&sink->texts, sink->quic_names.list[number].initials, size);
}

bool analysis_set_hello(struct analysis *analysis, size_t number, const char *server_name,
                        const char *alpn) {
    return quic_names_set(&analysis->updater.sink, number, server_name, alpn);
}

void analysis_settle_hellos(struct analysis *analysis) {
    quic_names_settle(&analysis->updater.sink);
}

const struct analysis_totals *analysis_totals(const struct analysis *analysis) {
    return &analysis->totals;
}
