/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a table that is complete into the order of its readers. Rows stay where they are: only the
 * lists of their places are sorted, and groups of rows are marked. */
#include <stdlib.h>

#include "table/table.h"

static int compare_rows(const void *left, const void *right) {
    const struct row_order *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->minor != b->minor)
        return a->minor < b->minor ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* A row is found by a binary search over the marks and a few steps. Without memory for them, all
 * groups before it are counted. */
static void mark_groups(struct table *table) {
    size_t count = (table->groups.count + MARK_GROUPS - 1) / MARK_GROUPS;
    uint64_t *marks = count ? realloc(table->marks, count * sizeof *marks) : NULL, row = 0;
    table->mark_count = marks ? count : 0;
    for (size_t i = 0; marks && i < table->groups.count; i++) {
        if (i % MARK_GROUPS == 0)
            marks[i / MARK_GROUPS] = row;
        row += table->groups.list[i].size;
    }
    if (marks)
        table->marks = marks;
}

void table_settle(struct table *table) {
    bool sorted = true;
    if (table->grouped)
        mark_groups(table);
    for (uint64_t i = 1; table->order && sorted && i < table->row_count; i++)
        sorted = compare_rows(&table->order[i - 1], &table->order[i]) <= 0;
    if (!sorted)
        qsort(table->order, table->row_count, sizeof *table->order, compare_rows);
}

struct sort_key {
    int64_t values[SORT_COLUMNS_MOST]; /* INT64_MIN for null */
    uint64_t row;
    struct row_order order;
};

static int compare_keys(const void *left, const void *right) {
    const struct sort_key *a = left, *b = right;
    for (unsigned i = 0; i < SORT_COLUMNS_MOST; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

bool table_sort(struct table *table, const unsigned columns[static SORT_COLUMNS_MOST]) {
    struct sort_key *keys = calloc(table->row_count + 1, sizeof *keys);
    struct table_cursor cursor = {0};
    struct row row;
    if (!keys)
        return false;
    for (uint64_t i = 0; i < table->row_count; i++) {
        keys[i] = (struct sort_key){.row = i, .order = table->order[i]};
        table_next(table, &cursor, &row);
        for (unsigned c = 0; c < SORT_COLUMNS_MOST; c++)
            keys[i].values[c] = row_known(&row, columns[c]) ? row.value[columns[c]] : INT64_MIN;
    }
    qsort(keys, table->row_count, sizeof *keys, compare_keys);
    for (uint64_t i = 0; i < table->row_count; i++)
        table->order[i] = keys[i].order;
    table->by_flow = !columns[0];
    free(keys);
    return true;
}
