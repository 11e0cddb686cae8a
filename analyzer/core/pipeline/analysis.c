/* SPDX-License-Identifier: Apache-2.0 */
/* The pass itself: packets come in batches, and the memory of all their flows is called for before
 * any of them is taken, so that the loads overlap. */
#include "pipeline/analysis.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/analysis_state.h"
#include "pipeline/batch.h"
#include "pipeline/reader.h"

#define MEMORY_LIMIT ((size_t)512 << 20)
/* A capture of fewer bytes is analyzed in small pages: zeroing huge ones would cost more than its
 * packets do. */
#define INPUT_SMALL       (256u << 10)
#define FLOWS_LISTED_MOST (1u << 26)
/* Turns between calling for memory and needing it, and between the first call and the last. */
#define CALL_AHEAD 4u
#define CALLS      4u

/* Rows that a packet adds to events at most, as a rule. */
#define EVENTS_A_PACKET 8u

static bool grouped(enum table_number number) {
    return number == TABLE_flows || number == TABLE_directions || number == TABLE_series;
}

/* The flow numbers as bits. */
static bool list_flows(struct analysis *analysis) {
    const struct analysis_options *options = &analysis->options;
    uint32_t most = 0;
    if (options->packets != PACKETS_OF_FLOWS)
        return true;
    for (size_t i = 0; i < options->packet_flow_count; i++)
        if (options->packet_flows[i] < FLOWS_LISTED_MOST && options->packet_flows[i] >= most)
            most = options->packet_flows[i] + 1;
    analysis->packet_flow_count = most;
    analysis->packet_flows = calloc(most / 8 + 1, 1);
    for (size_t i = 0; analysis->packet_flows && i < options->packet_flow_count; i++)
        if (options->packet_flows[i] < most)
            analysis->packet_flows[options->packet_flows[i] / 8] |=
                (uint8_t)(1u << options->packet_flows[i] % 8);
    analysis->options.packet_flows = NULL; /* the caller's */
    return analysis->packet_flows;
}

static void open_workers(struct analysis *analysis) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&analysis->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    analysis->memory_left = MEMORY_LIMIT;
    for (unsigned i = 0; i < WORKERS; i++)
        analysis->workers[i] =
            (struct worker){.analysis = analysis, .pool = {.budget = &analysis->memory_left}};
}

static void open_tables(struct analysis *analysis) {
    analysis->packets_only = analysis->options.packets == PACKETS_OF_FLOWS;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_init(&analysis->tables[i], (enum table_number)i, &analysis->texts,
                   grouped((enum table_number)i));
}

static bool open_state(struct analysis *analysis) {
    analysis->small = analysis->bytes_total && analysis->bytes_total < INPUT_SMALL;
    for (unsigned i = 0; i < WORKERS; i++)
        analysis->workers[i].pool.small_pages = analysis->small;
    analysis->flows = flow_table_open(analysis->options.flows_most, !analysis->small);
    analysis->paths = encapsulation_table_open();
    analysis->datagrams =
        reassembly_open(datagram_finish, &analysis->workers[0], &analysis->workers[0].pool);
    return analysis->flows && analysis->paths && analysis->datagrams && list_flows(analysis);
}

static bool open_input(struct analysis *analysis, const char *const *paths, size_t count,
                       struct error *error) {
    const char *filter = analysis->options.filter;
    analysis->options.filter = NULL; /* the caller's */
    if (filter && !(analysis->filter = bpf_filter_open(filter, error)))
        return false;
    analysis->captures = merged_input_open(paths, count, error);
    if (!analysis->captures)
        return false;
    analysis->bytes_total = merged_input_bytes_total(analysis->captures);
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
    analysis->excluded = (struct excluded_packets){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    open_workers(analysis);
    open_tables(analysis);
    if (open_input(analysis, paths, count, error))
        return analysis;
    analysis_close(analysis);
    return NULL;
}

/* What only the reading needs. */
static void close_state(struct analysis *analysis) {
    if (analysis->flows)
        flow_table_close(analysis->flows);
    if (analysis->datagrams)
        reassembly_close(analysis->datagrams);
    for (unsigned i = 0; i < WORKERS; i++)
        pool_close(&analysis->workers[i].pool);
    if (analysis->paths)
        encapsulation_table_close(analysis->paths);
    if (analysis->filter)
        bpf_filter_close(analysis->filter);
    if (analysis->captures)
        merged_input_close(analysis->captures);
    free(analysis->counts);
    free(analysis->mirrored);
    free(analysis->packet_flows);
    batch_order_free(&analysis->order);
    analysis->flows = NULL;
    analysis->datagrams = NULL;
    analysis->paths = NULL;
    analysis->filter = NULL;
    analysis->captures = NULL;
    analysis->counts = NULL;
    analysis->mirrored = NULL;
    analysis->packet_flows = NULL;
}

void analysis_close(struct analysis *analysis) {
    size_t place = 0;
    if (!analysis)
        return;
    reader_close(analysis->ahead);
    analysis->ahead = NULL;
    for (struct flow *flow; analysis->flows && (flow = flow_table_drain(analysis->flows, &place));)
        flow_release(&analysis->workers[0], flow);
    close_state(analysis);
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_free(&analysis->tables[i]);
    string_table_free(&analysis->texts);
    pthread_mutex_destroy(&analysis->lock);
    free(analysis);
}

/* Memory of turns to come is called for: of the furthest its decoded, of one that comes sooner the
 * slot of its flow, then the flow, then what the flow points to. */
static inline void call_arrival(const struct batch *batch, const struct turn *turn) {
    const char *lines = (const char *)&batch->packets_decoded[turn->packet];
    __builtin_prefetch(lines);
    __builtin_prefetch(lines + LINE_BYTES);
}

#define BEFORE(calls) (1u << ((calls)*CALL_AHEAD))

/* `firsts`: a bit for each of the last turns up to this, the last in front; whether it is a first.
 */
static inline void call_flows(const struct flow_table *flows, const struct turn *turns, size_t i,
                              uint32_t firsts) {
    if (firsts & BEFORE(1))
        flow_table_prefetch_slot(flows, turns[i - CALL_AHEAD].hash);
    if (firsts & BEFORE(2))
        flow_table_prefetch_flow(flows, turns[i - 2 * CALL_AHEAD].hash);
    if (firsts & BEFORE(3))
        flow_table_prefetch_lists(flows, turns[i - 3 * CALL_AHEAD].hash);
}

/* Memory for the turn `i`, if there is one, and for those before it. `firsts` are of those before;
 * returns them with its own. Of several in a row that seem to be of one flow only the first counts.
 */
static inline uint32_t call_ahead(const struct flow_table *flows, const struct batch *batch,
                                  const struct turn *turns, size_t count, size_t i,
                                  uint32_t firsts) {
    firsts <<= 1;
    if (i < count) {
        call_arrival(batch, &turns[i]);
        firsts |= !i || turns[i].hash != turns[i - 1].hash;
    }
    if (firsts & (BEFORE(1) | BEFORE(2) | BEFORE(3)))
        call_flows(flows, turns, i, firsts);
    return firsts;
}

static void take_turns(struct worker *worker, struct batch *batch, const struct turn *turns,
                       size_t count) {
    const struct flow_table *flows = worker->analysis->flows;
    uint32_t firsts = 0;
    worker->found = NULL; /* another one may have ended it */
    worker->extras = batch->extras;
    for (size_t i = 0; i < CALLS * CALL_AHEAD; i++)
        firsts = call_ahead(flows, batch, turns, count, i, firsts);
    for (size_t i = 0; i < count; i++) {
        firsts = call_ahead(flows, batch, turns, count, i + CALLS * CALL_AHEAD, firsts);
        worker->turn = turns[i].packet;
        packet_dispatch(worker, &batch->packets_decoded[turns[i].packet]);
    }
}

/* What was read by now: flows that were silent for too long are over. */
static void reach_mark(struct analysis *analysis, const struct mark *mark) {
    analysis->bytes_read = mark->bytes_read;
    analysis->now_ns = mark->now_ns;
    analysis->timed = mark->timed;
    flow_expire(analysis);
}

static void set_clock(struct analysis *analysis, const struct mark *mark) {
    if (mark->timed && !analysis->timed) /* sets the clock of the expiry */
        flow_table_expired(analysis->flows, mark->now_ns, flow_due_ns);
}

static void take_to_mark(struct analysis *analysis, struct batch *batch, uint32_t first,
                         const struct mark *mark) {
    set_clock(analysis, mark);
    take_turns(&analysis->workers[0], batch, &batch->order[first], mark->count - first);
    reach_mark(analysis, mark);
}

static void take_in_order(struct analysis *analysis, struct batch *batch) {
    uint32_t first = 0;
    for (size_t i = 0; i < batch->mark_count; first = batch->marks[i++].count)
        take_to_mark(analysis, batch, first, &batch->marks[i]);
}

static void take_part(struct worker *worker, struct batch *batch, unsigned part) {
    uint32_t first = batch->parts[part], count = batch->parts[part + 1] - first;
    if (count)
        take_turns(worker, batch, batch->turns + first, count);
}

static void take_by_flow(struct analysis *analysis, struct batch *batch) {
    for (size_t i = 0; i < batch->mark_count && !analysis->timed; i++) {
        set_clock(analysis, &batch->marks[i]);
        analysis->timed = batch->marks[i].timed;
    }
    batch_order_begin(analysis);
    reader_process_shards(analysis->ahead, batch, take_part);
    batch_order_end(analysis);
    reach_mark(analysis, &batch->marks[batch->mark_count - 1]);
}

/* Where flows touch each other the order of the packets counts: fragments wait for their first
 * ones, ICMP errors quote packets of another flow, and near a bound the packet that comes first
 * gets what is left. */
static bool order_counts(const struct analysis *analysis, const struct batch *batch) {
    const struct analysis_options *options = &analysis->options;
    uint64_t events = analysis->tables[TABLE_events].row_count;
    return options->packets != PACKETS_NONE || batch->next_headers > batch->headers ||
           reassembly_count(analysis->datagrams) ||
           flow_table_count(analysis->flows) + batch->count > options->flows_most ||
           events + EVENTS_A_PACKET * batch->count > EVENTS_MOST ||
           analysis->tables[TABLE_blocks].row_count + EVENTS_A_PACKET * batch->count >
               BLOCK_ROWS_MOST ||
           analysis->memory_left < MEMORY_LIMIT / 2;
}

static void take_batch(struct analysis *analysis, struct batch *batch) {
    for (unsigned i = 0; i < WORKERS; i++)
        pool_return_unused(&analysis->workers[i].pool);
    if (!analysis->options.interfaces_only) {
        if (order_counts(analysis, batch))
            take_in_order(analysis, batch);
        else
            take_by_flow(analysis, batch);
    }
    analysis->bytes_read = batch->marks[batch->mark_count - 1].bytes_read;
    analysis->totals.packets += batch->packets;
    analysis->out_of_memory |= batch->out_of_memory;
}

bool analysis_step(struct analysis *analysis, uint64_t most, struct error *error) {
    bool ended;
    error->kind = ERROR_NONE;
    if (!analysis->captures)
        return false;
    if (!analysis->ahead && !(analysis->ahead = reader_start(analysis)))
        return error_set(error, ERROR_MEMORY, "no thread to read with");
    for (uint64_t done = 0; done < most;) {
        struct batch *batch = reader_next(analysis->ahead, &ended);
        if (!batch)
            return !ended;
        take_batch(analysis, batch);
        done += batch->packets;
        reader_done(analysis->ahead);
        if (analysis->out_of_memory)
            return error_set(error, ERROR_MEMORY, "out of memory after %llu packets",
                             (unsigned long long)analysis->totals.packets);
    }
    return true;
}

/* What was read before the reading was ended still counts. */
static void finish_reading(struct analysis *analysis) {
    bool ended;
    if (!analysis->ahead)
        return;
    reader_stop(analysis->ahead);
    for (struct batch *batch; (batch = reader_next(analysis->ahead, &ended));) {
        take_batch(analysis, batch);
        reader_done(analysis->ahead);
    }
    reader_close(analysis->ahead);
    analysis->ahead = NULL;
}

static void finish_flows(struct analysis *analysis) {
    size_t place = 0;
    finish_reading(analysis);
    reassembly_finish(analysis->datagrams);
    batch_order_begin(analysis);
    for (struct flow *flow; (flow = flow_table_drain(analysis->flows, &place));) {
        batch_order_take_flow(&analysis->workers[0], flow);
        flow_finish(&analysis->workers[0], flow, WORD_END_OF_CAPTURE);
    }
    batch_order_end(analysis);
    capture_count_rows(analysis);
}

static void note_totals(struct analysis *analysis) {
    analysis->totals.flows = analysis->flow_count;
    analysis->totals.evicted_datagrams = reassembly_evicted(analysis->datagrams);
    if (analysis->filter)
        analysis->totals.filter_refused = bpf_filter_refused(analysis->filter);
    analysis->bytes_read = merged_input_bytes_read(analysis->captures);
}

bool analysis_finish(struct analysis *analysis, struct error *error) {
    error->kind = ERROR_NONE;
    if (!analysis->captures)
        return true;
    finish_flows(analysis);
    note_totals(analysis);
    table_settle(&analysis->tables[TABLE_events]);
    table_settle(&analysis->tables[TABLE_blocks]);
    close_state(analysis);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return !analysis->out_of_memory ||
           error_set(error, ERROR_MEMORY, "out of memory while the tables were made");
}

const struct table *analysis_table(const struct analysis *analysis, enum table_number number) {
    return &analysis->tables[number];
}

bool analysis_add_finding(struct analysis *analysis, const struct finding *finding) {
    struct row row;
    int64_t cost, impact;
    memcpy(&cost, &finding->cost, sizeof cost);
    memcpy(&impact, &finding->impact, sizeof impact);
    row_clear(&row);
    row_set_text(analysis, &row, findings_code, finding->code);
    row_set_text(analysis, &row, findings_severity, finding->severity);
    row_set_text(analysis, &row, findings_scope, finding->scope);
    row_set_if(&row, findings_flow, finding->flow >= 0, finding->flow);
    row_set_text(analysis, &row, findings_sentence, finding->sentence);
    row_set_if(&row, findings_cost, !isnan(finding->cost), cost);
    row_set_text(analysis, &row, findings_cost_unit, finding->cost_unit);
    row_set_if(&row, findings_impact, !isnan(finding->impact), impact);
    row_set_text(analysis, &row, findings_evidence, finding->evidence);
    row_set_text(analysis, &row, findings_advice, finding->advice);
    row_set_text(analysis, &row, findings_filter, finding->filter);
    add_row(analysis, TABLE_findings, &row);
    return !analysis->out_of_memory;
}

struct analysis_totals analysis_totals(const struct analysis *analysis) {
    return analysis->totals;
}

bool analysis_finished(const struct analysis *analysis) {
    return !analysis->captures;
}

uint64_t analysis_bytes_read(const struct analysis *analysis) {
    return analysis->bytes_read;
}

uint64_t analysis_bytes_total(const struct analysis *analysis) {
    return analysis->bytes_total;
}

struct excluded_packets analysis_excluded(const struct analysis *analysis) {
    return analysis->excluded;
}
