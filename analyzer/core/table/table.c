/* SPDX-License-Identifier: Apache-2.0 */
/* A packed row: its length in 16 bits, so that columns that a reader does not want cost nothing,
 * one bit per column that is known, one bit per known column that is not 0, then the differences of
 * those values from the table's origins as zigzag varints. The first byte of a varint gives its
 * length, so that it is written and read at once: 7 bits per byte, and as many 0 bits below the
 * lowest 1 as bytes follow; 8 if there is no 1. A row begins a new chunk if the largest row would
 * not fit, so that a reader finds it by the same rule.
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

#define KNOWN_BIT        16
#define TYPE_KNOWN(type) (TYPE_##type | KNOWN_BIT)
#define COLUMN(name, type, unit, meaning)                                                          \
    {#name, unit, meaning, TYPE_##type & ~KNOWN_BIT, (TYPE_##type & KNOWN_BIT) != 0},
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

#define MASK_WORDS    (COLUMNS_MAX / 64)
#define MASK_BYTES    (MASK_WORDS * sizeof(uint64_t))
#define VARINT_MAX    10
#define ORIGIN_LEAST  (INT64_C(1) << 48)
#define LENGTH_BYTES  sizeof(uint16_t)
#define ROW_BYTES_MAX (LENGTH_BYTES + 2 * MASK_BYTES + COLUMNS_MAX * VARINT_MAX)
#define CACHE_LINE    64
#define GROUP_LINES   6
#define GROUPS_AHEAD  8
#define ROWS_AHEAD    8
#define ROW_LINES     2
_Static_assert(ROW_BYTES_MAX <= UINT16_MAX, "a row's length has 16 bits");

/* Numbers of texts are near the first one of their part. */
void table_init(struct table *table, enum table_number number, const struct string_table *texts,
                unsigned part, bool grouped) {
    *table = (struct table){
        .schema = &schemas[number], .texts = texts, .part = part, .grouped = grouped};
    for (unsigned c = 0; c < table->schema->column_count; c++)
        if (table->schema->columns[c].type >= TYPE_TEXT)
            table->own.origins[c] = (int64_t)((uint64_t)part << PART_SHIFT);
}

void table_free(struct table *table) {
    arena_free(&table->own.rows);
    for (unsigned i = 0; table->others && i < PARTS_MOST; i++)
        arena_free(&table->others[i].rows);
    free(table->others);
    free(table->groups.list);
    free(table->marks);
    free(table->order);
    free(table->amendments);
    free(table->late);
}

static struct table_groups *groups_of(struct table *table) {
    return table->filled ? table->filled : &table->groups;
}

bool table_groups_reserve(struct table_groups *groups, size_t count) {
    if (!list_grow(&groups->list, &groups->room, count, sizeof *groups->list))
        return false;
    while (groups->count < count)
        groups->list[groups->count++] = (struct table_group){0};
    return true;
}

bool table_begin_group(struct table *table, uint32_t group) {
    table->group = group;
    return table_groups_reserve(groups_of(table), (size_t)group + 1);
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

/* Reads 8 bytes, 9 for the longest form, even if the number is shorter. */
static inline const uint8_t *get_varint(const uint8_t *in, int64_t *value) {
    uint64_t word = load_le64(in);
    unsigned size = (unsigned)__builtin_ctzll(word | 1u << 8) + 1;
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

/* Differences wrap: unpacking adds with the same modulus, so every value is restored. */
static uint8_t *pack_row(uint8_t *out, const struct row *row, const struct table *table) {
    uint64_t filled[MASK_WORDS] = {0};
    size_t columns = table->schema->column_count, mask_bytes = (columns + 7) / 8;
    uint8_t *masks = out + LENGTH_BYTES, *end = masks + 2 * mask_bytes;
    for (size_t w = 0; w * 64 < columns; w++)
        end = pack_values(end, row->value + w * 64, table->own.origins + w * 64, row->known[w],
                          &filled[w]);
    uint16_t length = (uint16_t)(end - out);
    memcpy(out, &length, sizeof length);
    memcpy(masks, row->known, mask_bytes);
    memcpy(masks + mask_bytes, filled, mask_bytes);
    return end;
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

static uint64_t place_of(const struct table *table, uint64_t offset) {
    return (uint64_t)table->part << PART_SHIFT | offset;
}

/* Rows of a group must be contiguous, so only the first one needs its offset. */
static void count_in_group(struct table *table, uint64_t offset, uint32_t rows) {
    struct table_group *group = &groups_of(table)->list[table->group];
    if (!group->size)
        group->place = place_of(table, offset);
    group->size += rows;
}

/* Large values such as times are close to those of the first row, so their differences are
 * short. In ns since the epoch, ORIGIN_LEAST is three days: counters stay below it and keep the
 * origin 0. */
static void choose_origins(struct table *table, const struct row *row) {
    for (unsigned c = 0; c < table->schema->column_count; c++)
        if (row_known(row, c) && row->value[c] >= ORIGIN_LEAST)
            table->own.origins[c] = row->value[c];
    table->own.begun = true;
}

/* Reserves the size of the largest row and returns the rest, so that the row is packed in place. */
static bool add_at(struct table *table, const struct row *row, uint64_t *offset) {
    uint8_t *place = arena_reserve(&table->own.rows, ROW_BYTES_MAX, offset);
    if (!place)
        return false;
    if (!table->own.begun)
        choose_origins(table, row);
    uint8_t *end = pack_row(place, row, table);
    arena_trim(&table->own.rows, ROW_BYTES_MAX - (size_t)(end - place));
    table->row_count++;
    return true;
}

bool table_add(struct table *table, const struct row *row) {
    uint64_t offset;
    if (!add_at(table, row, &offset))
        return false;
    if (table->grouped)
        count_in_group(table, offset, 1);
    return true;
}

bool table_add_ordered(struct table *table, const struct row *row, struct row_order *order) {
    uint64_t offset;
    if (!list_grow(&table->order, &table->order_room, table->row_count + 1, sizeof *table->order) ||
        !add_at(table, row, &offset))
        return false;
    order->place = place_of(table, offset);
    table->order[table->row_count - 1] = *order;
    return true;
}

/* A record begins a new chunk if the greatest one would not fit, as a row does. */
uint8_t *table_add_record(struct table *table, const struct record_kind *kind, size_t size,
                          uint32_t rows) {
    uint64_t offset;
    uint8_t *place = arena_reserve(&table->own.rows, kind->room, &offset);
    if (!place)
        return NULL;
    arena_trim(&table->own.rows, kind->room - size);
    table->records = kind;
    if (table->grouped)
        count_in_group(table, offset, rows);
    table->row_count += rows;
    return place;
}

bool table_amend(struct table *table, uint64_t row, uint64_t at, unsigned column, bool known,
                 int64_t value) {
    if (!list_grow(&table->amendments, &table->amendment_room, table->amendment_count + 1,
                   sizeof *table->amendments))
        return false;
    uint32_t index = (uint32_t)table->amendment_count++;
    table->amendments[index] = (struct amendment){row, at, value, index, (uint16_t)column, !known};
    return true;
}

/* Appends the lists of another part. */
static bool join_lists(struct table *table, struct table *other) {
    uint64_t rows = table->row_count + other->row_count;
    size_t amendments = table->amendment_count + other->amendment_count;
    if ((other->order &&
         !list_grow(&table->order, &table->order_room, rows, sizeof *table->order)) ||
        !list_grow(&table->amendments, &table->amendment_room, amendments,
                   sizeof *table->amendments))
        return false;
    if (other->order)
        memcpy(table->order + table->row_count, other->order,
               other->row_count * sizeof *other->order);
    if (other->amendment_count)
        memcpy(table->amendments + table->amendment_count, other->amendments,
               other->amendment_count * sizeof *other->amendments);
    table->row_count = rows;
    table->amendment_count = amendments;
    return true;
}

bool table_join(struct table *table, struct table *other) {
    if (!other->row_count && !other->amendment_count)
        return true;
    if (!table->others && !(table->others = calloc(PARTS_MOST, sizeof *table->others)))
        return false;
    if (!join_lists(table, other))
        return false;
    table->others[other->part] = other->own;
    table->records = table->records ? table->records : other->records;
    other->own = (struct table_part){0};
    other->row_count = other->amendment_count = 0;
    return true;
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
    uint64_t name = table->order ? cursor->place : cursor->row;
    const uint8_t *from, *end = next_at(table, cursor, columns, row, &from);
    if (end) {
        cursor->place += (uint64_t)(end - from);
        cursor->of_record = 0;
        cursor->sum = 0;
    }
    if (table->amendment_count)
        apply_amendments(table, name, row);
    set_others(table, cursor, columns, row);
    cursor->left--; /* wraps if the table is not grouped, where it has no meaning */
    cursor->row++;
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

/* Reads the masks of packed rows, of a table without amendments. */
static void held_by_masks(const struct table *table, struct row *held) {
    struct table_cursor cursor = {0};
    uint64_t known[MASK_WORDS];
    uint16_t length;
    for (; cursor.row < table->row_count; cursor.row++, cursor.left--) {
        find_row(table, &cursor);
        const uint8_t *from = bytes_at(table, cursor.place);
        memcpy(&length, from, sizeof length);
        memcpy(known, from + sizeof length, sizeof known);
        for (size_t w = 0; w < MASK_WORDS; w++)
            held->known[w] |= known[w];
        cursor.place += length;
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
    if (table->records || table->amendment_count)
        held_by_rows(table, held);
    else
        held_by_masks(table, held);
}

static uint64_t rows_before(const struct table *table, size_t group) {
    size_t mark = group / MARK_GROUPS < table->mark_count ? group / MARK_GROUPS : 0;
    uint64_t rows = table->mark_count ? table->marks[mark] : 0;
    for (size_t i = mark * MARK_GROUPS; i < group; i++)
        rows += table->groups.list[i].size;
    return rows;
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
    *cursor = (struct table_cursor){.group = group};
    if (group >= table->groups.count || !table->groups.list[group].size)
        return 0;
    if (table->amendment_count)
        cursor->row = rows_before(table, group);
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
    *cursor = (struct table_cursor){.row = first};
    return (uint32_t)(after - first);
}

/* Skips whole groups without unpacking a row. Inside a group, or in a table without groups, the
 * rows before `number` must be unpacked, because packed rows have no index. */
void table_seek(const struct table *table, struct table_cursor *cursor, uint64_t number) {
    struct row row;
    *cursor = (struct table_cursor){0};
    seek_mark(table, cursor, number);
    while (table->grouped && cursor->group < table->groups.count &&
           number - cursor->row >= table->groups.list[cursor->group].size)
        cursor->row += table->groups.list[cursor->group++].size;
    if (table->order)
        cursor->row = number < table->row_count ? number : table->row_count;
    while (cursor->row < number && table_next_of(table, cursor, 0, &row))
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
