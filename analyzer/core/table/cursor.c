/* SPDX-License-Identifier: Apache-2.0 */
/* Reads packed rows: from the beginning, a group, a flow or a row. Readers change nothing but their
 * cursor, so that any number of threads may read a table to which no rows are added. */
#include <string.h>

#include "base/bytes.h"
#include "table/packed_row.h"
#include "table/table.h"

#define CACHE_LINE   64
#define GROUP_LINES  6
#define GROUPS_AHEAD 8
#define ROWS_AHEAD   8
#define ROW_LINES    2
#define ROWS_KEPT    32768 /* read between two releases */
#define ROWS_OF_JUMP 256   /* a row elsewhere takes the memory of so many that follow each other */

/* Reads 8 bytes, 9 for the longest form, even if the number is shorter. */
static inline const uint8_t *get_varint(const uint8_t *in, int64_t *value) {
    uint64_t word = load_le64(in);
    unsigned size = (unsigned)__builtin_ctzll(word | 1u << 8) + 1;
    uint64_t bits =
        size > sizeof word ? load_le64(in + 1) : word << (64 - 8 * size) >> (64 - 7 * size);
    *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return in + size;
}

static inline const uint8_t *unpack_values(const uint8_t *in, int64_t *values,
                                           const int64_t *origins, uint64_t filled) {
    for (; filled; filled &= filled - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(filled);
        in = get_varint(in, &values[bit]);
        values[bit] = (int64_t)((uint64_t)values[bit] + (uint64_t)origins[bit]);
    }
    return in;
}

/* Returns the lowest `count` bits; a shift by 64 would be undefined. */
static inline uint64_t first_bits(uint64_t bits, size_t count) {
    return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
}

/* Unpacks the first `wanted` columns; the others must not be read. Returns the end of the row. */
static const uint8_t *unpack_row(const uint8_t *in, struct row *row, const struct schema *schema,
                                 const int64_t *origins, size_t wanted) {
    uint64_t filled[MASK_WORDS];
    uint16_t length;
    size_t mask_bytes = (schema->column_count + 7) / 8;
    _Static_assert(sizeof filled == MASK_BYTES && sizeof row->known == MASK_BYTES, "whole words");
    memcpy(&length, in, sizeof length);
    const uint8_t *end = in + length;
    in += sizeof length;
    memcpy(row->known, in, MASK_BYTES); /* a constant size; what follows the mask is cut below */
    memcpy(filled, in + mask_bytes, MASK_BYTES);
    in += 2 * mask_bytes;
    memset(row->value, 0, wanted * sizeof *row->value);
    for (size_t w = 0; w < MASK_WORDS; w++) {
        size_t here = wanted > w * 64 ? wanted - w * 64 : 0;
        row->known[w] = first_bits(row->known[w], here);
        in = unpack_values(in, row->value + w * 64, origins + w * 64, first_bits(filled[w], here));
    }
    return end;
}

static const struct table_part *part_at(const struct table *table, uint64_t place) {
    uint64_t part = place >> PART_SHIFT;
    return part == table->part ? &table->own : &table->others[part];
}

static const uint8_t *bytes_at(const struct table *table, uint64_t place) {
    return arena_at(&part_at(table, place)->rows, place & ((UINT64_C(1) << PART_SHIFT) - 1));
}

/* Flows end in another order than that of their numbers, so that the rows of the next group are
 * rarely in the cache. GCC drops a call of a function that only prefetches, so this is inlined. */
static inline __attribute__((always_inline)) void prefetch_group(const struct table *table,
                                                                 size_t group) {
    if (group >= table->groups.count || !table->groups.list[group].size)
        return;
    const uint8_t *bytes = bytes_at(table, table->groups.list[group].place);
    for (size_t line = 0; line < GROUP_LINES; line++)
        __builtin_prefetch(bytes + line * CACHE_LINE);
}

/* The same for the rows of an ordered table, which are in the order in which they ended. */
static inline __attribute__((always_inline)) void prefetch_row(const struct table *table,
                                                               uint64_t number) {
    if (number >= table->row_count)
        return;
    const uint8_t *bytes = bytes_at(table, table->order[number].place);
    for (size_t line = 0; line < ROW_LINES; line++)
        __builtin_prefetch(bytes + line * CACHE_LINE);
}

/* Leaves `group` one past the group that is read, and skips groups without rows. */
static void enter_next_group(const struct table *table, struct table_cursor *cursor) {
    while (cursor->group < table->groups.count && !table->groups.list[cursor->group].size)
        cursor->group++;
    if (cursor->group == table->groups.count)
        return;
    prefetch_group(table, cursor->group + GROUPS_AHEAD);
    cursor->left = table->groups.list[cursor->group].size;
    cursor->place = table->groups.list[cursor->group++].place;
}

/* Returns the end of the packed row or record at the cursor if the cursor has finished it, else
 * NULL. Sets `*from` to its beginning. */
static inline const uint8_t *next_at(const struct table *table, struct table_cursor *cursor,
                                     size_t columns, struct row *row, const uint8_t **from) {
    const struct table_part *part = part_at(table, cursor->place);
    *from = bytes_at(table, cursor->place);
    return table->records ? table->records->next(*from, cursor, columns, row)
                          : unpack_row(*from, row, table->schema, part->origins, columns);
}

static NOINLINE void number_interfaces(const struct table *table, struct row *row) {
    const struct interface_range *range = table->interfaces;
    for (size_t w = 0; w < MASK_WORDS; w++)
        for (uint64_t columns = table->interface_columns[w] & row->known[w]; columns;
             columns &= columns - 1) {
            int64_t *number = &row->value[w * 64 + (size_t)__builtin_ctzll(columns)];
            *number += *number >= range->first ? -(int64_t)range->first
                                               : (int64_t)range->end - range->first - range->least;
        }
}

/* Sets the values of the row at the cursor that are not packed: its flow, and a late column. */
static inline void set_others(const struct table *table, const struct table_cursor *cursor,
                              size_t columns, struct row *row) {
    if (table->grouped)
        row_set(row, 0, (int64_t)cursor->group - 1);
    else if (table->flows && row_known(row, 0))
        row->value[0] = flow_number(table->flows, row->value[0]);
    if (!table->late || table->late_column >= columns)
        return;
    uint32_t value = table->late[cursor->row];
    row_set(row, table->late_column, value);
    if (value == LATE_NULL)
        row_unset(row, table->late_column);
}

/* Gives back the memory of rows and texts that were read, of a table that may have files. */
static NOINLINE void release_rows(const struct table *table) {
    if (table->row_count < ROWS_KEPT)
        return;
    arena_release(&table->own.rows);
    for (unsigned i = 0; i < PARTS_MOST; i++) {
        arena_release(&table->texts->arenas[i]);
        if (table->others)
            arena_release(&table->others[i].rows);
    }
}

/* Counts rows that a cursor has read since the last release. */
static inline void count_read(const struct table *table, struct table_cursor *cursor,
                              uint32_t rows) {
    cursor->kept += rows;
    if (LIKELY(cursor->kept < ROWS_KEPT))
        return;
    release_rows(table);
    cursor->kept = 0;
}

/* Moves the cursor behind its row. */
static inline void leave_row(const struct table *table, struct table_cursor *cursor) {
    cursor->left--; /* wraps if the table is not grouped, where it has no meaning */
    count_read(table, cursor, ++cursor->row == table->row_count ? ROWS_KEPT : 1);
}

/* Moves the cursor to its row. The end of a chunk is unused if the largest row or record would not
 * fit: the reader must skip it by the same size as arena_reserve() did. */
static inline void find_row(const struct table *table, struct table_cursor *cursor) {
    size_t room = table->records ? table->records->room : ROW_BYTES_MAX;
    if (table->grouped && !cursor->left)
        enter_next_group(table, cursor);
    if (table->order) {
        prefetch_row(table, cursor->row + ROWS_AHEAD);
        cursor->place = table->order[cursor->row].place;
    } else if (!cursor->of_record && cursor->place % ARENA_CHUNK + room > ARENA_CHUNK) {
        cursor->place += ARENA_CHUNK - cursor->place % ARENA_CHUNK;
    }
}

bool table_next_of(const struct table *table, struct table_cursor *cursor, size_t columns,
                   struct row *row) {
    if (cursor->row == table->row_count)
        return false;
    find_row(table, cursor);
    const uint8_t *from, *end = next_at(table, cursor, columns, row, &from);
    if (end) {
        cursor->place += (uint64_t)(end - from);
        cursor->of_record = 0;
        cursor->sum = 0;
    }
    set_others(table, cursor, columns, row);
    if (table->interfaces)
        number_interfaces(table, row);
    leave_row(table, cursor);
    return true;
}

bool table_next(const struct table *table, struct table_cursor *cursor, struct row *row) {
    return table_next_of(table, cursor, table->schema->column_count, row);
}

/* Reads every row. */
static void held_by_rows(const struct table *table, struct row *held) {
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(table, &cursor, &row))
        for (size_t w = 0; w < MASK_WORDS; w++)
            held->known[w] |= row.known[w];
}

/* Reads the masks of packed rows. */
static void held_by_masks(const struct table *table, struct row *held) {
    struct table_cursor cursor = {0};
    uint64_t known[MASK_WORDS];
    uint16_t length;
    while (cursor.row < table->row_count) {
        find_row(table, &cursor);
        const uint8_t *from = bytes_at(table, cursor.place);
        memcpy(&length, from, sizeof length);
        memcpy(known, from + sizeof length, sizeof known);
        for (size_t w = 0; w < MASK_WORDS; w++)
            held->known[w] |= known[w];
        cursor.place += length;
        leave_row(table, &cursor);
    }
    for (size_t w = 0; w < MASK_WORDS; w++) /* what follows a mask is no column */
        held->known[w] = first_bits(held->known[w], table->schema->column_count > w * 64
                                                        ? table->schema->column_count - w * 64
                                                        : 0);
    if (table->grouped && table->row_count)
        row_set(held, 0, 0);
    if (!table->late)
        return;
    row_unset(held, table->late_column);
    for (uint64_t i = 0; i < table->row_count; i++)
        row_set_if(held, table->late_column, table->late[i] != LATE_NULL, 0);
}

void table_held(const struct table *table, struct row *held) {
    *held = (struct row){0};
    if (table->records)
        held_by_rows(table, held);
    else
        held_by_masks(table, held);
}

/* Moves a cursor to the last mark at or before row `number`. */
static void seek_mark(const struct table *table, struct table_cursor *cursor, uint64_t number) {
    size_t least = 0, most = table->mark_count;
    while (most - least > 1) {
        size_t middle = least + (most - least) / 2;
        if (table->marks[middle] <= number)
            least = middle;
        else
            most = middle;
    }
    cursor->group = least * MARK_GROUPS;
    cursor->row = table->mark_count ? table->marks[least] : 0;
}

uint32_t table_enter_group(const struct table *table, struct table_cursor *cursor, size_t group) {
    *cursor = (struct table_cursor){.group = group, .kept = cursor->kept};
    count_read(table, cursor, ROWS_OF_JUMP);
    if (group >= table->groups.count || !table->groups.list[group].size)
        return 0;
    enter_next_group(table, cursor);
    return cursor->left;
}

/* Returns the number of rows whose flow is null or below `flow`. */
static uint64_t rows_below(const struct table *table, int64_t flow) {
    uint64_t least = 0, most = table->row_count;
    while (least < most) {
        uint64_t middle = least + (most - least) / 2;
        struct table_cursor cursor = {.row = middle};
        struct row row;
        if (!table_next_of(table, &cursor, 1, &row))
            break;
        if (!row_known(&row, 0) || row.value[0] < flow)
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

uint32_t table_enter_flow(const struct table *table, struct table_cursor *cursor, uint32_t flow) {
    uint64_t first = rows_below(table, flow), after = rows_below(table, (int64_t)flow + 1);
    *cursor = (struct table_cursor){.row = first, .kept = cursor->kept};
    count_read(table, cursor, ROWS_OF_JUMP);
    return (uint32_t)(after - first);
}

/* Skips whole groups without unpacking a row. Inside a group, or in a table without groups, the
 * rows before `number` must be unpacked, because packed rows have no index. */
void table_seek(const struct table *table, struct table_cursor *cursor, uint64_t number) {
    struct row row;
    *cursor = (struct table_cursor){.kept = cursor->kept};
    count_read(table, cursor, ROWS_OF_JUMP);
    seek_mark(table, cursor, number);
    while (table->grouped && cursor->group < table->groups.count &&
           number - cursor->row >= table->groups.list[cursor->group].size)
        cursor->row += table->groups.list[cursor->group++].size;
    if (table->order)
        cursor->row = number < table->row_count ? number : table->row_count;
    while (cursor->row < number && table_next_of(table, cursor, 0, &row))
        continue;
}
