/* SPDX-License-Identifier: Apache-2.0 */
/* Processes batches in one of three ways, which give the same rows. A shard's packets are processed
 * by flow, so that the state of a flow is loaded into the cache once for all of them; the state of
 * the flows of upcoming packets is prefetched, so that cache misses overlap. In a batch with
 * fragments or ICMP errors, each shard processes its packets in the order of the file, because they
 * may concern flows that their own hash does not select. Close to a limit, or if packets are wanted
 * as rows, the first worker alone processes all packets in that order (update/limits.c). */
#include "pipeline/state.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/int64.h"

/* Of MEMORY_LIMIT, a batch takes less than this and so much for each of its packets. */
#define MEMORY_SPARE  (MEMORY_LIMIT / 8)
#define PACKET_MEMORY 1024u
/* Packets between two stages of prefetching, and the number of stages. */
#define PREFETCH_DISTANCE 4u
#define PREFETCH_STAGES   4u

/* Events that a packet, or the end of a flow, rarely exceeds. */
#define EVENTS_PER_PACKET 8u

/* Prefetches in stages: the decoded packet itself for the most distant one, for closer ones the
 * slot of its flow, then the flow, then the lists of the flow. */
static inline void prefetch_packet(const struct batch *batch, const struct batch_entry *turn) {
    const char *lines = (const char *)&batch->decoded[turn->packet & ~ENTRY_QUOTED];
    __builtin_prefetch(lines);
    __builtin_prefetch(lines + LINE_BYTES);
}

#define BEFORE(calls) (1u << ((calls)*PREFETCH_DISTANCE))

static const struct flow_table *table_of(const struct updater *updater, uint32_t hash) {
    return updater->owners[shard_of_flow(hash)]->flows;
}

/* `firsts` has a bit for each of the latest packets, the newest in bit 0: whether it is the
 * first of several successive packets of one flow. */
static inline void prefetch_flow(const struct updater *updater, const struct batch_entry *entries,
                                 size_t i, uint32_t firsts) {
    uint32_t hash;
    if (firsts & BEFORE(1)) {
        hash = entries[i - PREFETCH_DISTANCE].hash;
        flow_table_prefetch_slot(table_of(updater, hash), hash);
    }
    if (firsts & BEFORE(2)) {
        hash = entries[i - 2 * PREFETCH_DISTANCE].hash;
        flow_table_prefetch_flow(table_of(updater, hash), hash);
    }
    if (firsts & BEFORE(3)) {
        hash = entries[i - 3 * PREFETCH_DISTANCE].hash;
        flow_table_prefetch_lists(table_of(updater, hash), hash);
    }
}

/* Prefetches for packet `i`, if there is one, and continues for those before it. Returns
 * `firsts` with the bit of packet i. */
static inline uint32_t prefetch_ahead(const struct updater *updater, const struct batch *batch,
                                      const struct batch_entry *entries, size_t count, size_t i,
                                      uint32_t firsts) {
    firsts <<= 1;
    if (i < count) {
        prefetch_packet(batch, &entries[i]);
        firsts |= !i || entries[i].hash != entries[i - 1].hash;
    }
    if (firsts & (BEFORE(1) | BEFORE(2) | BEFORE(3)))
        prefetch_flow(updater, entries, i, firsts);
    return firsts;
}

static inline void process_packet(struct analysis *analysis, struct worker *worker,
                                  struct batch_entry entry) {
    uint32_t index = entry.packet & ~ENTRY_QUOTED;
    const struct decoded_packet *decoded = &analysis->batch->decoded[index];
    worker->sink.at = (analysis->packets + index) << ORDER_BITS;
    if (LIKELY(index == entry.packet)) {
        packet_dispatch(worker, decoded);
        return;
    }
    worker->sink.at |= ORDER_QUOTED;
    icmp_error_update(worker, decoded, &worker->extras[decoded->extras]);
}

/* Processes entries in their order on the worker's thread. PREFETCH_STAGES * PREFETCH_DISTANCE
 * packets before its turn a packet is fetched itself; the first loop fills that pipeline. */
static void process_packets(struct analysis *analysis, struct worker *worker,
                            const struct batch_entry *entries, size_t count) {
    const struct updater *updater = worker->updater;
    const struct batch *batch = analysis->batch;
    uint32_t firsts = 0;
    worker->extras = batch->extras;
    worker->selected = batch->selected;
    worker->identities = batch->identities;
    worker->batch_at = analysis->packets;
    worker->batch_packets = analysis->totals.packets;
    for (size_t i = 0; i < PREFETCH_STAGES * PREFETCH_DISTANCE; i++)
        firsts = prefetch_ahead(updater, batch, entries, count, i, firsts);
    for (size_t i = 0; i < count; i++) {
        firsts = prefetch_ahead(updater, batch, entries, count,
                                i + PREFETCH_STAGES * PREFETCH_DISTANCE, firsts);
        struct shard *shard = updater->owners[shard_of_flow(entries[i].hash)];
        if (!LIKELY(shard == worker->shard))
            worker_enter(worker, shard);
        process_packet(analysis, worker, entries[i]);
    }
}

/* Ends the flows and datagrams of some shards that were silent for too long at a mark. */
static void reach_mark(struct analysis *analysis, struct worker *worker, struct shard *shards,
                       size_t count, const struct mark *mark) {
    uint64_t at = (analysis->packets + mark->count) << ORDER_BITS;
    shards_expire(worker, shards, count, mark->now_ns, at - (UINT64_C(1) << ORDER_BITS));
}

/* Processes entries of some shards in the order of the file. Flows expire at every mark instead of
 * once per batch: their memory and their places should be free before the next packets need them,
 * and a late fragment must not find a datagram that is over. */
static void process_in_order(struct analysis *analysis, struct worker *worker, struct shard *shards,
                             size_t shard_count, const struct batch_entry *entries, size_t count) {
    const struct batch *batch = analysis->batch;
    bool timed = analysis->timed;
    worker->now_ns = analysis->now_ns;
    worker->shard = NULL; /* another worker may have entered it since */
    for (size_t i = 0; i < batch->mark_count; i++) {
        const struct mark *mark = &batch->marks[i];
        size_t here = 0;
        for (size_t s = 0; mark->timed && !timed && s < shard_count; s++)
            flow_table_expired(shards[s].flows, mark->now_ns, flow_due_ns); /* sets the clock */
        timed |= mark->timed;
        while (here < count && (entries[here].packet & ~ENTRY_QUOTED) < mark->count)
            here++;
        process_packets(analysis, worker, entries, here);
        reach_mark(analysis, worker, shards, shard_count, mark);
        entries += here;
        count -= here;
    }
}

/* The clock is that of the first mark with a time, as it would be in file order. Marks in between
 * are skipped: the flows expire after the last one. */
static void process_by_flow(struct analysis *analysis, struct worker *worker, struct shard *shard,
                            const struct batch_entry *entries, size_t count) {
    const struct batch *batch = analysis->batch;
    for (size_t i = 0; i < batch->mark_count && !analysis->timed; i++)
        if (batch->marks[i].timed) {
            flow_table_expired(shard->flows, batch->marks[i].now_ns, flow_due_ns);
            break;
        }
    worker_enter(worker, shard);
    worker->now_ns = analysis->now_ns;
    process_packets(analysis, worker, entries, count);
    reach_mark(analysis, worker, shard, 1, &batch->marks[batch->mark_count - 1]);
}

/* A reader_task: the parts are shards. */
static void process_shard(void *context, unsigned worker, uint32_t part) {
    struct analysis *analysis = context;
    const struct batch *batch = analysis->batch;
    struct updater *updater = &analysis->updater;
    unsigned shift = SHARD_BITS - updater->numbers.shard_bits;
    uint32_t first = batch->parts[part << shift];
    const struct batch_entry *entries = batch->by_flow + first;
    size_t count = batch->parts[(part + 1) << shift] - first;
    if (analysis->by_flow)
        process_by_flow(analysis, &updater->workers[worker], &updater->shards[part], entries,
                        count);
    else
        process_in_order(analysis, &updater->workers[worker], &updater->shards[part], 1, entries,
                         count);
}

/* Notes what the other workers wrote and hold; returns the rows of a table, of all workers. */
static uint64_t sum_rows(struct updater *updater, enum table_number number) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < updater->worker_count; i++)
        sum += row_sink_own(&updater->workers[i].sink, number);
    for (unsigned i = 0; i < updater->worker_count; i++) {
        struct row_sink *sink = &updater->workers[i].sink;
        sink->elsewhere[number] = sum - row_sink_own(sink, number);
    }
    return sum;
}

/* Returns whether flows that hold first bytes may become too many, if `more` are added. */
static bool is_near_first_bytes(struct updater *updater, uint64_t more) {
    int64_t holding = 0;
    for (unsigned i = 0; i < updater->worker_count; i++)
        holding += updater->workers[i].holding_first_bytes;
    for (unsigned i = 0; i < updater->worker_count; i++) {
        struct worker *worker = &updater->workers[i];
        worker->holding_elsewhere = holding - worker->holding_first_bytes;
    }
    return holding + (int64_t)more > FIRST_BYTES_FLOWS;
}

bool is_near_limit(struct analysis *analysis, const struct batch *batch) {
    struct updater *updater = &analysis->updater;
    uint64_t packets = batch ? batch->count : 0, selected = batch ? batch->selected_count : 0;
    uint64_t fragments = batch ? batch->header_count : 0;
    uint64_t live = live_flows(updater), most = EVENTS_PER_PACKET * (packets + live);
    bool near = sum_rows(updater, TABLE_events) + most > MAX_EVENTS;
    near |= sum_rows(updater, TABLE_blocks) + most > MAX_BLOCK_ROWS;
    near |= sum_rows(updater, TABLE_exchanges) + most > MAX_EXCHANGE_ROWS / 2;
    near |= is_near_first_bytes(updater, selected);
    return near || live + packets > analysis->options.max_flows ||
           kept_datagrams(updater) + fragments > DATAGRAMS_MOST ||
           updater->pool_memory.left < MEMORY_SPARE + packets * PACKET_MEMORY;
}

static void process_flows(struct analysis *analysis, struct batch *batch) {
    struct updater *updater = &analysis->updater;
    uint32_t shards = 1u << updater->numbers.shard_bits;
    bool near = is_near_limit(analysis, batch);
    analysis->totals.near_limit |= near;
    updater->serial = near || analysis->mode.packets.kind != PACKETS_NONE;
    updater->eviction.current &= updater->serial;
    analysis->by_flow = !updater->serial && !batch->header_count && !kept_datagrams(updater);
    if (updater->serial || (shards == 1 && !analysis->by_flow)) {
        process_in_order(analysis, &updater->workers[0], updater->shards, shards, batch->in_order,
                         batch->entries);
    } else {
        batch_sort(batch, analysis->by_flow);
        reader_run(analysis->reader, process_shard, analysis, shards);
    }
}

/* The allowances may be changed from this thread. */
void process_batch(struct analysis *analysis, struct batch *batch) {
    struct updater *updater = &analysis->updater;
    analysis->batch = batch;
    for (unsigned i = 0; i < updater->worker_count; i++)
        allowance_return_unused(&updater->workers[i].allowance);
    if (!analysis->mode.interfaces_only)
        process_flows(analysis, batch);
    analysis->timed = batch->marks[batch->mark_count - 1].timed;
    analysis->now_ns = batch->marks[batch->mark_count - 1].now_ns;
    analysis->totals.bytes_read = batch->marks[batch->mark_count - 1].bytes_read;
    analysis->totals.packets += batch->count;
    analysis->packets += batch->count + 1;
    updater->workers[0].sink.out_of_memory |= batch->out_of_memory || !flow_numbers_add(updater);
    for (unsigned i = 1; i < updater->worker_count; i++)
        updater->workers[0].sink.out_of_memory |= updater->workers[i].sink.out_of_memory;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Returns why a flow ended that is live at the end of the capture. Its silence decides, and not
 * when the table was swept. */
static enum word end_of_live_flow(struct analysis *analysis, const struct flow *flow) {
    int64_t due_ns = flow_due_ns(flow);
    if (analysis->timed && due_ns <= analysis->now_ns)
        return WORD_IDLE;
    return WORD_END_OF_CAPTURE;
}

/* Ends a flow at the end of the capture. */
static void end_flow(struct analysis *analysis, struct worker *worker, struct flow *flow) {
    worker_enter(worker, analysis->updater.owners[shard_of_flow(flow->hash)]);
    worker->sink.at = (analysis->packets + 1) << ORDER_BITS;
    worker->sink.minor = flow_first(&analysis->updater, flow);
    worker->now_ns = analysis->now_ns;
    flow_finish(worker, flow, end_of_live_flow(analysis, flow));
}

/* A reader_task: the parts are units of the memory of flows, which is released as they are done.
 * Several workers may add rows of flows of one shard, because their groups were reserved. */
static void end_flows_of_unit(void *context, unsigned worker, uint32_t part) {
    struct analysis *analysis = context;
    uint32_t place = 0;
    for (struct flow *flow; (flow = flow_memory_drain(analysis->updater.memory, part, &place));)
        end_flow(analysis, &analysis->updater.workers[worker], flow);
}

static int compare_first(const void *left, const void *right) {
    const struct eviction_candidate *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Ends the flows in the order in which they began, because rows may be dropped at a limit. Returns
 * false without memory. */
static bool end_flows_in_order(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    size_t count = 0, live = live_flows(updater);
    struct eviction_candidate *list = malloc((live + 1) * sizeof *list);
    uint32_t place = 0;
    bool done = list && flow_memory_begin_end(updater->memory);
    for (struct flow *flow; done && (flow = flow_memory_next(updater->memory, &place));)
        list[count++] = (struct eviction_candidate){
            .first = flow_first(updater, flow), .flow = flow, .number = place - 1};
    if (done)
        qsort(list, count, sizeof *list, compare_first);
    for (size_t i = 0; i < count; i++) {
        end_flow(analysis, &updater->workers[0], list[i].flow);
        flow_memory_end(updater->memory, list[i].number);
    }
    free(list);
    return done;
}

/* Datagrams end before flows, because they add to the counts of live flows. */
static void end_all_datagrams(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    struct worker *worker = &updater->workers[0];
    size_t count = (size_t)1 << updater->numbers.shard_bits;
    worker->sweep = analysis->packets << ORDER_BITS;
    worker->now_ns = analysis->now_ns;
    worker->at_end = true;
    end_datagrams(worker, updater->shards, count, false, NULL);
    end_datagrams(worker, updater->shards, count, true, NULL);
    for (size_t i = 0; i < count; i++) {
        struct shard *shard = &updater->shards[i];
        if (shard->datagrams)
            reassembly_close(shard->datagrams);
        shard->datagrams = NULL; /* several workers may enter the shard from now on */
    }
    worker->sweep = worker->sink.minor = 0;
}

/* Returns false without memory. */
static bool reserve_groups(struct updater *updater) {
    bool done = true;
    for (unsigned i = 0; i < 1u << updater->numbers.shard_bits; i++)
        for (unsigned t = 0; done && t < TABLE_COUNT; t++)
            if (updater->workers[0].sink.tables[t].grouped)
                done = table_groups_reserve(&updater->shards[i].groups[t],
                                            updater->shards[i].flow_count);
    return done;
}

/* Returns false without memory. */
static bool end_flows(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    if (analysis->mode.shard && analysis->timed) /* packets of others may have advanced it */
        analysis->now_ns = max64(analysis->now_ns, analysis->mode.clock_ns);
    end_all_datagrams(analysis); /* more flows may begin */
    if (!flow_numbers_add(updater))
        return false;
    if (is_near_limit(analysis, NULL))
        return end_flows_in_order(analysis);
    if (!reserve_groups(updater))
        return false;
    updater->ending = true;
    if (analysis->reader && analysis->mode.packets.kind == PACKETS_NONE)
        reader_run(analysis->reader, end_flows_of_unit, analysis,
                   flow_memory_units(updater->memory));
    else
        for (uint32_t i = 0; i < flow_memory_units(updater->memory); i++)
            end_flows_of_unit(analysis, 0, i);
    return true;
}

/* Makes one set of tables of those of the workers, in that of the first. Returns false without
 * memory. */
static bool join_rows(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    struct worker *first = &updater->workers[0];
    bool done = true;
    capture_ports_join(updater->ports, first->pairs);
    for (unsigned i = 1; i < updater->worker_count; i++) {
        struct worker *worker = &updater->workers[i];
        done = done && row_sink_join(&first->sink, &worker->sink);
        capture_ports_join(updater->ports, worker->pairs);
        for (size_t k = 0; k < worker->mirrored_room; k++)
            if (worker->mirrored[k])
                count_mirrored(first, (uint32_t)k, worker->mirrored[k]);
    }
    done = done && row_sink_join(&first->sink, &analysis->local_rows);
    return done && flow_numbers_order(&first->sink, updater);
}

void complete_rows(struct analysis *analysis) {
    struct updater *updater = &analysis->updater;
    struct worker *first = &updater->workers[0];
    if (analysis->input.local)
        local_finish(analysis->input.local, &first->sink, interface_last_ns,
                     &analysis->input.counts);
    first->sink.out_of_memory |= !join_rows(analysis);
    interface_rows_add(&first->sink, analysis->input.files, &analysis->input.counts,
                       &(struct interface_duplicates){first->mirrored, first->mirrored_room,
                                                      updater->ports, analysis->mode.shard},
                       !analysis->mode.interfaces_only);
}

/* Returns the least number of an interface in the rows of a table, or `least` if that is less. */
static uint32_t least_interface(const struct table *table, uint32_t least) {
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(table, &cursor, &row))
        for (size_t w = 0; w < sizeof row.known / sizeof *row.known; w++)
            for (uint64_t set = row.known[w] & table->interface_columns[w]; set; set &= set - 1) {
                int64_t number = row.value[w * 64 + (size_t)__builtin_ctzll(set)];
                least = number < least ? (uint32_t)number : least;
            }
    return least;
}

void number_interfaces(const struct merged_input *input, uint32_t first, struct row_sink *rows,
                       struct interface_range *range) {
    range->first = range->least = first;
    range->end = (uint32_t)merged_input_interfaces(input)->count;
    if (!first)
        return;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        if (!is_after_pass(i) && table_find_interfaces(&rows->tables[i]))
            range->least = least_interface(&rows->tables[i], range->least);
    interface_rows_add_before(rows, input, range->least, first);
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        if (!is_after_pass(i))
            rows->tables[i].interfaces = range;
}

/* Rows of flows that end now stay in memory, in which there was more of their state: they end in
 * any order, in which files would cost their readers time. */
void finish_flows(struct analysis *analysis) {
    for (unsigned i = 0; i < analysis->updater.worker_count; i++)
        row_sink_stay(&analysis->updater.workers[i].sink);
    bool done = end_flows(analysis);
    reader_close(analysis->reader);
    analysis->reader = NULL;
    complete_rows(analysis);
    rows_of(analysis)->out_of_memory |= !done;
}
