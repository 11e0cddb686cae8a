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
    {TABLE_flows, flows_protocol, WORD_TCP, WORD_OTHER_IP, 0},
    {TABLE_flows, flows_initiator_evidence, WORD_SYN, WORD_FIRST_PACKET, 0},
    {TABLE_flows, flows_state, WORD_SYN_SENT, WORD_REFUSED, 0},
    {TABLE_flows, flows_end, WORD_END_OF_CAPTURE, WORD_PORTS_REUSED, 0},
    {TABLE_flows, flows_application, WORD_BLOCKS, WORD_QUIC, 0},
    {TABLE_flows, flows_exchange, WORD_TURNS, WORD_STREAMING, 0},
    {TABLE_events, events_kind, WORD_RETRANSMISSION, WORD_BLOCK_RESTART, WORD_RESET},
    {TABLE_events, events_place, WORD_UPSTREAM, WORD_CAPTURE, 0},
    {TABLE_events, events_evidence, WORD_DSACK, WORD_TIME, 0},
    {TABLE_datagrams, datagrams_state, WORD_COMPLETE, WORD_INCOMPLETE, 0},
    {TABLE_blocks, blocks_verdict, WORD_DELIVERED, WORD_UNFINISHED, WORD_OUT_OF_ORDER},
    {TABLE_handshakes, handshakes_protocol, WORD_TLS, WORD_QUIC, 0},
};
_Static_assert(WORD_COUNT <= UINT8_MAX, "words of ranges");

#define COUNT_MOST (INT64_C(1) << 60) /* so that sums of several do not exceed 64 bits */

/* Columns that are both null or both known. */
static const struct pair {
    uint8_t table, one, other;
} pairs[] = {
    {TABLE_interfaces, interfaces_first_ns, interfaces_last_ns},
    {TABLE_interfaces, interfaces_burst_ns, interfaces_burst_last_ns},
    {TABLE_flows, flows_source_port, flows_destination_port},
    {TABLE_flows, flows_first_ns, flows_last_ns},
    {TABLE_directions, directions_first_ns, directions_last_ns},
    {TABLE_directions, directions_source_port, directions_destination_port},
    {TABLE_directions, directions_rtt_ns_min, directions_rtt_ns_median},
    {TABLE_directions, directions_rtt_ns_min, directions_rtt_ns_max},
    {TABLE_events, events_flow, events_direction},
    {TABLE_datagrams, datagrams_flow, datagrams_direction},
    {TABLE_datagrams, datagrams_first_ns, datagrams_last_ns},
};

/* Columns that are never null, because rows/ sets them in each row. */
static const uint8_t interfaces_known[] = {interfaces_capture,
                                           interfaces_file,
                                           interfaces_format,
                                           interfaces_compression,
                                           interfaces_interface,
                                           interfaces_link_type,
                                           interfaces_time_resolution_ns,
                                           interfaces_packets,
                                           interfaces_bytes,
                                           interfaces_captured_bytes,
                                           interfaces_filtered_packets,
                                           interfaces_truncated_packets,
                                           interfaces_time_unknown,
                                           interfaces_time_out_of_range,
                                           interfaces_backward_steps,
                                           interfaces_super_segments,
                                           interfaces_lengths_cut,
                                           interfaces_not_ip,
                                           interfaces_not_understood,
                                           interfaces_undecoded_packets,
                                           interfaces_cut_headers,
                                           interfaces_malformed,
                                           interfaces_no_flow_bytes,
                                           interfaces_packet_comments};
static const uint8_t flows_known[] = {
    flows_flow,    flows_protocol,      flows_protocol_number, flows_ip_version,
    flows_source,  flows_destination,   flows_initiator_known, flows_initiator_evidence,
    flows_end,     flows_first_capture, flows_first_frame,     flows_last_frame,
    flows_packets, flows_wire_bytes,    flows_one_way,         flows_icmp_errors};
static const uint8_t directions_known[] = {directions_flow,
                                           directions_direction,
                                           directions_source,
                                           directions_destination,
                                           directions_packets,
                                           directions_wire_bytes,
                                           directions_ip_bytes,
                                           directions_fragments,
                                           directions_fragmented_datagrams,
                                           directions_incomplete_datagrams,
                                           directions_fragment_overhead_bytes,
                                           directions_ecn_ce};
static const uint8_t events_known[] = {events_capture, events_frame, events_kind};
static const uint8_t series_known[] = {series_flow,     series_direction,     series_start_ns,
                                       series_width_ns, series_packets,       series_wire_bytes,
                                       series_bytes,    series_throughput_bps};
static const uint8_t turns_known[] = {turns_flow, turns_direction, turns_turn, turns_request_bytes};
static const uint8_t datagrams_known[] = {datagrams_capture,        datagrams_source,
                                          datagrams_destination,    datagrams_protocol_number,
                                          datagrams_identification, datagrams_state,
                                          datagrams_fragments,      datagrams_received_bytes,
                                          datagrams_overhead_bytes, datagrams_out_of_order,
                                          datagrams_duplicates,     datagrams_overlaps,
                                          datagrams_late,           datagrams_first_frame,
                                          datagrams_last_frame};
static const uint8_t blocks_known[] = {blocks_flow,     blocks_direction, blocks_capture,
                                       blocks_sequence, blocks_bytes,     blocks_verdict};
static const uint8_t handshakes_known[] = {handshakes_flow, handshakes_protocol};
static const uint8_t queries_known[] = {queries_flow, queries_id, queries_type, queries_first_frame,
                                        queries_sent};
static const uint8_t requests_known[] = {requests_flow};

#define KNOWN(table) [TABLE_##table] = {table##_known, sizeof table##_known}
static const struct never_null {
    const uint8_t *columns;
    size_t count;
} never_null[TABLE_COUNT] = {KNOWN(interfaces), KNOWN(flows),   KNOWN(directions), KNOWN(events),
                             KNOWN(series),     KNOWN(turns),   KNOWN(datagrams),  KNOWN(blocks),
                             KNOWN(handshakes), KNOWN(queries), KNOWN(requests)};
#undef KNOWN

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
    static const char *const directions[] = {"direction", "alert_direction", "client_direction"};
    static const char *const captures[] = {"capture", "first_capture"};
    static const char *const counts[] = {"packets", "bytes", "segments", "hops", "frame"};
    rules->least[c] = INT64_MIN;
    rules->most[c] = INT64_MAX;
    if (column->type == TYPE_TIME && strcmp(column->name, "sent_ns") != 0) {
        rules->least[c] = -TIME_MOST_NS; /* bins may begin before the first packet */
        rules->most[c] = TIME_MOST_NS;
    } else if (column->type == TYPE_INT) {
        if (is_any(column->name, directions, 3))
            rules->most[c] = 1;
        else if (is_any(column->name, captures, 2))
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
    for (unsigned c = 0; c < schema->column_count; c++)
        set_range(rules, &schema->columns[c], c, interface_count);
    for (size_t i = 0; i < sizeof word_ranges / sizeof *word_ranges; i++)
        if (word_ranges[i].table == number) {
            rules->least[word_ranges[i].column] = word_ranges[i].first;
            rules->most[word_ranges[i].column] = word_ranges[i].last;
        }
    for (size_t i = 0; i < never_null[number].count; i++) {
        unsigned c = never_null[number].columns[i];
        rules->known[c / 64] |= UINT64_C(1) << c % 64;
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
