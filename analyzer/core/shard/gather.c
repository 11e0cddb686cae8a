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
#include "pipeline/interface_counts.h"
#include "rows/rows.h"
#include "shard/row_file.h"

#define MEMORY_ROOM (UINT64_C(512) << 20) /* MEMORY_LIMIT of an analysis */

/* Where a row comes in the order of one run. */
struct entry {
    int64_t key;
    uint64_t frame;
    uint64_t index; /* of the row in its shard */
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
    uint32_t interface_count;
    struct row_rules rules[TABLE_COUNT];
    uint64_t flow_count;
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

static bool fail_file(struct gatherer *g, size_t file) {
    return fail_shard(g, g->input->shard_count + file);
}

/* --- order ------------------------------------------------------------------------------------ */

/* Returns the time at which one run takes a frame. */
static int64_t merge_time(const struct gathered_file *file, uint64_t frame, int64_t time_ns) {
    size_t low = 0, high = file->span_count;
    struct merge_span span;
    while (low < high) {
        size_t middle = (low + high) / 2;
        memcpy(&span, file->spans + middle * sizeof span, sizeof span);
        if (span.last < frame)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == file->span_count)
        return time_ns;
    memcpy(&span, file->spans + low * sizeof span, sizeof span);
    return span.first <= frame ? span.merge_ns : time_ns;
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
        if (number == TABLE_flows || position->frame >= g->shards[entry->shard].flows)
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
    if (!(entries = calloc(*count + 1, sizeof *entries))) {
        fail_memory(g);
        return NULL;
    }
    uint64_t n = 0;
    for (size_t s = 0; s < g->input->shard_count; s++)
        for (uint64_t i = 0; i < g->shards[s].tables[number].rows; i++, n++) {
            struct position position;
            memcpy(&position, g->shards[s].tables[number].positions + i * sizeof position,
                   sizeof position);
            entries[n] = (struct entry){.shard = (uint16_t)s, .index = i};
            if (!set_place(g, &entries[n], number, &position)) {
                fail_shard(g, s);
                free(entries);
                return NULL;
            }
        }
    qsort(entries, *count, sizeof *entries, compare_entries);
    return entries;
}

/* Numbers the flows of all shards. */
static bool number_flows(struct gatherer *g) {
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct shard_rows *rows = &g->shards[s];
        if (rows->flows != rows->tables[TABLE_flows].rows ||
            rows->flows > rows->tables[TABLE_directions].rows ||
            rows->tables[TABLE_directions].rows != 2 * rows->flows)
            return fail_shard(g, s);
        if (!(g->flows[s] = calloc(g->shards[s].flows + 1, sizeof *g->flows[s])))
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

/* Replaces the number of the flow by that of one run. */
static bool renumber(const struct gatherer *g, size_t shard, struct row *row, unsigned column) {
    if (!row_known(row, column))
        return true;
    uint64_t flow = (uint64_t)row->value[column];
    if (flow >= g->shards[shard].flows)
        return false;
    row->value[column] = g->flows[shard][flow];
    return true;
}

/* Reads a row of a shard, which must be one that an analysis could have written. */
static bool take_row(struct gatherer *g, enum table_number number, size_t shard, const uint8_t **p,
                     struct row *row) {
    if (!row_read(g->sink, number, p, g->shards[shard].tables[number].end, row))
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

/* Adds the rows of a table that is grouped by flow. */
static bool add_groups(struct gatherer *g, enum table_number number, size_t shard) {
    const struct table_bytes *from = &g->shards[shard].tables[number];
    struct table *table = &g->sink->tables[number];
    const uint8_t *p = from->start;
    int64_t before = -1; /* flow of the row before, in the shard */
    for (uint64_t i = 0; i < from->rows; i++) {
        struct row row;
        if (!take_row(g, number, shard, &p, &row))
            return false;
        int64_t flow = row.value[0];
        if (!is_ordered(number, i, &row, before) || !renumber(g, shard, &row, 0))
            return fail_shard(g, shard);
        if (flow != before && !table_begin_group(table, (uint32_t)row.value[0]))
            return fail_memory(g);
        before = flow;
        if (!table_add(table, &row))
            return fail_memory(g);
    }
    return true;
}

/* Adds the rows of a table that is sorted at the end, by row_sink_sort(). */
static bool add_rows(struct gatherer *g, enum table_number number, size_t shard) {
    const struct table_bytes *from = &g->shards[shard].tables[number];
    unsigned column = number == TABLE_datagrams ? datagrams_flow : queries_flow;
    const uint8_t *p = from->start;
    for (uint64_t i = 0; i < from->rows; i++) {
        struct row row;
        if (!take_row(g, number, shard, &p, &row))
            return false;
        if (!renumber(g, shard, &row, column))
            return fail_shard(g, shard);
        if (!table_add(&g->sink->tables[number], &row))
            return fail_memory(g);
    }
    return true;
}

/* Finds where each row of a shard begins; the list has one more element than rows. */
static const uint8_t **find_rows(struct gatherer *g, enum table_number number, size_t shard) {
    const struct table_bytes *from = &g->shards[shard].tables[number];
    const uint8_t **places = calloc(from->rows + 1, sizeof *places), *p = from->start;
    if (!places) {
        fail_memory(g);
        return NULL;
    }
    for (uint64_t i = 0; i < from->rows; i++) {
        places[i] = p;
        if (!row_skip(number, &p, from->end)) {
            fail_shard(g, shard);
            free(places);
            return NULL;
        }
    }
    return places;
}

static void free_places(const struct gatherer *g, const uint8_t ***places) {
    for (size_t s = 0; places && s < g->input->shard_count; s++)
        free(places[s]);
    free(places);
}

static const uint8_t ***find_all_rows(struct gatherer *g, enum table_number number) {
    const uint8_t ***places = calloc(g->input->shard_count, sizeof *places);
    bool done = places || fail_memory(g);
    for (size_t s = 0; done && s < g->input->shard_count; s++)
        done = (places[s] = find_rows(g, number, s)) != NULL;
    if (done)
        return places;
    free_places(g, places);
    return NULL;
}

static bool add_sorted(struct gatherer *g, enum table_number number, const struct entry *entries,
                       uint64_t count, const uint8_t ***places) {
    for (uint64_t i = 0; i < count; i++) {
        size_t shard = entries[i].shard;
        const uint8_t *p = places[shard][entries[i].index];
        struct row row;
        if (!take_row(g, number, shard, &p, &row))
            return false;
        if (!renumber(g, shard, &row, events_flow))
            return fail_shard(g, shard);
        if (!table_add(&g->sink->tables[number], &row))
            return fail_memory(g);
    }
    return true;
}

/* Of an ICMP error, the packet itself and its quotation may be in two shards. */
static bool mark_errors(struct gatherer *g, struct entry *entries, uint64_t count,
                        const uint8_t ***places) {
    struct row_sink scratch = {0};
    bool done = true;
    for (uint64_t i = 0; done && i < count; i++) {
        size_t shard = entries[i].shard;
        const uint8_t *p = places[shard][entries[i].index];
        struct row row;
        done =
            row_read(&scratch, TABLE_events, &p, g->shards[shard].tables[TABLE_events].end, &row) ||
            (scratch.out_of_memory ? fail_memory(g) : fail_shard(g, shard));
        entries[i].after = done && row.value[events_kind] == WORD_ICMP_ERROR;
    }
    string_table_free(&scratch.texts);
    return done;
}

/* Adds the rows of a table whose rows have positions. */
static bool add_table(struct gatherer *g, enum table_number number) {
    uint64_t count;
    struct entry *entries = sort_entries(g, number, &count);
    const uint8_t ***places = entries ? find_all_rows(g, number) : NULL;
    bool done = places != NULL;
    if (done && number == TABLE_events && (done = mark_errors(g, entries, count, places)))
        qsort(entries, count, sizeof *entries, compare_entries);
    done = done && add_sorted(g, number, entries, count, places);
    free_places(g, places);
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

/* Adds the interfaces of all files, with the duplicates that all shards found. */
static bool add_interfaces(struct gatherer *g) {
    struct capture_ports *ports = capture_ports_open();
    uint64_t *mirrored = calloc(g->interface_count + 1, sizeof *mirrored);
    bool done = ports && mirrored ? merge_ports(g, ports, mirrored) : fail_memory(g);
    struct interface_duplicates duplicates = {mirrored, g->interface_count, ports};
    uint32_t number = 0;
    for (size_t f = 0; done && f < g->input->file_count; f++) {
        struct table_bytes table;
        interface_rows_read(&table, g->input->files[f].rows, g->input->files[f].rows_size);
        const uint8_t *p = table.start; /* which list_files() has checked */
        for (uint64_t i = 0; done && i < table.rows; i++, number++) {
            struct row row;
            done = row_read(g->sink, TABLE_interfaces, &p, table.end, &row) ||
                   (g->sink->out_of_memory ? fail_memory(g) : fail_file(g, f));
            done = done && (row_is_valid(&g->rules[TABLE_interfaces], &row) || fail_file(g, f));
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
    uint64_t count = 0, n = 0;
    struct table_bytes table;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t f = 0; f < g->input->file_count; f++) {
            if (!interface_rows_read(&table, g->input->files[f].rows, g->input->files[f].rows_size))
                return fail_file(g, f);
            for (uint64_t i = 0; pass && i < table.rows; i++)
                g->file_of[n++] = (uint32_t)f;
            count += pass ? 0 : table.rows;
        }
        if (!pass && (count > UINT32_MAX || !(g->file_of = calloc(count + 1, sizeof *g->file_of))))
            return fail_memory(g);
    }
    g->interface_count = (uint32_t)count;
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        row_rules_make(&g->rules[t], t, g->interface_count);
    return true;
}

static void add_sums(struct traffic_sum *to, const struct traffic_sum *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i].packets += from[i].packets;
        to[i].wire_bytes += from[i].wire_bytes;
    }
}

static void sum_totals(struct gatherer *g, struct shard_rows *sum) {
    struct analysis_totals *totals = g->totals;
    for (size_t s = 0; s < g->input->shard_count; s++) {
        const struct shard_rows *rows = &g->shards[s];
        for (size_t i = 0; i < sizeof sum->lost / sizeof *sum->lost; i++)
            sum->lost[i] += rows->lost[i];
        for (unsigned i = 0; i < PEAKS; i++)
            sum->peaks[i] += rows->peaks[i];
        sum->turns_dropped += rows->turns_dropped;
        sum->initial_flows += rows->initial_flows;
        sum->selections += rows->selections;
        sum->missing += rows->missing;
        sum->uncertain += rows->uncertain;
        for (unsigned t = 0; t < TABLE_COUNT; t++)
            sum->tables[t].rows += rows->tables[t].rows;
        add_sums((struct traffic_sum *)&totals->judged, (const struct traffic_sum *)&rows->judged,
                 sizeof rows->judged / sizeof(struct traffic_sum));
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
    totals->turns_dropped = sum->turns_dropped;
    totals->events_dropped = sum->lost[2];
}

/* Limits are those of one run over all packets: if it might have reached one, its rows would depend
 * on packets of other shards. Events above the bound of a flow are left out alike. */
static bool check_limits(struct gatherer *g) {
    struct shard_rows sum = {0};
    sum_totals(g, &sum);
    const struct { /* "or fewer": shards may have their peaks at different times */
        const char *name;
        uint64_t count, most;
    } limits[] = {
        {"evicted flows", sum.lost[0], 0},
        {"evicted datagrams", sum.lost[1], 0},
        {"blocks above the limit", sum.lost[3], 0},
        {"questions above the limit", sum.lost[4], 0},
        {"open flows or fewer (--max-flows)", sum.peaks[PEAK_FLOWS], g->input->flows_most},
        {"datagrams or fewer in reassembly", sum.peaks[PEAK_DATAGRAMS], DATAGRAMS_MOST},
        {"flows or fewer with first bytes", sum.peaks[PEAK_FIRST_BYTES], FIRST_BYTES_FLOWS},
        {"bytes or fewer of memory of open flows", sum.peaks[PEAK_MEMORY], MEMORY_ROOM},
        {"flows with QUIC Initials", sum.initial_flows, FIRST_BYTES_FLOWS},
        {"connections whose first bytes are selected", sum.selections, SELECTIONS_MOST},
        {"events", sum.tables[TABLE_events].rows, MAX_EVENTS},
        {"blocks", sum.tables[TABLE_blocks].rows, MAX_BLOCK_ROWS},
        {"questions", sum.tables[TABLE_queries].rows, MAX_QUERY_ROWS},
        {"turns", sum.tables[TABLE_turns].rows, MAX_TURN_ROWS},
        {"segments whose payload was left out", sum.missing, 0},
        {"flows whose end depends on times that step back", sum.uncertain, 0},
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
    static const enum table_number grouped[] = {TABLE_flows, TABLE_directions, TABLE_series,
                                                TABLE_turns, TABLE_handshakes, TABLE_requests};
    static const enum table_number sorted[] = {TABLE_events, TABLE_blocks};
    for (size_t i = 0; i < sizeof grouped / sizeof *grouped; i++)
        for (size_t s = 0; s < g->input->shard_count; s++)
            if (!add_groups(g, grouped[i], s))
                return false;
    for (size_t s = 0; s < g->input->shard_count; s++)
        if (!add_rows(g, TABLE_queries, s) || !add_rows(g, TABLE_datagrams, s))
            return false;
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        if (!add_table(g, sorted[i]))
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
