/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, joins and frees the tables of workers. */
#include "rows/row_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_grouped(enum table_number number) {
    return number == TABLE_flows || number == TABLE_directions || number == TABLE_series ||
           number == TABLE_handshakes || number == TABLE_waits || number == TABLE_endings ||
           number == TABLE_loops || number == TABLE_time_spans;
}

/* Tables whose rows are in the order of the packets that wrote them. */
static bool is_ordered(enum table_number number) {
    return number == TABLE_events || number == TABLE_blocks || number == TABLE_exchanges ||
           number == TABLE_datagrams;
}

_Static_assert(events_flow == 0 && blocks_flow == 0 && exchanges_flow == 0 && datagrams_flow == 0,
               "the flow is their first column");

void row_sink_open(struct row_sink *sink, unsigned part, bool packets_only) {
    *sink = (struct row_sink){.packets_only = packets_only};
    sink->texts.part = part;
    sink->texts.arenas[part].to_disk = true;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_init(&sink->tables[i], (enum table_number)i, &sink->texts, part,
                   is_grouped((enum table_number)i));
}

void row_sink_free(struct row_sink *sink) {
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_free(&sink->tables[i]);
    string_table_free(&sink->texts);
}

void row_sink_stay(struct row_sink *sink) {
    sink->texts.arenas[sink->texts.part].to_disk = false;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        sink->tables[i].own.rows.to_disk = false;
}

void row_sink_use_groups(struct row_sink *sink, struct table_groups groups[static TABLE_COUNT]) {
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        if (sink->tables[i].grouped)
            sink->tables[i].filled = &groups[i];
}

void row_set_mac(struct row_sink *sink, struct row *row, unsigned column, const uint8_t mac[6]) {
    char text[sizeof "02:00:00:00:00:01"];
    snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
             mac[4], mac[5]);
    row_set_text(sink, row, column, text);
}

void row_sink_add_at(struct row_sink *sink, enum table_number number, const struct row *row,
                     const struct row_order *order) {
    if (!table_add_ordered(&sink->tables[number], row, order))
        sink->out_of_memory = true;
}

void row_sink_add(struct row_sink *sink, enum table_number number, const struct row *row) {
    const struct row_order order = {.at = sink->at, .minor = sink->minor};
    row_sink_add_at(sink, number, row, &order);
}

_Static_assert(sizeof(struct judged_sums) % sizeof(struct traffic_sum) == 0, "sums alone");

void judged_add(struct judged_sums *sums, const struct judged_sums *other) {
    struct traffic_sum *to = (struct traffic_sum *)sums;
    const struct traffic_sum *from = (const struct traffic_sum *)other;
    for (size_t i = 0; i < sizeof *sums / sizeof *to; i++) {
        to[i].packets += from[i].packets;
        to[i].wire_bytes += from[i].wire_bytes;
    }
}

bool row_sink_join(struct row_sink *sink, struct row_sink *other) {
    bool done = true;
    judged_add(&sink->judged, &other->judged);
    sink->events_dropped += other->events_dropped;
    sink->events_kept += other->events_kept;
    sink->blocks_dropped += other->blocks_dropped;
    sink->exchanges_dropped += other->exchanges_dropped;
    sink->out_of_memory |= other->out_of_memory;
    string_table_join(&sink->texts, &other->texts);
    for (unsigned i = 0; done && i < TABLE_COUNT; i++)
        done = table_join(&sink->tables[i], &other->tables[i]);
    return done;
}

void row_sink_settle(struct row_sink *sink) {
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        enum table_number number = (enum table_number)i;
        sink->tables[i].flows = is_ordered(number) ? sink->numbers : NULL;
        table_settle(&sink->tables[i]);
    }
}

bool row_sink_order_groups(struct row_sink *sink, enum table_number number,
                           struct table_groups *const shards[]) {
    struct table *table = &sink->tables[number];
    table->filled = NULL;
    if (!table->grouped || !table->row_count)
        return true;
    if (!table_groups_reserve(&table->groups, sink->numbers->count))
        return false;
    for (unsigned s = 0; s < 1u << sink->numbers->shard_bits; s++)
        for (size_t i = 0; i < shards[s]->count; i++)
            if (shards[s]->list[i].size)
                table->groups.list[sink->numbers->final[s][i]] = shards[s]->list[i];
    return true;
}

bool row_sink_sort(struct row_sink *sink) {
    static const unsigned datagrams[] = {datagrams_first_ns, datagrams_capture,
                                         datagrams_first_frame, datagrams_first_frame};
    static const unsigned exchanges[] = {exchanges_flow, exchanges_asked_ns, exchanges_turn,
                                         exchanges_asked_frame};
    return table_sort(&sink->tables[TABLE_datagrams], datagrams) &&
           table_sort(&sink->tables[TABLE_exchanges], exchanges);
}
