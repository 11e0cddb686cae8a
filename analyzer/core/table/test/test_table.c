/* SPDX-License-Identifier: Apache-2.0 */
/* Rows come back as they were put in, groups in their order, and packed columns are bounded. */
#include "table/table.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/vocabulary.h"
#include "common/test/check.h"
#include "common/utf8.h"
#include "export/export.h"

#define ROWS 100000

static int64_t value_of(uint64_t i, unsigned column) {
    static const int64_t odd[] = {0, -1, INT64_MAX, INT64_MIN, 127, -128, 1 << 20};
    return i % 5 ? (int64_t)(i * 7919 + column) : odd[(i / 5 + column) % 7];
}

static bool is_known(uint64_t i, unsigned column) {
    return (i + column) % 3 != 0;
}

static struct string_table texts;
static struct table table; /* of the check at hand */
static struct row row;

static void fill_directions(uint64_t rows) {
    table_init(&table, TABLE_directions, &texts, 0, false);
    for (uint64_t i = 0; i < rows; i++) {
        row_clear(&row);
        for (unsigned c = 0; c < directions_column_count; c++)
            row_set_if(&row, c, is_known(i, c), value_of(i, c));
        CHECK(table_add(&table, &row));
    }
}

/* Full chunks are files if the folder is on disk; the rows are the same. */
static void check_rows(const char *folder, bool is_on_disk) {
    struct table_cursor cursor = {0};
    CHECK(!setenv("TMPDIR", folder, true));
    fill_directions(ROWS);
    CHECK(table.own.rows.chunk_count > 2);
    CHECK_INT(table.own.rows.files, is_on_disk ? table.own.rows.chunk_count - 1 : 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        CHECK(table_next(&table, &cursor, &row));
        for (unsigned c = 0; c < directions_column_count; c++) {
            CHECK_INT(row_known(&row, c), is_known(i, c));
            CHECK_INT(row.value[c], is_known(i, c) ? value_of(i, c) : 0);
        }
    }
    CHECK(!table_next(&table, &cursor, &row));
    table_free(&table);
}

/* A reader of some columns comes to the same rows. */
static void check_first_columns(void) {
    struct table_cursor cursor = {0};
    fill_directions(ROWS / 10);
    for (uint64_t i = 0; i < ROWS / 10; i++) {
        size_t columns = i % (directions_column_count + 1);
        CHECK(table_next_of(&table, &cursor, columns, &row));
        for (unsigned c = 0; c < columns; c++)
            CHECK_INT(row.value[c], is_known(i, c) ? value_of(i, c) : 0);
    }
    CHECK(!table_next(&table, &cursor, &row));
    table_free(&table);
}

/* Flows end in any order and are read back by number; some have no rows. */
static void check_groups(void) {
    static const uint32_t order[] = {5, 0, 9, 3, 4};
    struct table_cursor cursor = {0};
    int64_t last = -1;
    table_init(&table, TABLE_series, &texts, 0, true);
    for (unsigned g = 0; g < 5; g++) {
        CHECK(table_begin_group(&table, order[g]));
        for (uint32_t i = 0; i < order[g]; i++) {
            row_clear(&row);
            row_set(&row, series_flow, order[g]);
            row_set(&row, series_packets, i);
            CHECK(table_add(&table, &row));
        }
    }
    for (uint64_t i = 0; i < 21; i++) {
        CHECK(table_next(&table, &cursor, &row));
        int64_t key = row.value[series_flow] * 100 + row.value[series_packets];
        CHECK(key > last);
        last = key;
    }
    CHECK(!table_next(&table, &cursor, &row));
    table_free(&table);
}

static void pack(struct column_pack pack, void *out) {
    static const struct flow_choice all = {0};
    pack.column = events_time_ns;
    CHECK_INT((int64_t)column_pack_rows(&table, &all), (int64_t)table.row_count);
    column_pack(&table, &pack, 1, &all, (uint8_t *[]){out});
}

/* Each row is found from any place, with the marks of groups and without: groups of 0, 1 and 2
 * rows. */
static void check_seek(bool settled) {
    table_init(&table, TABLE_series, &texts, 0, true);
    for (uint32_t group = 0, number = 0; group < 10 * MARK_GROUPS + 1; group++) {
        CHECK(table_begin_group(&table, group));
        for (uint32_t i = 0; i < group % 3; i++) {
            row_clear(&row);
            row_set(&row, series_flow, group);
            row_set(&row, series_start_ns, number++);
            CHECK(table_add(&table, &row));
        }
    }
    if (settled)
        table_settle(&table);
    for (uint64_t number = 0; number <= table.row_count; number++) {
        struct table_cursor cursor = {0};
        table_seek(&table, &cursor, number);
        CHECK_INT(table_next(&table, &cursor, &row), number < table.row_count);
        if (number < table.row_count)
            CHECK_INT(row.value[series_start_ns], (int64_t)number);
    }
    table_free(&table);
}

/* Several columns of some flows, of a table in the order of time and of one in that of flows. */
static void check_chosen(bool grouped) {
    static const uint32_t flows[] = {1, 4, 7};
    static const struct flow_choice some = {flows, 3};
    static const struct column_pack packs[] = {{series_start_ns, 'd', false, 0, 1},
                                               {series_flow, 'B', false, 0, 1}};
    double starts[4];
    uint8_t numbers[4];
    table_init(&table, TABLE_series, &texts, 0, grouped);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(!grouped || table_begin_group(&table, i / 2));
        row_clear(&row);
        row_set(&row, series_flow, i / 2);
        row_set(&row, series_start_ns, (INT64_C(1) << 60) + i);
        CHECK(table_add(&table, &row));
    }
    CHECK_INT((int64_t)column_pack_rows(&table, &some), 4);
    column_pack(&table, packs, 2, &some, (uint8_t *[]){(uint8_t *)starts, numbers});
    for (unsigned i = 0; i < 4; i++) {
        CHECK_INT(numbers[i], i < 2 ? 1 : 4);
        CHECK(starts[i] == (double)((INT64_C(1) << 60) + (i < 2 ? 2 : 6) + i));
    }
    table_free(&table);
}

static void check_packed(void) {
    static const int64_t values[] = {1000, 1500, INT64_MIN, INT64_MAX, 0};
    int32_t narrow[5];
    uint32_t delta[5];
    double real[5];
    table_init(&table, TABLE_events, &texts, 0, false);
    for (unsigned i = 0; i < 5; i++) {
        row_clear(&row);
        row_set_if(&row, events_time_ns, i < 4, values[i]);
        CHECK(table_add(&table, &row));
    }
    pack((struct column_pack){.code = 'i', .delta = false, .offset = 1000, .divisor = 100}, narrow);
    CHECK_INT(narrow[1], 5);
    CHECK_INT(narrow[2], INT32_MIN);
    CHECK_INT(narrow[3], INT32_MAX);
    CHECK_INT(narrow[4], INT32_MAX);
    pack((struct column_pack){.code = 'I', .delta = true, .offset = 1000, .divisor = 1}, delta);
    CHECK_INT(delta[0], 0);
    CHECK_INT(delta[1], 500);
    CHECK_INT(delta[2], (uint32_t)-500);
    pack((struct column_pack){.code = 'd', .delta = false, .offset = 500, .divisor = 1000}, real);
    CHECK(real[1] == 1.0 && isnan(real[4]));
    table_free(&table);
}

static int64_t text_of(struct string_table *store, unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "row %u", number);
    return string_table_add(store, text);
}

/* Rows of two workers are read in the order of the packets that wrote them, with texts of both;
 * flows have their final numbers. */
static void check_joined(void) {
    struct string_table others = {.part = 1};
    struct table other;
    uint32_t first[] = {5, 6}, second[] = {7};
    struct flow_numbers numbers = {.shard_bits = 1, .final = (uint32_t *[]){first, second}};
    table_init(&table, TABLE_events, &texts, 0, false);
    table_init(&other, TABLE_events, &others, 1, false);
    for (unsigned i = 0; i < 100; i++) {
        unsigned frame = i * 37 % 100;
        bool here = frame % 3;
        struct row_order order = {.at = frame};
        row_clear(&row);
        row_set(&row, events_flow, frame % 3);
        row_set(&row, events_frame, frame);
        row_set(&row, events_detail, text_of(here ? &texts : &others, frame));
        CHECK(table_add_ordered(here ? &table : &other, &row, &order));
    }
    CHECK(table_join(&table, &other));
    string_table_join(&texts, &others);
    table.flows = &numbers;
    table_settle(&table);
    struct table_cursor cursor = {0};
    for (unsigned i = 0; i < 100; i++) {
        char text[16];
        size_t size;
        snprintf(text, sizeof text, "row %u", i);
        CHECK(table_next(&table, &cursor, &row));
        CHECK_INT(row.value[events_flow], i % 3 == 0 ? 5 : i % 3 == 1 ? 7 : 6);
        CHECK_INT(row.value[events_frame], i);
        const char *found = string_table_get(&texts, row.value[events_detail], &size);
        CHECK(size == strlen(text) && !memcmp(found, text, size));
    }
    CHECK(!table_next(&table, &cursor, &row));
    table_seek(&table, &cursor, 70);
    CHECK(table_next(&table, &cursor, &row) && row.value[events_frame] == 70);
    table_free(&other);
    table_free(&table);
    string_table_free(&others);
}

static void check_texts(void) {
    static const uint8_t loopback[16] = {[15] = 1};
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    int64_t plain = string_table_add(&texts, "eth0");
    int64_t broken = string_table_add(&texts, "a\xFF"
                                              "b");
    static const uint8_t host[4] = {192, 0, 2, 10};
    int64_t ipv4 = string_table_add_address(&texts, 4, host);
    const char *text = string_table_text(&texts, TYPE_ADDRESS, ipv4, address, &size);
    CHECK(size == 10 && !memcmp(text, "192.0.2.10", size));
    int64_t ipv6 = string_table_add_address(&texts, 6, loopback);
    CHECK(plain >= 0 && broken >= 0 && ipv6 >= 0);
    CHECK(!memcmp(string_table_get(&texts, plain, &size), "eth0", 4) && size == 4);
    CHECK(!memcmp(string_table_get(&texts, broken, &size),
                  "a\xEF\xBF\xBD"
                  "b",
                  5) &&
          size == 5);
    text = string_table_text(&texts, TYPE_ADDRESS, ipv6, address, &size);
    CHECK(size == 3 && !memcmp(text, "::1", size));
    string_table_free(&texts);
}

/* A longer text is never cut silently. */
static void check_long_texts(void) {
    static char text[TEXT_MAX + 2];
    size_t size;
    memset(text, 'x', TEXT_MAX);
    const char *found = string_table_get(&texts, string_table_add(&texts, text), &size);
    CHECK(size == TEXT_MAX && !memcmp(found, text, size));
    text[TEXT_MAX] = 'x';
    found = string_table_get(&texts, string_table_add(&texts, text), &size);
    CHECK(size == TEXT_MAX && !memcmp(found + size - 4, "x" UTF8_CUT, 4));
    string_table_free(&texts);
}

/* A file that may not become as long as a chunk, as on a full disk. Python ignores SIGXFSZ, too. */
static void check_rows_of_short_files(void) {
    struct rlimit before;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && !getrlimit(RLIMIT_FSIZE, &before));
    struct rlimit less = {ARENA_CHUNK / 2, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_FSIZE, &less));
    check_rows(".", false);
    CHECK(!setrlimit(RLIMIT_FSIZE, &before));
}

int main(void) {
    check_rows(".", true);
    check_rows("/dev/shm", false);
    check_rows("/no/such/folder", false);
    check_rows_of_short_files();
    check_groups();
    check_first_columns();
    check_packed();
    check_chosen(false);
    check_chosen(true);
    check_seek(false);
    check_seek(true);
    check_joined();
    check_texts();
    check_long_texts();
    return 0;
}
