/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, joins and frees the tables of workers, and notes the positions of their rows: a list for
 * each table, in the order of its rows. */
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

unsigned position_list_of(enum table_number number) {
    switch (number) {
    case TABLE_flows: return 0;
    case TABLE_events: return 1;
    case TABLE_blocks: return 2;
    default: return POSITION_TABLES;
    }
}

static void position_log_close(struct position_log *log) {
    for (unsigned i = 0; log && i < POSITION_TABLES; i++)
        free(log->lists[i].list);
    free(log);
}

static struct position position_now(const struct position_log *log, uint32_t flow) {
    struct position position = {.frame = flow,
                                .kind = log->ended ? POSITION_ENDED : POSITION_EXPIRED};
    if (log->packet) {
        const struct packet_info *info = log->packet;
        position = (struct position){info->time_ns, info->frame, info->capture, POSITION_PACKET};
    }
    if (!log->packet && log->datagram)
        position = (struct position){log->datagram->first_ns, log->datagram->first_frame,
                                     log->datagram->capture, POSITION_DATAGRAM};
    return position;
}

void position_note(struct position_log *log, enum table_number number, uint32_t flow) {
    if (!log || position_list_of(number) == POSITION_TABLES)
        return;
    struct position_list *list = &log->lists[position_list_of(number)];
    if (list_grow(&list->list, &list->room, list->count + 1, sizeof *list->list))
        list->list[list->count++] = position_now(log, flow);
    else
        log->out_of_memory = true;
}

void row_sink_open(struct row_sink *sink, unsigned part, bool packets_only) {
    *sink = (struct row_sink){.packets_only = packets_only};
    sink->texts.part = part;
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_init(&sink->tables[i], (enum table_number)i, &sink->texts, part,
                   is_grouped((enum table_number)i));
}

void row_sink_free(struct row_sink *sink) {
    position_log_close(sink->positions);
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        table_free(&sink->tables[i]);
    string_table_free(&sink->texts);
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

uint64_t row_sink_add(struct row_sink *sink, enum table_number number, const struct row *row) {
    struct row_order order = {.at = sink->at, .minor = sink->minor};
    if (!table_add_ordered(&sink->tables[number], row, &order)) {
        sink->out_of_memory = true;
        return PLACE_NONE;
    }
    position_note(sink->positions, number, sink->ending);
    return order.place;
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
    sink->blocks_dropped += other->blocks_dropped;
    sink->exchanges_dropped += other->exchanges_dropped;
    sink->out_of_memory |= other->out_of_memory;
    string_table_join(&sink->texts, &other->texts);
    for (unsigned i = 0; done && i < TABLE_COUNT; i++)
        done = table_join(&sink->tables[i], &other->tables[i]);
    return done;
}

static int compare_places(const void *left, const void *right) {
    const struct row_order *a = left, *b = right;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Puts the positions of a table's rows, which are in the order in which the rows were added, into
 * that of the settled table. The rows of a shard of `wiretale split` are of one worker, so that
 * their places ascend. Returns false without memory. */
static bool sort_positions(const struct table *table, struct position_list *positions) {
    size_t count = table->row_count;
    struct row_order *added = malloc((count + 1) * sizeof *added);
    struct position *sorted = calloc(count + 1, sizeof *sorted);
    bool done = added && sorted && positions->count == count;
    if (done && count) {
        memcpy(added, table->order, count * sizeof *added);
        qsort(added, count, sizeof *added, compare_places);
    }
    for (size_t i = 0; done && i < count; i++) {
        const struct row_order *found =
            bsearch(&table->order[i], added, count, sizeof *added, compare_places);
        sorted[i] = positions->list[found - added];
    }
    if (done && count)
        memcpy(positions->list, sorted, count * sizeof *sorted);
    free(added);
    free(sorted);
    return done;
}

void row_sink_settle(struct row_sink *sink) {
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        enum table_number number = (enum table_number)i;
        unsigned list = position_list_of(number);
        bool noted = sink->positions && is_ordered(number) && list < POSITION_TABLES;
        sink->tables[i].flows = is_ordered(number) ? sink->numbers : NULL;
        table_settle(&sink->tables[i]);
        if (noted && !sort_positions(&sink->tables[i], &sink->positions->lists[list]))
            sink->out_of_memory = true;
    }
}

bool row_sink_order_groups(struct row_sink *sink, enum table_number number,
                           struct table_groups *const shards[], const struct flow_place *flows,
                           size_t count) {
    struct table *table = &sink->tables[number];
    table->filled = NULL;
    if (!table->grouped || !table->row_count)
        return true;
    if (!table_groups_reserve(&table->groups, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (flows[i].number < shards[flows[i].shard]->count)
            table->groups.list[i] = shards[flows[i].shard]->list[flows[i].number];
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
