/* SPDX-License-Identifier: Apache-2.0 */
/* A table as it grows: rows packed one after another, read back as often as wanted.
 *
 * A packed row holds only what is neither null nor 0, so that a finished flow costs some hundred
 * bytes however wide the tables are. Rows of a grouped table are added a flow at a time, in any
 * order of flows, and read back in the order of flow numbers.
 */
#ifndef WIRETALE_TABLE_H
#define WIRETALE_TABLE_H

#include "base/arena.h"
#include "table/schema.h"
#include "table/string_table.h"

struct row {
    uint64_t known[(COLUMNS_MAX + 63) / 64]; /* bit i: value[i] is not null */
    int64_t value[COLUMNS_MAX];              /* a REAL as its bits, a WORD or TEXT as its number */
};

/* A value of a row that turned out otherwise after the row had been added. */
struct amendment {
    uint64_t row;
    uint32_t column;
    uint32_t order; /* later ones win */
    int64_t value;
    bool null;
};

struct table_cursor;

/* How rows are kept together in a record, and made of it one by one as they are read. */
struct record_kind {
    size_t room; /* bytes of the largest */
    /* The first `columns` columns at least of the row that the cursor is at in the record; those of
     * null columns are 0. Returns the record's end with its last row, else NULL. */
    const uint8_t *(*next)(const uint8_t *record, struct table_cursor *cursor, size_t columns,
                           struct row *row);
};

struct table {
    const struct schema *schema;
    const struct string_table *texts;
    const struct record_kind *records; /* NULL: each row is packed by itself */
    uint64_t record_offset;            /* of the record that is begun */
    struct arena rows;
    uint64_t row_count;
    int64_t origins[COLUMNS_MAX]; /* what values are packed as differences to */
    bool grouped;
    uint64_t *group_offsets; /* by group: where its rows begin, NO_GROUP without any */
    uint32_t *group_sizes;   /* by group: how many rows */
    size_t group_count, group_room;
    size_t group; /* that rows are added to */
    struct amendment *amendments;
    size_t amendment_count, amendment_room;
    uint32_t *moved; /* by the number that a row was first given: where it lies */
    uint64_t moved_count, moved_room, moved_first;
};

static inline void row_clear(struct row *row) {
    for (size_t i = 0; i < sizeof row->known / sizeof *row->known; i++)
        row->known[i] = 0;
}

static inline void row_set(struct row *row, unsigned column, int64_t value) {
    row->known[column / 64] |= UINT64_C(1) << column % 64;
    row->value[column] = value;
}

static inline void row_set_if(struct row *row, unsigned column, bool known, int64_t value) {
    if (known)
        row_set(row, column, value);
}

static inline void row_unset(struct row *row, unsigned column) {
    row->known[column / 64] &= ~(UINT64_C(1) << column % 64);
    row->value[column] = 0;
}

static inline bool row_known(const struct row *row, unsigned column) {
    return row->known[column / 64] >> column % 64 & 1;
}

void table_init(struct table *table, enum table_number number, const struct string_table *texts,
                bool grouped);
void table_free(struct table *table);

/* Both return false without memory. Rows added between two calls of table_begin_group() belong to
 * the first one's group; a group is begun once. */
bool table_begin_group(struct table *table, uint32_t group);
bool table_add(struct table *table, const struct row *row);

/* A place for a record of the kind, NULL without memory: it is written there, up to `end`, and then
 * added with the rows that it holds, at least one. All rows of such a table lie in records. */
uint8_t *table_begin_record(struct table *table, const struct record_kind *kind);
void table_add_record(struct table *table, const uint8_t *end, uint32_t rows);

/* The next `count` rows lie elsewhere than their numbers say: each is added by table_add_moved()
 * with its number among them, from 0. Amendments go by these numbers. False without memory. */
bool table_begin_moved(struct table *table, size_t count);
bool table_add_moved(struct table *table, uint32_t number, const struct row *row);

/* Group first + i becomes first + ranks[i], for `count` of them. False without memory. */
bool table_permute_groups(struct table *table, uint32_t first, const uint32_t *ranks, size_t count);

/* Changes a value of a row of a table that is not grouped; seen by readers after table_settle().
 * False without memory. */
bool table_amend(struct table *table, uint64_t row, unsigned column, int64_t value);
bool table_amend_null(struct table *table, uint64_t row, unsigned column);
void table_settle(struct table *table);

/* A place in the table to read on from; {0} is its beginning. */
struct table_cursor {
    uint64_t row;       /* rows given so far */
    uint64_t offset;    /* of the next packed row, or of the record that holds it */
    size_t group;       /* the next group to enter */
    uint32_t left;      /* rows left of the group */
    uint32_t of_record; /* rows given of the record */
    uint64_t sum;       /* over them, of what the record's kind adds up */
};

/* Unpacks the next row; false at the end. Values of null columns are 0. The first column of a
 * grouped table is the group. */
bool table_next(const struct table *table, struct table_cursor *cursor, struct row *row);

/* As table_next(), of the first `columns` columns alone: the others' values are not to be read. */
bool table_next_of(const struct table *table, struct table_cursor *cursor, size_t columns,
                   struct row *row);

/* Moves a cursor to the first row of a group and returns how many it has. */
uint32_t table_enter_group(const struct table *table, struct table_cursor *cursor, size_t group);

/* Moves a cursor to row `number`, as if the ones before had been read. */
void table_seek(const struct table *table, struct table_cursor *cursor, uint64_t number);

/* The column's number, or -1. */
int schema_column(const struct schema *schema, const char *name);

#endif
