/* SPDX-License-Identifier: Apache-2.0 */
/* A growing table of packed rows, which can be read any number of times.
 *
 * A packed row stores only values that are neither null nor 0, so that a finished flow takes some
 * hundred bytes although the tables are wide. Rows of a grouped table are added flow by flow, in
 * any order of flows, and are read in the order of flow numbers.
 *
 * Several workers fill a table without a lock: each has a part of it, with texts of its own, and
 * table_join() makes one table of them without copying a row. A place, the number of a text or of a
 * row, holds its part in the upper bits.
 *
 * Nothing may be read before all rows are added; then any number of threads may read a table,
 * each with its own cursor. Memory grows until table_free(), so that callers must bound the number
 * of rows. If an addition returns false, memory is exhausted and the analysis must fail, because a
 * row is missing. */
#ifndef WIRETALE_TABLE_H
#define WIRETALE_TABLE_H

#include <stdlib.h>

#include "base/arena.h"
#include "table/schema.h"

/* Texts and addresses of table rows, referenced by number. Equal texts are not merged. */
#define TEXT_MAX         8191 /* bytes of one text; a longer one is cut and ends in UTF8_CUT */
#define ADDRESS_TEXT_MAX 46

#define PARTS_MOST 64u /* workers */
#define PART_SHIFT 48u /* a place is the part, then the offset in its arena */

struct string_table {
    struct arena arenas[PARTS_MOST]; /* by part; before string_table_join() only that of `part` */
    unsigned part;
};

/* Moves the texts of another part into `store`; the other is empty then. */
void string_table_join(struct string_table *store, struct string_table *other);

/* Adds a text; malformed UTF-8 becomes U+FFFD. Returns its number, -1 without memory. The number
 * is valid as long as the store; the text is copied. */
int64_t string_table_add(struct string_table *store, const char *text);
/* The same without changing any byte, as of a path; more than TEXT_MAX bytes are cut. */
int64_t string_table_add_bytes(struct string_table *store, const void *bytes, size_t size);
/* `address` has 4 bytes if `version` is 4, else 16. Returns its number, -1 without memory. */
int64_t string_table_add_address(struct string_table *store, unsigned version,
                                 const uint8_t *address);

/* Returns text `number` and sets its size in bytes, unless that is NULL; it has no final NUL. */
const char *string_table_get(const struct string_table *store, int64_t number, size_t *size);
/* Returns the value of a column of type WORD or above as text, which may be in the buffer. */
const char *string_table_text(const struct string_table *store, enum column_type type,
                              int64_t value, char buffer[static ADDRESS_TEXT_MAX], size_t *size);
void string_table_free(struct string_table *store);

/* A row as it is filled and read. row_clear() clears only `known`: the value of a null column is
 * undefined until it is packed, and 0 after it is unpacked. */
struct row {
    uint64_t known[(COLUMNS_MAX + 63) / 64]; /* bit i: value[i] is not null */
    /* A REAL as its bits, a WORD or TEXT as its number, a BOOL as 0 or 1. */
    int64_t value[COLUMNS_MAX];
};

struct table_cursor;

/* A packed form of several rows at once, which are computed when they are read. It serves tables
 * whose rows resemble each other, such as the bins of a series. The kind is static; its function
 * must not change the record. */
struct record_kind {
    size_t room; /* bytes of the greatest record */
    /* Unpacks at least the first `columns` columns of the row at the cursor; null columns must
     * be 0. Returns the end of the record with its last row, else NULL. */
    const uint8_t *(*next)(const uint8_t *record, struct table_cursor *cursor, size_t columns,
                           struct row *row);
};

struct table_group {
    uint64_t place; /* of its first row; undefined without rows */
    uint32_t size;  /* rows */
} __attribute__((packed, aligned(4)));

struct table_groups {
    struct table_group *list; /* by number */
    size_t count, room;
};

/* The position of a row among those of all parts. */
struct row_order {
    uint64_t at;    /* the packet, or the time between packets, that wrote it */
    uint64_t minor; /* of rows with equal `at` */
    uint64_t place;
};

/* Numbers of flows: each shard counts its own during a batch. */
struct flow_numbers {
    unsigned shard_bits; /* lower bits of a provisional number: the shard */
    uint32_t count;      /* the next final number */
    uint32_t **final;    /* by shard and provisional number; NULL if these are final */
};

static inline int64_t flow_number(const struct flow_numbers *numbers, int64_t provisional) {
    uint64_t shard = (uint64_t)provisional & ((UINT64_C(1) << numbers->shard_bits) - 1);
    return numbers->final ? numbers->final[shard][provisional >> numbers->shard_bits] : provisional;
}

/* Numbers of interfaces, if rows refer to some before those that the analysis has now, which come
 * first: [first, end), then [least, first). */
struct interface_range {
    uint32_t least, first, end;
};

struct table_part {
    struct arena rows;
    int64_t origins[COLUMNS_MAX]; /* values are packed as differences from these */
    bool begun;                   /* it has a row, which chose the origins */
};

#define MARK_GROUPS 64

/* Other folders may read schema, texts, row_count, grouped and the groups' sizes; everything
 * else should be left to this folder. */
struct table {
    const struct schema *schema;
    const struct string_table *texts;
    const struct record_kind *records; /* NULL: each row is packed by itself */
    struct table_part own;             /* the part to which rows are added */
    unsigned part;                     /* its number */
    struct table_part *others;         /* PARTS_MOST of them; NULL if all rows are in `own` */
    uint64_t row_count;
    bool grouped;
    struct table_groups groups;
    struct table_groups *filled; /* the groups to which rows are added; NULL: `groups` */
    size_t group;                /* the group to which rows are added */
    uint64_t *marks;             /* the number of the first row of each MARK_GROUPS-th group */
    size_t mark_count;
    struct row_order *order; /* of an ordered table, else NULL */
    size_t order_room;
    const struct flow_numbers *flows; /* of an ordered table, whose first column is the flow */
    bool by_flow;                     /* an ordered table is sorted by it */
    const struct interface_range *interfaces; /* by which those columns are numbered, else NULL */
    uint64_t interface_columns[(COLUMNS_MAX + 63) / 64];
    uint32_t *late; /* by row, the values of a column that is known after the pass; NULL: none */
    unsigned late_column;
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

/* Makes a value null. It must be 0, as table_next() promises. */
static inline void row_unset(struct row *row, unsigned column) {
    row->known[column / 64] &= ~(UINT64_C(1) << column % 64);
    row->value[column] = 0;
}

static inline bool row_known(const struct row *row, unsigned column) {
    return row->known[column / 64] >> column % 64 & 1;
}

/* Makes an empty table without allocating. `texts` must outlive it. Rows are added to part `part`,
 * which is below PARTS_MOST. If it is grouped, its first column must be the flow, which readers
 * derive from the group. */
void table_init(struct table *table, enum table_number number, const struct string_table *texts,
                unsigned part, bool grouped);
void table_free(struct table *table);

/* Return false without memory. Rows that are added between two calls of table_begin_group()
 * belong to the group of the first call; a group must be begun only once. */
bool table_begin_group(struct table *table, uint32_t group);
/* Makes `count` groups, all empty but those that exist. Returns false without memory. */
bool table_groups_reserve(struct table_groups *groups, size_t count);
bool table_add(struct table *table, const struct row *row);

/* Adds a record of `size` bytes, at most kind->room, with at least one row. Returns its place, into
 * which the caller writes it; NULL without memory. A table has either records or single rows. */
uint8_t *table_add_record(struct table *table, const struct record_kind *kind, size_t size,
                          uint32_t rows);

/* Adds a row at a position among the rows of all parts, whose place is set. Returns false without
 * memory. */
bool table_add_ordered(struct table *table, const struct row *row, const struct row_order *order);

/* Sets the columns that are numbers of interfaces. Returns whether there are some. */
bool table_find_interfaces(struct table *table);

#define LATE_NULL UINT32_MAX
/* Sets a column of all rows of an ordered table to a list of row_count values, LATE_NULL for null;
 * the table frees it. No row may be added or sorted after. */
static inline void table_set_late(struct table *table, unsigned column, uint32_t *values) {
    free(table->late);
    table->late = values;
    table->late_column = column;
}

/* Moves the rows of another part of the same table into it; the other is empty then. Its groups
 * stay, as they belong to the caller. Returns false without memory. */
bool table_join(struct table *table, struct table *other);

/* Sorts ordered rows, and marks groups. Must be called after the last of them. */
void table_settle(struct table *table);

#define SORT_COLUMNS_MOST 4u
/* Sorts the rows of an ordered table by the values of these columns; null is least, and equal rows
 * keep their order. Returns false without memory. */
bool table_sort(struct table *table, const unsigned columns[static SORT_COLUMNS_MOST]);

/* A position to read from; {0} is the beginning of the table. */
struct table_cursor {
    uint64_t row;       /* rows read so far */
    uint64_t place;     /* of the next packed row, or of the record that holds it */
    size_t group;       /* the next group to enter */
    uint32_t left;      /* rows left of the group */
    uint32_t of_record; /* rows read of the record */
    uint32_t kept;      /* rows read whose memory was not given back */
    uint64_t sum;       /* running sum over the rows of a record; its meaning belongs to the kind */
};

/* Unpacks the next row; returns false at the end. Values of null columns are 0. The first column
 * of a grouped table is the group. */
bool table_next(const struct table *table, struct table_cursor *cursor, struct row *row);

/* The same for the first `columns` columns; the values of the others must not be read. */
bool table_next_of(const struct table *table, struct table_cursor *cursor, size_t columns,
                   struct row *row);

/* Sets the known bits of the columns that are not null in every row, and no value. */
void table_held(const struct table *table, struct row *held);

/* Moves a cursor to the first row of a group. Returns the number of its rows, 0 if the group has
 * none; the caller must then not read. */
uint32_t table_enter_group(const struct table *table, struct table_cursor *cursor, size_t group);

/* The same for the rows of a flow in a table that is sorted by flow (by_flow). */
uint32_t table_enter_flow(const struct table *table, struct table_cursor *cursor, uint32_t flow);

/* Moves a cursor to row `number`. If the table has fewer rows, the cursor is at the end. The
 * rows before it in the same group, or in an ungrouped table, are read. */
void table_seek(const struct table *table, struct table_cursor *cursor, uint64_t number);

/* Returns the number of a column, -1 if there is none of that name. */
int schema_column(const struct schema *schema, const char *name);

/* Returns a set of the flow numbers below `limit`, and the number of its bits, one more than the
 * greatest of them. NULL without memory; the caller must free() it. */
uint8_t *flow_set(const uint32_t *flows, size_t count, uint32_t limit, uint32_t *bits);

#endif
