/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of single rows. Those between rows, such as two directions of each flow, are in gather.c.
 */
#include "shard/row_file.h"

#include <string.h>

#include "base/packet.h"
#include "base/vocabulary.h"

/* Words of a column: a range of the vocabulary, and one that belongs to another range. */
static const struct word_range {
    uint8_t table, column;
    uint8_t first, last, other; /* enum word */
} word_ranges[] = {
    {TABLE_decode_stops, decode_stops_outcome, WORD_CUT, WORD_MALFORMED, 0},
    {TABLE_flows, flows_protocol, WORD_TCP, WORD_OTHER_IP, 0},
    {TABLE_flows, flows_initiator_evidence, WORD_SYN, WORD_FIRST_PACKET, 0},
    {TABLE_flows, flows_state, WORD_SYN_SENT, WORD_REFUSED, 0},
    {TABLE_flows, flows_end, WORD_END_OF_CAPTURE, WORD_PORTS_REUSED, 0},
    {TABLE_flows, flows_application, WORD_BLOCKS, WORD_QUIC, 0},
    {TABLE_flows, flows_exchange, WORD_TURNS, WORD_STREAMING, 0},
    {TABLE_events, events_kind, WORD_RETRANSMISSION, WORD_BLOCK_RESTART, WORD_RESET},
    {TABLE_events, events_place, WORD_UPSTREAM, WORD_CAPTURE, 0},
    {TABLE_events, events_evidence, WORD_DSACK, WORD_TIME, 0},
    {TABLE_events, events_cause, WORD_GO_BACK_N, WORD_HOP_LIMIT_EXCEEDED, 0},
    {TABLE_datagrams, datagrams_state, WORD_COMPLETE, WORD_INCOMPLETE, 0},
    {TABLE_blocks, blocks_verdict, WORD_DELIVERED, WORD_UNFINISHED, WORD_OUT_OF_ORDER},
    {TABLE_handshakes, handshakes_protocol, WORD_TLS, WORD_QUIC, 0},
    {TABLE_exchanges, exchanges_kind, WORD_DNS, WORD_ICMP_ECHO, 0},
    {TABLE_exchanges, exchanges_outcome, WORD_CLOSED, WORD_FAREWELL, 0},
    {TABLE_endings, endings_kind, WORD_FIN, WORD_FIN, WORD_RESET},
    {TABLE_waits, waits_kind, WORD_SEND_BUFFER, WORD_SLOWEST, WORD_IDLE},
};
_Static_assert(WORD_COUNT <= UINT8_MAX, "words of ranges");

#define COUNT_MOST (INT64_C(1) << 60) /* so that sums of several do not exceed 64 bits */

/* Columns that are both null or both known. */
static const struct pair {
    uint8_t table, one, other;
} pairs[] = {
    {TABLE_interfaces, interfaces_first_ns, interfaces_last_ns},
    {TABLE_interfaces, interfaces_burst_ns, interfaces_burst_last_ns},
    {TABLE_second_ports, second_ports_first_source, second_ports_first_destination},
    {TABLE_second_ports, second_ports_second_source, second_ports_second_destination},
    {TABLE_flows, flows_source_port, flows_destination_port},
    {TABLE_flows, flows_first_ns, flows_last_ns},
    {TABLE_flows, flows_pause_ns, flows_pause_until_ns},
    {TABLE_flows, flows_pause_ns, flows_pause_frame},
    {TABLE_flows, flows_pause_ns, flows_pause_capture},
    {TABLE_flows, flows_pause_ns, flows_pause_direction},
    {TABLE_endings, endings_ttl_before_min, endings_ttl_before_max},
    {TABLE_directions, directions_first_ns, directions_last_ns},
    {TABLE_directions, directions_source_port, directions_destination_port},
    {TABLE_directions, directions_rtt_ns_min, directions_rtt_ns_median},
    {TABLE_directions, directions_rtt_ns_min, directions_rtt_ns_max},
    {TABLE_events, events_flow, events_direction},
    {TABLE_datagrams, datagrams_flow, datagrams_direction},
    {TABLE_exchanges, exchanges_flow, exchanges_direction},
    {TABLE_waits, waits_before_frame, waits_waited_ns},
    {TABLE_datagrams, datagrams_first_ns, datagrams_last_ns},
};

static bool is_any(const char *text, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, list[i]))
            return true;
    return false;
}

/* Sets the range of a number. A sender may have written any time into its blocks, and durations
 * between clocks may be negative. */
static void set_range(struct row_rules *rules, const struct column *column, unsigned c,
                      uint32_t interface_count) {
    static const char *const directions[] = {"direction", "alert_direction", "client_direction",
                                             "client", "pause_direction"};
    static const char *const captures[] = {"capture",        "first_capture", "second_capture",
                                           "before_capture", "after_capture", "pause_capture"};
    static const char *const counts[] = {"packets", "bytes", "segments", "hops", "frame"};
    rules->least[c] = INT64_MIN;
    rules->most[c] = INT64_MAX;
    if (column->type == TYPE_TIME && strcmp(column->name, "sent_ns") != 0) {
        rules->least[c] = -TIME_MOST_NS; /* bins may begin before the first packet */
        rules->most[c] = TIME_MOST_NS;
    } else if (column->type == TYPE_INT) {
        if (is_any(column->name, directions, 5))
            rules->most[c] = 1;
        else if (is_any(column->name, captures, 6))
            rules->most[c] = (int64_t)interface_count - 1;
        else if (is_any(column->unit, counts, 5))
            rules->most[c] = COUNT_MOST;
        if (rules->most[c] != INT64_MAX)
            rules->least[c] = 0;
    }
}

void row_rules_make(struct row_rules *rules, enum table_number number, uint32_t interface_count) {
    const struct schema *schema = &schemas[number];
    *rules = (struct row_rules){.number = number};
    for (unsigned c = 0; c < schema->column_count; c++) {
        set_range(rules, &schema->columns[c], c, interface_count);
        rules->known[c / 64] |= (uint64_t)schema->columns[c].known << c % 64;
    }
    for (size_t i = 0; i < sizeof word_ranges / sizeof *word_ranges; i++)
        if (word_ranges[i].table == number) {
            rules->least[word_ranges[i].column] = word_ranges[i].first;
            rules->most[word_ranges[i].column] = word_ranges[i].last;
        }
}

static bool other_word(enum table_number number, unsigned c, int64_t value) {
    for (size_t i = 0; i < sizeof word_ranges / sizeof *word_ranges; i++)
        if (word_ranges[i].table == number && word_ranges[i].column == c)
            return word_ranges[i].other && value == word_ranges[i].other;
    return false;
}

bool row_is_valid(const struct row_rules *rules, const struct row *row) {
    const struct schema *schema = &schemas[rules->number];
    for (size_t i = 0; i < sizeof row->known / sizeof *row->known; i++)
        if ((row->known[i] & rules->known[i]) != rules->known[i])
            return false;
    for (unsigned c = 0; c < schema->column_count; c++)
        if (row_known(row, c) && schema->columns[c].type < TYPE_TEXT &&
            (row->value[c] < rules->least[c] || row->value[c] > rules->most[c]) &&
            !other_word(rules->number, c, row->value[c]))
            return false;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].table == rules->number &&
            row_known(row, pairs[i].one) != row_known(row, pairs[i].other))
            return false;
    return true;
}
