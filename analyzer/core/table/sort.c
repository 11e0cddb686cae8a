/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the rows of a table that is complete, by some of its columns. Rows are packed one behind
 * the other, so they are unpacked twice: once for their keys and places, once into a new table. A
 * table that is sorted already is only read. */
#include <stdlib.h>

#include "table/table.h"

struct sort_key {
    int64_t values[SORT_COLUMNS_MOST]; /* INT64_MIN for null */
    uint64_t row, place;
};

static int compare_keys(const void *left, const void *right) {
    const struct sort_key *a = left, *b = right;
    for (unsigned i = 0; i < SORT_COLUMNS_MOST; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Returns whether the rows are sorted. */
static bool read_keys(const struct table *table, const unsigned *columns, struct sort_key *keys) {
    struct table_cursor cursor = {0};
    struct row row;
    bool sorted = true;
    for (uint64_t i = 0; i < table->row_count; i++) {
        keys[i] = (struct sort_key){.row = i, .place = cursor.place};
        table_next(table, &cursor, &row);
        for (unsigned c = 0; c < SORT_COLUMNS_MOST; c++)
            keys[i].values[c] = row_known(&row, columns[c]) ? row.value[columns[c]] : INT64_MIN;
        sorted = sorted && (!i || compare_keys(&keys[i - 1], &keys[i]) < 0);
    }
    return sorted;
}

bool table_sort(struct table *table, const unsigned columns[static SORT_COLUMNS_MOST]) {
    struct sort_key *keys = calloc(table->row_count + 1, sizeof *keys);
    struct table old = *table;
    bool done = keys;
    if (!keys || read_keys(table, columns, keys)) {
        free(keys);
        return done;
    }
    qsort(keys, old.row_count, sizeof *keys, compare_keys);
    *table = (struct table){.schema = old.schema, .texts = old.texts};
    for (uint64_t i = 0; done && i < old.row_count; i++) {
        struct table_cursor cursor = {.row = keys[i].row, .place = keys[i].place};
        struct row row;
        done = table_next(&old, &cursor, &row) && table_add(table, &row);
    }
    table_free(&old);
    free(keys);
    return done;
}
