/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the rows of each table. The first sorts: an entry for each flow, and for each row
 * of the tables that are not grouped by flow. The second adds the rows. Groups of flows may be
 * added in any order, so their rows are not sorted.
 *
 * The order of packets is that of merged_input.h: by the latest time of their file so far, then by
 * file, then by frame. That time is the packet's own except in the spans of the file. Rows that
 * were written when flows ended come last, by the number of their flow. */
#include "shard/gather.h"

#include <stdlib.h>
#include <string.h>

#include "application/application.h"
#include "base/bytes.h"
#include "local/local.h"
#include "pipeline/interface_counts.h"
#include "rows/rows.h"
#include "shard/row_file.h"

#define MEMORY_ROOM (UINT64_C(512) << 20) /* MEMORY_LIMIT of an analysis */

/* Where a row comes in the order of one run. */
struct entry {
    int64_t key;
    uint64_t frame;
    uint64_t index; /* of the row in its shard */
    const uint8_t *row;
    uint32_t file;
    uint16_t shard;
    uint8_t stage; /* packets, then flows that were silent, then the end of the capture: datagrams,
                      flows */
    uint8_t after; /* the row of an ICMP error follows those of the packet itself */
};

struct gatherer {
    const struct gather_input *input;
    struct shard_rows *shards;
    uint32_t **flows;  /* by shard and number there: the number in one run */
    uint32_t *file_of; /* by interface */
    size_t interface_count, interface_room;
    struct row_rules rules[TABLE_COUNT];
    uint64_t flow_count;
    uint64_t local_pairs, local_rows, neighbors, announcers, groups; /* of all files */
    struct analysis *analysis;
    struct analysis_totals *totals; /* of it */
    struct row_sink *sink;
    struct error *error;
    size_t *bad;
};

static bool fail_memory(struct gatherer *g) {
    return error_set(g->error, ERROR_MEMORY, "out of memory while the rows were gathered");
}

static bool fail_shard(struct gatherer *g, size_t shard) {
    *g->bad = shard;
    return error_set(g->error, ERROR_UNREADABLE,
                     "damaged, or written by another version of wiretale");
}

/* --- order ------------------------------------------------------------------------------------ */

static uint64_t flows_of(const struct gatherer *g, size_t shard) {
    return g->shards[shard].counts[COUNT_FLOWS];
}

static int compare_frame(const void *key, const void *member) {
    uint64_t frame = *(const uint64_t *)key;
    struct merge_span span;
    memcpy(&span, member, sizeof span);
    return frame < span.first ? -1 : frame > span.last;
}

/* Returns the time at which one run takes a frame. */
static int64_t merge_time(const struct gathered_file *file, uint64_t frame, int64_t time_ns) {
    struct merge_span span = {.merge_ns = time_ns};
    const void *found = file->span_count ? bsearch(&frame, file->spans, file->span_count,
                                                   sizeof span, compare_frame)
                                         : NULL;
    if (found)
        memcpy(&span, found, sizeof span);
    return span.merge_ns;
}

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
#define COMPARE(field)                                                                             \
    if (a->field != b->field)                                                                      \
        return a->field < b->field ? -1 : 1;
    COMPARE(stage)
    COMPARE(key)
    COMPARE(file)
    COMPARE(frame)
    COMPARE(after)
    COMPARE(shard)
    COMPARE(index)
#undef COMPARE
    return 0;
}

/* Returns false if the position has an interface or a flow that does not exist. */
static bool set_place(const struct gatherer *g, struct entry *entry, enum table_number number,
                      const struct position *position) {
    if (position->kind == POSITION_EXPIRED || position->kind == POSITION_ENDED) {
        if (number == TABLE_flows || position->frame >= flows_of(g, entry->shard))
            return false;
        entry->stage = position->kind == POSITION_ENDED ? 3 : 1;
        entry->key = g->flows[entry->shard][position->frame];
        return true;
    }
    if (position->capture >= g->interface_count)
        return false;
    entry->file = g->file_of[position->capture];
    entry->frame = position->frame;
    entry->key = merge_time(&g->input->files[entry->file], position->frame, position->time_ns);
    entry->stage = position->kind == POSITION_DATAGRAM ? 2 : 0;
    return true;
}

/* Sets the entries of a shard's rows. Of an ICMP error, the packet itself and its quotation may be
 * in two shards. Rows of flows are not read yet. */
static bool list_entries(struct gatherer *g, enum table_number number, size_t shard,
                         struct entry *entries) {
    const struct table_bytes *table = &g->shards[shard].tables[number];
    const uint8_t *p = table->start;
    struct row_sink scratch = {0};
    bool done = true;
    for (uint64_t i = 0; done && i < table->rows; i++) {
        struct position position;
        struct row row;
        memcpy(&position, table->positions + i * sizeof position, sizeof position);
        entries[i] = (struct entry){.shard = (uint16_t)shard, .index = i, .row = p};
        done = set_place(g, &entries[i], number, &position) || fail_shard(g, shard);
        if (!done || number == TABLE_flows)
            continue;
        done = row_read(&scratch, number, &p, table->end, &row) ||
               (scratch.out_of_memory ? fail_memory(g) : fail_shard(g, shard));
        entries[i].after = done && number == TABLE_events && row_known(&row, events_kind) &&
                           row.value[events_kind] == WORD_ICMP_ERROR;
    }
    string_table_free(&scratch.texts);
    return done;
}

/* Returns the sorted entries of a table over all shards, as many as `*count`; NULL with the error
 * set. */
static struct entry *sort_entries(struct gatherer *g, enum table_number number, uint64_t *count) {
    struct entry *entries;
    *count = 0;
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct table_bytes *table = &g->shards[s].tables[number];
        if (table->position_count != table->rows) {
            fail_shard(g, s);
            return NULL;
        }
        *count += table->rows;
    }
    entries = calloc(*count + 1, sizeof *entries);
    bool done = entries || fail_memory(g);
    uint64_t n = 0;
    for (size_t s = 0; done && s < g->input->shard_count; s++) {
        done = list_entries(g, number, s, entries + n);
        n += g->shards[s].tables[number].rows;
    }
    if (!done) {
        free(entries);
        return NULL;
    }
    qsort(entries, *count, sizeof *entries, compare_entries);
    return entries;
}

/* Numbers the flows of all shards. */
static bool number_flows(struct gatherer *g) {
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct shard_rows *rows = &g->shards[s];
        uint64_t flows = rows->tables[TABLE_flows].rows;
        if (rows->counts[COUNT_FLOWS] != flows || flows > rows->tables[TABLE_directions].rows ||
            rows->tables[TABLE_directions].rows != 2 * flows)
            return fail_shard(g, s);
        if (!(g->flows[s] = calloc(flows + 1, sizeof *g->flows[s])))
            return fail_memory(g);
    }
    struct entry *entries = sort_entries(g, TABLE_flows, &g->flow_count);
    for (uint64_t i = 0; entries && i < g->flow_count; i++)
        g->flows[entries[i].shard][entries[i].index] = (uint32_t)i;
    free(entries);
    return entries && g->flow_count <= UINT32_MAX
               ? true
               : entries && error_set(g->error, ERROR_USAGE, "more than 4,294,967,295 flows");
}

/* --- rows ------------------------------------------------------------------------------------- */

_Static_assert(flows_flow == 0 && directions_flow == 0 && series_flow == 0 && waits_flow == 0 &&
                   handshakes_flow == 0 && events_flow == 0 && blocks_flow == 0 &&
                   exchanges_flow == 0 && datagrams_flow == 0,
               "the flow is the first column");

/* Replaces the number of the flow by that of one run. */
static bool renumber(const struct gatherer *g, size_t shard, struct row *row) {
    if (!row_known(row, 0))
        return true;
    uint64_t flow = (uint64_t)row->value[0];
    if (flow >= flows_of(g, shard))
        return false;
    row->value[0] = g->flows[shard][flow];
    return true;
}

/* Reads a row of a shard, or of a file behind the shards, which must be one that an analysis could
 * have written. */
static bool take_row(struct gatherer *g, enum table_number number, size_t shard, const uint8_t **p,
                     const uint8_t *end, struct row *row) {
    if (!row_read(g->sink, number, p, end, row))
        return g->sink->out_of_memory ? fail_memory(g) : fail_shard(g, shard);
    return row_is_valid(&g->rules[number], row) || fail_shard(g, shard);
}

/* Returns whether a row may follow that of flow `before`: each flow has one row in the table of
 * flows, and one for each of its directions. */
static bool is_ordered(enum table_number number, uint64_t i, const struct row *row,
                       int64_t before) {
    int64_t flow = row->value[0];
    if (number == TABLE_flows)
        return flow == (int64_t)i;
    if (number == TABLE_directions)
        return flow == (int64_t)(i / 2) && row->value[directions_direction] == (int64_t)(i % 2);
    return flow >= before;
}

/* Adds the rows of a table that is grouped by flow, or sorted at the end by row_sink_sort(). */
static bool add_rows(struct gatherer *g, enum table_number number, size_t shard) {
    const struct table_bytes *from = &g->shards[shard].tables[number];
    struct table *table = &g->sink->tables[number];
    const uint8_t *p = from->start;
    int64_t before = -1; /* flow of the row before, in the shard */
    for (uint64_t i = 0; i < from->rows; i++) {
        struct row_order order = {.at = table->row_count};
        struct row row;
        if (!take_row(g, number, shard, &p, from->end, &row))
            return false;
        int64_t flow = row_known(&row, 0) ? row.value[0] : -1;
        if ((table->grouped && !is_ordered(number, i, &row, before)) || !renumber(g, shard, &row))
            return fail_shard(g, shard);
        if (table->grouped && flow != before && !table_begin_group(table, (uint32_t)row.value[0]))
            return fail_memory(g);
        before = flow;
        if (!(table->grouped ? table_add(table, &row) : table_add_ordered(table, &row, &order)))
            return fail_memory(g);
    }
    return true;
}

/* Adds the rows of a table whose rows have positions. */
static bool add_table(struct gatherer *g, enum table_number number) {
    uint64_t count;
    struct entry *entries = sort_entries(g, number, &count);
    bool done = entries;
    for (uint64_t i = 0; done && i < count; i++) {
        size_t shard = entries[i].shard;
        const uint8_t *p = entries[i].row;
        struct row row;
        done = take_row(g, number, shard, &p, g->shards[shard].tables[number].end, &row) &&
               (renumber(g, shard, &row) || fail_shard(g, shard)) &&
               (table_add(&g->sink->tables[number], &row) || fail_memory(g));
    }
    free(entries);
    return done;
}

/* --- interfaces and totals -------------------------------------------------------------------- */

static bool merge_ports(struct gatherer *g, struct capture_ports *ports, uint64_t *mirrored) {
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct shard_rows *rows = &g->shards[s];
        bool out_of_memory = false;
        if (!capture_ports_merge(ports, rows->ports, &out_of_memory))
            return out_of_memory ? fail_memory(g) : fail_shard(g, s);
        for (uint64_t i = 0; i < rows->mirrored_count; i++) {
            uint64_t count = load_le64(rows->mirrored + i * sizeof count);
            if (count && i >= g->interface_count)
                return fail_shard(g, s);
            if (count)
                mirrored[i] += count;
        }
    }
    return capture_ports_complete(ports) ||
           error_set(g->error, ERROR_USAGE,
                     "one run would not have counted all duplicates of mirror ports");
}

/* Adds the rows of a table of a file, the first of whose interfaces has this number. They are of no
 * flow. */
static bool add_file_rows(struct gatherer *g, size_t file, uint32_t first, enum table_number number,
                          const struct interface_tables *tables, const struct table_bytes *bytes,
                          unsigned capture) {
    size_t shard = g->input->shard_count + file;
    struct table *table = &g->sink->tables[number];
    const uint8_t *p = bytes->start;
    bool ordered = number == TABLE_exchanges;
    uint64_t count = tables->interfaces.rows;
    struct row_order order = {0};
    struct row row;
    for (uint64_t i = 0; i < bytes->rows; i++) {
        if (!take_row(g, number, shard, &p, bytes->end, &row))
            return false;
        if ((uint64_t)row.value[capture] >= count || (ordered && row_known(&row, exchanges_flow)))
            return fail_shard(g, shard);
        row_set(&row, capture, first + row.value[capture]);
        order.at = table->row_count;
        if (!(ordered ? table_add_ordered(table, &row, &order) : table_add(table, &row)))
            return fail_memory(g);
    }
    return true;
}

static bool add_tables_of_file(struct gatherer *g, size_t file, uint32_t first,
                               const struct interface_tables *tables) {
    return add_file_rows(g, file, first, TABLE_decode_stops, tables, &tables->decode_stops,
                         decode_stops_capture) &&
           add_file_rows(g, file, first, TABLE_neighbors, tables, &tables->neighbors,
                         neighbors_capture) &&
           add_file_rows(g, file, first, TABLE_announcers, tables, &tables->announcers,
                         announcers_capture) &&
           add_file_rows(g, file, first, TABLE_groups, tables, &tables->groups, groups_capture) &&
           add_file_rows(g, file, first, TABLE_exchanges, tables, &tables->exchanges,
                         exchanges_capture);
}

/* Adds the interfaces of all files, with the duplicates that all shards found. */
static bool add_interfaces(struct gatherer *g) {
    struct capture_ports *ports = capture_ports_open();
    uint64_t *mirrored = calloc(g->interface_count + 1, sizeof *mirrored);
    bool done = ports && mirrored ? merge_ports(g, ports, mirrored) : fail_memory(g);
    struct interface_duplicates duplicates = {mirrored, g->interface_count, ports};
    uint32_t number = 0;
    for (size_t f = 0; done && f < g->input->file_count; f++) {
        struct interface_tables tables;
        interface_rows_read(&tables, g->input->files[f].rows, g->input->files[f].rows_size);
        const struct table_bytes *table = &tables.interfaces; /* which list_files() has checked */
        const uint8_t *p = table->start;
        done = add_tables_of_file(g, f, number, &tables);
        for (uint64_t i = 0; done && i < table->rows; i++, number++) {
            struct row row;
            done = take_row(g, TABLE_interfaces, g->input->shard_count + f, &p, table->end, &row);
            if (!done)
                break;
            row_set(&row, interfaces_capture, number);
            interface_put_duplicates(g->sink, &row, number, &duplicates);
            add_row(g->sink, TABLE_interfaces, &row);
        }
    }
    capture_ports_close(ports);
    free(mirrored);
    return done;
}

/* Lists the file of each interface. */
static bool list_files(struct gatherer *g) {
    struct interface_tables tables;
    for (size_t f = 0; f < g->input->file_count; f++) {
        if (!interface_rows_read(&tables, g->input->files[f].rows, g->input->files[f].rows_size))
            return fail_shard(g, g->input->shard_count + f);
        size_t count = g->interface_count + tables.interfaces.rows;
        g->local_pairs += tables.local_pairs;
        g->local_rows += tables.exchanges.rows;
        g->neighbors += tables.neighbors.rows;
        g->announcers += tables.announcers.rows;
        g->groups += tables.groups.rows;
        if (count > UINT32_MAX ||
            !list_grow(&g->file_of, &g->interface_room, count, sizeof *g->file_of))
            return fail_memory(g);
        while (g->interface_count < count)
            g->file_of[g->interface_count++] = (uint32_t)f;
    }
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        row_rules_make(&g->rules[t], t, (uint32_t)g->interface_count);
    return true;
}

/* Sets the totals, and sums counts and rows of all shards. */
static void sum_totals(struct gatherer *g, uint64_t *counts, uint64_t *rows) {
    struct analysis_totals *totals = g->totals;
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct shard_rows *shard = &g->shards[s];
        for (unsigned i = 0; i < SHARD_COUNTS; i++)
            counts[i] += shard->counts[i];
        for (unsigned t = 0; t < TABLE_COUNT; t++)
            rows[t] += shard->tables[t].rows;
        judged_add(&totals->judged, &shard->judged);
    }
    totals->excluded = (struct excluded_packets){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    for (size_t f = 0; f < g->input->file_count; f++) {
        const struct gathered_file *file = &g->input->files[f];
        totals->packets += file->packets;
        totals->excluded.count += file->excluded.count;
        totals->excluded.first_ns = min64(totals->excluded.first_ns, file->excluded.first_ns);
        totals->excluded.last_ns = max64(totals->excluded.last_ns, file->excluded.last_ns);
        totals->filter_refused += file->refused;
    }
    totals->flows = g->flow_count;
    totals->exchanges_dropped = counts[COUNT_EXCHANGES_DROPPED];
    totals->events_dropped = counts[COUNT_EVENTS_DROPPED];
}

/* Limits are those of one run over all packets: if it might have reached one, its rows would depend
 * on packets of other shards. Events above the bound of a flow are left out alike. */
static bool check_limits(struct gatherer *g) {
    uint64_t sum[SHARD_COUNTS] = {0}, rows[TABLE_COUNT] = {0};
    sum_totals(g, sum, rows);
    const uint64_t *peaks = &sum[COUNT_PEAKS];
    const struct { /* "or fewer": shards may have their peaks at different times */
        const char *name;
        uint64_t count, most;
    } limits[] = {
        {"evicted flows", sum[COUNT_EVICTED_FLOWS], 0},
        {"evicted datagrams", sum[COUNT_EVICTED_DATAGRAMS], 0},
        {"blocks above the limit", sum[COUNT_BLOCKS_DROPPED], 0},
        {"open flows or fewer (--max-flows)", peaks[PEAK_FLOWS], g->input->max_flows},
        {"datagrams or fewer in reassembly", peaks[PEAK_DATAGRAMS], DATAGRAMS_MOST},
        {"flows or fewer with first bytes", peaks[PEAK_FIRST_BYTES], FIRST_BYTES_FLOWS},
        {"bytes or fewer of memory of open flows", peaks[PEAK_MEMORY], MEMORY_ROOM},
        {"connections whose first bytes are selected", sum[COUNT_SELECTIONS], SELECTIONS_MOST},
        {"events", rows[TABLE_events], MAX_EVENTS},
        {"blocks", rows[TABLE_blocks], MAX_BLOCK_ROWS},
        {"exchanges", rows[TABLE_exchanges], MAX_EXCHANGE_ROWS / 2},
        {"pairs of hosts that asked on the local network", g->local_pairs, LOCAL_OPEN_MOST},
        {"exchanges of the local network", g->local_rows, MAX_LOCAL_ROWS},
        {"addresses of the local network", g->neighbors, NEIGHBORS_MOST},
        {"routers and ports that announce themselves", g->announcers, ANNOUNCERS_MOST / 2},
        {"multicast groups", g->groups, GROUPS_MOST / 2},
        {"segments whose payload was left out", sum[COUNT_MISSING], 0},
        {"flows whose end depends on times that step back", sum[COUNT_UNCERTAIN], 0},
    };
    for (size_t i = 0; !g->input->inexact && i < sizeof limits / sizeof *limits; i++)
        if (limits[i].count > limits[i].most)
            return error_set(g->error, ERROR_USAGE,
                             "the rows may not be those of one run: %llu %s, expected at most "
                             "%llu (--inexact accepts such rows)",
                             (unsigned long long)limits[i].count, limits[i].name,
                             (unsigned long long)limits[i].most);
    return true;
}

/* --- all -------------------------------------------------------------------------------------- */

static bool add_all(struct gatherer *g) {
    static const enum table_number in_any_order[] = {
        TABLE_flows, TABLE_directions, TABLE_series,    TABLE_waits,    TABLE_endings,
        TABLE_loops, TABLE_handshakes, TABLE_exchanges, TABLE_datagrams};
    for (size_t i = 0; i < sizeof in_any_order / sizeof *in_any_order; i++)
        for (size_t s = 0; s < g->input->shard_count; s++)
            if (!add_rows(g, in_any_order[i], s))
                return false;
    if (!add_table(g, TABLE_events) || !add_table(g, TABLE_blocks))
        return false;
    return (!g->sink->out_of_memory && row_sink_sort(g->sink)) || fail_memory(g);
}

static bool run(struct gatherer *g) {
    if (!g->shards || !g->flows || !g->analysis)
        return fail_memory(g);
    for (size_t s = 0; s < g->input->shard_count; s++)
        if (!shard_rows_read(&g->shards[s], g->input->shards[s].rows,
                             g->input->shards[s].rows_size))
            return fail_shard(g, s);
    g->sink = analysis_sink(g->analysis);
    return list_files(g) && number_flows(g) && check_limits(g) && add_interfaces(g) && add_all(g);
}

struct analysis *gather(const struct gather_input *input, size_t *bad, struct error *error) {
    struct gatherer g = {.input = input,
                         .shards = calloc(input->shard_count, sizeof *g.shards),
                         .flows = calloc(input->shard_count, sizeof *g.flows),
                         .error = error,
                         .bad = bad};
    g.analysis = analysis_empty(&g.totals);
    *bad = SIZE_MAX;
    error->kind = ERROR_NONE;
    bool done = run(&g);
    for (size_t s = 0; g.flows && s < input->shard_count; s++)
        free(g.flows[s]);
    free(g.flows);
    free(g.shards);
    free(g.file_of);
    if (done)
        return g.analysis;
    analysis_close(g.analysis);
    return NULL;
}
