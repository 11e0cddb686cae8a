/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of series that are made of kept bins: of more flows than fit into a chunk, with byte counts
 * within 32 bits and beyond, from the start and from anywhere. */
#include "rows/rows.h"

#include <string.h>

#include "common/test/check.h"

#define FLOWS    60u
#define GRID     INT64_C(1700000000000) /* number of the first bin of 1 ms */
#define WIDTH    INT64_C(4000000)
#define HUGE_BIN (UINT64_C(5) << 32)

/* Flow 7 has no bins, and flow 8 none in its first direction. */
static uint32_t bins_of(unsigned flow, unsigned direction) {
    if (flow == 7 || (flow == 8 && !direction))
        return 0;
    return flow % 3 ? 1 + flow : BINS_MOST;
}

static bool is_huge(unsigned flow, uint32_t bin) {
    return flow % 4 == 1 && bin == 1;
}

static struct time_bin bin_of(unsigned flow, unsigned direction, uint32_t i) {
    uint64_t bytes = is_huge(flow, i) ? HUGE_BIN : flow % 4 == 2 ? 100000 + i : 1000 + i;
    return (struct time_bin){.wire_bytes = bytes + 38,
                             .ip_bytes = bytes,
                             .payload_bytes = bytes - 40,
                             .unique_bytes = bytes - 50,
                             .retransmitted_bytes = 10,
                             .index = 3 * i,
                             .packets = flow * 2 + direction,
                             .rtt_us = i % 2 ? BIN_RTT_NONE : 7 + i,
                             .flight = i % 3 ? BIN_BYTES_NONE : i,
                             .window = i % 5 ? BIN_BYTES_NONE : 0,
                             .lost = i % 7};
}

static struct series_head head_of(unsigned flow, unsigned direction) {
    uint32_t count = bins_of(flow, direction);
    return (struct series_head){
        .first = GRID / 4,
        .first_ns = GRID * 1000000 + 100,
        .last_ns = GRID * 1000000 + 3 * WIDTH * count,
        .count = (uint16_t)count,
        .doublings = 2,
        .number = direction,
        .tcp = flow % 2,
        .payload_known = flow % 5,
    };
}

static void fill(struct table *table) {
    static struct time_bin bins[BINS_MOST];
    for (unsigned flow = FLOWS; flow-- > 0;) { /* flows end in any order */
        CHECK(table_begin_group(table, flow));
        for (unsigned direction = 0; direction < 2; direction++) {
            struct series_head head = head_of(flow, direction);
            for (uint32_t i = 0; i < head.count; i++)
                bins[i] = bin_of(flow, direction, i);
            CHECK(series_record_add(table, &head, bins));
        }
    }
}

static void check_value(const struct row *row, unsigned column, bool known, int64_t value) {
    CHECK_INT(row_known(row, column), known);
    CHECK_INT(row->value[column], known ? value : 0);
}

static int64_t bits_a_second(uint64_t bytes, int64_t ns) {
    return (int64_t)((long double)bytes * 8e9L / (long double)ns);
}

static void check_row(const struct row *row, unsigned flow, unsigned direction, uint32_t i,
                      uint64_t so_far) {
    struct series_head head = head_of(flow, direction);
    struct time_bin bin = bin_of(flow, direction, i);
    int64_t start = GRID * 1000000 + 3 * WIDTH * i;
    bool stream = head.tcp && head.payload_known;
    check_value(row, series_flow, true, flow);
    check_value(row, series_direction, true, direction);
    check_value(row, series_start_ns, true, start);
    check_value(row, series_width_ns, true, WIDTH);
    check_value(row, series_packets, true, bin.packets);
    check_value(row, series_wire_bytes, true, (int64_t)bin.wire_bytes);
    check_value(row, series_bytes, true, (int64_t)bin.ip_bytes);
    check_value(row, series_payload_bytes, head.payload_known, (int64_t)bin.payload_bytes);
    check_value(row, series_unique_bytes, stream, (int64_t)bin.unique_bytes);
    check_value(row, series_retransmitted_bytes, stream, 10);
    check_value(row, series_lost, stream, i % 7);
    check_value(row, series_rtt_ns, !(i % 2), (7 + i) * 1000);
    check_value(row, series_flight_bytes, !(i % 3), i);
    check_value(row, series_window_bytes, !(i % 5), 0);
    check_value(row, series_throughput_bps, true, bits_a_second(bin.ip_bytes, WIDTH));
    check_value(row, series_cumulative_throughput_bps, true,
                bits_a_second(so_far, start + WIDTH - head.first_ns));
    check_value(row, series_goodput_bps, head.payload_known,
                bits_a_second(head.tcp ? bin.unique_bytes : bin.payload_bytes, WIDTH));
}

/* Returns how many rows there are. */
static uint64_t check_all(const struct table *table) {
    struct table_cursor cursor = {0};
    struct row row;
    for (unsigned flow = 0; flow < FLOWS; flow++)
        for (unsigned direction = 0; direction < 2; direction++) {
            uint64_t so_far = 0;
            for (uint32_t i = 0; i < bins_of(flow, direction); i++) {
                CHECK(table_next(table, &cursor, &row));
                so_far += bin_of(flow, direction, i).ip_bytes;
                check_row(&row, flow, direction, i, so_far);
            }
        }
    CHECK(!table_next(table, &cursor, &row));
    return cursor.row;
}

/* Rows from anywhere, and the first columns alone, are those of a reader of all. */
static void check_in_part(const struct table *table, uint64_t rows) {
    struct row expected, row;
    struct table_cursor all = {0}, first = {0}, cursor;
    for (uint64_t number = 0; number < rows; number++) {
        CHECK(table_next(table, &all, &expected));
        CHECK(table_next_of(table, &first, series_throughput_bps, &row));
        for (unsigned c = 0; c < series_throughput_bps; c++)
            check_value(&row, c, row_known(&expected, c), expected.value[c]);
        if (number % 997 && number + 1 != rows)
            continue;
        table_seek(table, &cursor, number);
        CHECK(table_next(table, &cursor, &row));
        for (unsigned c = 0; c < series_column_count; c++)
            check_value(&row, c, row_known(&expected, c), expected.value[c]);
    }
}

static void check_groups(const struct table *table) {
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        struct table_cursor cursor = {0};
        struct row row;
        uint32_t rows = table_enter_group(table, &cursor, flow);
        CHECK_INT(rows, bins_of(flow, 0) + bins_of(flow, 1));
        for (uint32_t i = 0; i < rows; i++) {
            CHECK(table_next(table, &cursor, &row));
            check_value(&row, series_flow, true, flow);
        }
    }
}

int main(void) {
    struct string_table texts = {0};
    struct table table;
    table_init(&table, TABLE_series, &texts, 0, true);
    fill(&table);
    uint64_t rows = check_all(&table);
    CHECK_INT(rows, table.row_count);
    check_in_part(&table, rows);
    check_groups(&table);
    table_free(&table);
    return 0;
}
