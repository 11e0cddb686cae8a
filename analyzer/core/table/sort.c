/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the rows of a table that is complete, by some of its columns. Rows stay where they are:
 * only the list of their places is sorted. */
#include <stdlib.h>

#include "table/table.h"

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
