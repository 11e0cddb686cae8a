/* SPDX-License-Identifier: Apache-2.0 */
/* A packed row: one bit per column that is known, one bit per known column that is not 0, then the
 * differences of those values from the table's origins as zigzag varints. The first byte of a
 * varint gives its length, so that it is written and read at once: 7 bits per byte, and as many 0
 * bits below the lowest 1 as bytes follow; 8 if there is no 1. A row begins a new chunk if the
 * largest row would not fit, so that a reader finds it by the same rule.
 *
 * Words of 8 bytes may be written and read past the end of a value, but never past ROW_BYTES_MAX
 * from the beginning of the row, which is reserved in one chunk. Packing cannot fail; only growth
 * of the arena and of the lists can.
 *
 * Readers change nothing but their cursor, so that any number of threads may read a table to
 * which no rows are added. */
#include "table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* --- schemas ---------------------------------------------------------------------------------- */

#define COLUMN(name, type, unit, meaning) {#name, unit, meaning, TYPE_##type},
#define TABLE(name, columns, meaning)                                                              \
    _Static_assert(name##_column_count <= COLUMNS_MAX, #name);                                     \
    static const struct column name##_columns[] = {columns(COLUMN)};
TABLES(TABLE)
#undef TABLE

const struct schema schemas[TABLE_COUNT] = {
#define TABLE(name, columns, meaning) {#name, meaning, name##_columns, name##_column_count},
    TABLES(TABLE)
#undef TABLE
};

/* --- packed rows ------------------------------------------------------------------------------ */

#define MASK_BYTES    ((COLUMNS_MAX + 7) / 8)
#define VARINT_MAX    10
#define ORIGIN_LEAST  (INT64_C(1) << 48)
#define ROW_BYTES_MAX (2 * MASK_BYTES + COLUMNS_MAX * VARINT_MAX)

void table_init(struct table *table, enum table_number number, const struct string_table *texts,
                bool grouped) {
    *table = (struct table){.schema = &schemas[number], .texts = texts, .grouped = grouped};
}

void table_free(struct table *table) {
    arena_free(&table->rows);
    free(table->groups);
    free(table->amendments);
    free(table->moved);
}

bool table_begin_group(struct table *table, uint32_t group) {
    if (!list_grow(&table->groups, &table->group_room, (size_t)group + 1, sizeof *table->groups))
        return false;
    while (table->group_count <= group)
        table->groups[table->group_count++] = (struct table_group){0};
    table->group = group;
    return true;
}

/* Returns the end of the number; up to 7 bytes after it may be overwritten. Zigzag makes small
 * negative differences short as well. */
static inline uint8_t *put_varint(uint8_t *out, int64_t value) {
    uint64_t bits = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
    unsigned following = (63 - (unsigned)__builtin_clzll(bits | 1)) * 37 >> 8; /* a seventh */
    if (following >= sizeof bits) {
        *out = 0;
        memcpy(out + 1, &bits, sizeof bits);
        return out + 1 + sizeof bits;
    }
    bits = (bits << 1 | 1) << following; /* the low bits are in the first byte (bytes.h) */
    memcpy(out, &bits, sizeof bits);
    return out + following + 1;
}

/* Returns the length in bytes of the varint that begins with these 8. */
static inline unsigned varint_size(uint64_t word) {
    return (unsigned)__builtin_ctzll(word | 1u << 8) + 1;
}

/* Reads 8 bytes, 9 for the longest form, even if the number is shorter. */
static inline const uint8_t *get_varint(const uint8_t *in, int64_t *value) {
    uint64_t word = load_le64(in);
    unsigned size = varint_size(word);
    uint64_t bits =
        size > sizeof word ? load_le64(in + 1) : word << (64 - 8 * size) >> (64 - 7 * size);
    *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return in + size;
}

/* Packs the values of 64 columns and sets a bit in `filled` for each that is written. */
static inline uint8_t *pack_values(uint8_t *out, const int64_t *values, const int64_t *origins,
                                   uint64_t known, uint64_t *filled) {
    uint64_t written = 0;
    for (; known; known &= known - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(known);
        if (!values[bit])
            continue;
        written |= known & -known;
        out = put_varint(out, (int64_t)((uint64_t)values[bit] - (uint64_t)origins[bit]));
    }
    *filled = written;
    return out;
}

/* `filled` has two words because COLUMNS_MAX is 128. Differences wrap: unpacking adds with the
 * same modulus, so every value is restored. */
static uint8_t *pack_row(uint8_t *out, const struct row *row, const struct table *table) {
    uint64_t filled[2] = {0, 0};
    size_t columns = table->schema->column_count, mask_bytes = (columns + 7) / 8;
    uint8_t *end = out + 2 * mask_bytes;
    for (size_t w = 0; w * 64 < columns; w++)
        end = pack_values(end, row->value + w * 64, table->origins + w * 64, row->known[w],
                          &filled[w]);
    memcpy(out, row->known, mask_bytes);
    memcpy(out + mask_bytes, filled, mask_bytes);
    return end;
}

static const uint8_t *unpack_values(const uint8_t *in, int64_t *values, const int64_t *origins,
                                    uint64_t filled) {
    for (; filled; filled &= filled - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(filled);
        in = get_varint(in, &values[bit]);
        values[bit] = (int64_t)((uint64_t)values[bit] + (uint64_t)origins[bit]);
    }
    return in;
}

/* Skips one varint for each bit that is set. Only its first byte is needed, so that columns that
 * a reader does not ask for cost little. */
static const uint8_t *skip_values(const uint8_t *in, uint64_t filled) {
    for (; filled; filled &= filled - 1)
        in += varint_size(load_le64(in));
    return in;
}

/* Returns the lowest `count` bits; a shift by 64 would be undefined. */
static inline uint64_t first_bits(uint64_t bits, size_t count) {
    return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
}

/* Unpacks at least the first `wanted` columns; the others must not be read. Returns the end of
 * the row, unless it is the last one of its group, which needs no end. */
static const uint8_t *unpack_row(const uint8_t *in, struct row *row, const struct table *table,
                                 size_t wanted, bool last) {
    uint64_t filled[2];
    size_t columns = table->schema->column_count, mask_bytes = (columns + 7) / 8;
    _Static_assert(sizeof filled == MASK_BYTES && sizeof row->known == MASK_BYTES, "whole words");
    memcpy(row->known, in, MASK_BYTES); /* a constant size; what follows the mask is cut below */
    memcpy(filled, in + mask_bytes, MASK_BYTES);
    in += 2 * mask_bytes;
    memset(row->value, 0, wanted * sizeof *row->value);
    for (size_t w = 0; w < 2; w++) {
        size_t before = w * 64, here = columns > before ? columns - before : 0;
        row->known[w] = first_bits(row->known[w], here);
        filled[w] = first_bits(filled[w], here);
        uint64_t read = first_bits(filled[w], wanted > before ? wanted - before : 0);
        in = unpack_values(in, row->value + w * 64, table->origins + w * 64, read);
        if (!last)
            in = skip_values(in, filled[w] & ~read);
    }
    return in;
}

/* Rows of a group must be contiguous, so only the first one needs its offset. */
static void count_in_group(struct table *table, uint64_t offset, uint32_t rows) {
    struct table_group *group = &table->groups[table->group];
    if (!group->size)
        group->offset = offset;
    group->size += rows;
}

/* Large values such as times are close to those of the first row, so their differences are
 * short. In ns since the epoch, ORIGIN_LEAST is three days: counters stay below it and keep the
 * origin 0. */
static void choose_origins(struct table *table, const struct row *row) {
    for (unsigned c = 0; c < table->schema->column_count; c++)
        if (row_known(row, c) && row->value[c] >= ORIGIN_LEAST)
            table->origins[c] = row->value[c];
}

/* Reserves the size of the largest row and returns the rest, so that the row is packed in place. */
bool table_add(struct table *table, const struct row *row) {
    uint64_t offset;
    uint8_t *place = arena_reserve(&table->rows, ROW_BYTES_MAX, &offset);
    if (!place)
        return false;
    if (table->grouped)
        count_in_group(table, offset, 1);
    if (!table->row_count)
        choose_origins(table, row);
    uint8_t *end = pack_row(place, row, table);
    arena_trim(&table->rows, ROW_BYTES_MAX - (size_t)(end - place));
    table->row_count++;
    return true;
}

uint8_t *table_begin_record(struct table *table, const struct record_kind *kind) {
    table->records = kind;
    return arena_reserve(&table->rows, kind->room, &table->record_offset);
}

void table_add_record(struct table *table, const uint8_t *end, uint32_t rows) {
    const uint8_t *record = arena_at(&table->rows, table->record_offset);
    arena_trim(&table->rows, table->records->room - (size_t)(end - record));
    if (table->grouped)
        count_in_group(table, table->record_offset, rows);
    table->row_count += rows;
}

/* `moved` exists only if rows are added out of order: 4 bytes per row until table_settle(). Rows
 * added before the first call are entered with their own number. The list limits such a table to
 * 2^32 rows. */
bool table_begin_moved(struct table *table, size_t count) {
    uint64_t needed = table->row_count + count;
    if (!list_grow(&table->moved, &table->moved_room, needed, sizeof *table->moved))
        return false;
    while (table->moved_count < table->row_count) { /* rows whose place is their number */
        table->moved[table->moved_count] = (uint32_t)table->moved_count;
        table->moved_count++;
    }
    table->moved_count = needed;
    table->moved_first = table->row_count;
    return true;
}

bool table_add_moved(struct table *table, uint32_t number, const struct row *row) {
    table->moved[table->moved_first + number] = (uint32_t)table->row_count;
    return table_add(table, row);
}

/* Exchanges only offsets and sizes; the rows stay in place. `ranks` must be a permutation. The
 * current group is undefined afterwards: table_begin_group() must come before the next row. */
bool table_permute_groups(struct table *table, uint32_t first, const uint32_t *ranks,
                          size_t count) {
    if (table->group_count <= first)
        return true;
    if (!table_begin_group(table, first + (uint32_t)count - 1))
        return false;
    struct table_group *groups = malloc(count * sizeof *groups);
    if (!groups)
        return false;
    for (size_t i = 0; i < count; i++)
        groups[ranks[i]] = table->groups[first + i];
    memcpy(table->groups + first, groups, count * sizeof *groups);
    free(groups);
    return true;
}

bool table_amend(struct table *table, uint64_t row, unsigned column, bool known, int64_t value) {
    if (!list_grow(&table->amendments, &table->amendment_room, table->amendment_count + 1,
                   sizeof *table->amendments))
        return false;
    uint32_t order = (uint32_t)table->amendment_count++;
    table->amendments[order] = (struct amendment){row, column, order, value, !known};
    return true;
}

/* qsort() is not stable, so the order of the calls is part of the key. */
static int compare_amendments(const void *left, const void *right) {
    const struct amendment *a = left, *b = right;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Must be called once, after the last row and amendment: it replaces original numbers by places,
 * and sorts, because apply_amendments() uses binary search. */
void table_settle(struct table *table) {
    for (size_t i = 0; i < table->amendment_count; i++)
        if (table->amendments[i].row < table->moved_count)
            table->amendments[i].row = table->moved[table->amendments[i].row];
    free(table->moved);
    table->moved = NULL;
    table->moved_count = table->moved_room = 0;
    if (table->amendment_count)
        qsort(table->amendments, table->amendment_count, sizeof *table->amendments,
              compare_amendments);
}

/* Applies the changes of a row in the order of their calls, so that the last one wins. */
static void apply_amendments(const struct table *table, uint64_t number, struct row *row) {
    size_t low = 0, high = table->amendment_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table->amendments[middle].row < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < table->amendment_count && table->amendments[low].row == number; low++) {
        const struct amendment *amendment = &table->amendments[low];
        if (amendment->null)
            row_unset(row, amendment->column);
        else
            row_set(row, amendment->column, amendment->value);
    }
}

/* Leaves `group` one past the group that is read, and skips groups without rows. */
static void enter_next_group(const struct table *table, struct table_cursor *cursor) {
    while (cursor->group < table->group_count && !table->groups[cursor->group].size)
        cursor->group++;
    if (cursor->group == table->group_count)
        return;
    cursor->left = table->groups[cursor->group].size;
    cursor->offset = table->groups[cursor->group++].offset;
}

/* Returns the end of the packed row or record at `place` if the cursor has finished it, else
 * NULL. */
static inline const uint8_t *next_at(const struct table *table, const uint8_t *place,
                                     struct table_cursor *cursor, size_t columns, struct row *row) {
    return table->records
               ? table->records->next(place, cursor, columns, row)
               : unpack_row(place, row, table, columns, table->grouped && cursor->left == 1);
}

/* The rest of a chunk is unused if the largest row or record would not fit: the reader must skip
 * it by the same size as arena_reserve() did. The last row of a group needs no end, because the
 * next group has its own offset. */
bool table_next_of(const struct table *table, struct table_cursor *cursor, size_t columns,
                   struct row *row) {
    size_t room = table->records ? table->records->room : ROW_BYTES_MAX;
    if (cursor->row == table->row_count)
        return false;
    if (table->grouped && !cursor->left)
        enter_next_group(table, cursor);
    if (!cursor->of_record && cursor->offset % ARENA_CHUNK + room > ARENA_CHUNK)
        cursor->offset += ARENA_CHUNK - cursor->offset % ARENA_CHUNK;
    const uint8_t *place = arena_at(&table->rows, cursor->offset);
    const uint8_t *end = next_at(table, place, cursor, columns, row);
    if (end) {
        cursor->offset += (uint64_t)(end - place);
        cursor->of_record = 0;
        cursor->sum = 0;
    }
    if (table->amendment_count)
        apply_amendments(table, cursor->row, row);
    if (table->grouped)
        row_set(row, 0, (int64_t)cursor->group - 1);
    cursor->left--; /* wraps if the table is not grouped, where it has no meaning */
    cursor->row++;
    return true;
}

bool table_next(const struct table *table, struct table_cursor *cursor, struct row *row) {
    return table_next_of(table, cursor, table->schema->column_count, row);
}

/* Most grouped tables that are amended have one row in each group. */
static uint64_t rows_before(const struct table *table, size_t group) {
    uint64_t rows = 0;
    if (table->row_count == table->group_count)
        return group;
    for (size_t i = 0; i < group; i++)
        rows += table->groups[i].size;
    return rows;
}

uint32_t table_enter_group(const struct table *table, struct table_cursor *cursor, size_t group) {
    *cursor = (struct table_cursor){.group = group};
    if (group >= table->group_count || !table->groups[group].size)
        return 0;
    if (table->amendment_count)
        cursor->row = rows_before(table, group);
    enter_next_group(table, cursor);
    return cursor->left;
}

/* Skips whole groups without unpacking a row. Inside a group, or in a table without groups, the
 * rows before `number` must be unpacked, because packed rows have no index. */
void table_seek(const struct table *table, struct table_cursor *cursor, uint64_t number) {
    struct row row;
    *cursor = (struct table_cursor){0};
    while (table->grouped && cursor->group < table->group_count &&
           number - cursor->row >= table->groups[cursor->group].size)
        cursor->row += table->groups[cursor->group++].size;
    while (cursor->row < number && table_next(table, cursor, &row))
        continue;
}

/* A linear search: callers look up a name once per pass, not per row. */
int schema_column(const struct schema *schema, const char *name) {
    for (size_t i = 0; i < schema->column_count; i++)
        if (!strcmp(schema->columns[i].name, name))
            return (int)i;
    return -1;
}

uint8_t *flow_set(const uint32_t *flows, size_t count, uint32_t limit, uint32_t *bits) {
    *bits = 0;
    for (size_t i = 0; i < count; i++)
        if (flows[i] < limit && flows[i] >= *bits)
            *bits = flows[i] + 1;
    uint8_t *set = calloc(*bits / 8 + 1, 1);
    for (size_t i = 0; set && i < count; i++)
        if (flows[i] < *bits)
            set[flows[i] / 8] |= (uint8_t)(1u << flows[i] % 8);
    return set;
}
