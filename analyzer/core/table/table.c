/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas of all tables, and rows that are added and joined. Packing cannot fail; only
 * growth of the arena and of the lists can. */
#include "table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "table/packed_row.h"

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

static const struct column identified_columns[] = {PACKETS_COLUMNS(COLUMN)
                                                       IDENTITY_COLUMNS(COLUMN)};

const struct schema schemas[SCHEMA_COUNT] = {
#define TABLE(name, columns, meaning) {#name, meaning, name##_columns, name##_column_count},
    TABLES(TABLE)
#undef TABLE
        {"packets", "an IP packet of a flow", identified_columns, packets_identified_count},
};

/* --- packed rows ------------------------------------------------------------------------------ */

#define ORIGIN_LEAST (INT64_C(1) << 48)

/* Numbers of texts are near the first one of their part. */
void table_init(struct table *table, enum table_number number, const struct string_table *texts,
                unsigned part, bool grouped) {
    *table = (struct table){
        .schema = &schemas[number], .texts = texts, .part = part, .grouped = grouped};
    table->own.rows.to_disk = number != TABLE_packets; /* which are taken while they are made */
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

bool table_add_ordered(struct table *table, const struct row *row, const struct row_order *order) {
    uint64_t offset;
    if (!list_grow(&table->order, &table->order_room, table->row_count + 1, sizeof *table->order) ||
        !add_at(table, row, &offset))
        return false;
    table->order[table->row_count - 1] =
        (struct row_order){order->at, order->minor, place_of(table, offset)};
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

/* Columns are named so. */
bool table_find_interfaces(struct table *table) {
    static const char suffix[] = "capture";
    bool found = false;
    memset(table->interface_columns, 0, sizeof table->interface_columns);
    for (unsigned c = 0; c < table->schema->column_count; c++) {
        size_t length = strlen(table->schema->columns[c].name);
        const char *end = table->schema->columns[c].name + length;
        bool is_number = table->schema->columns[c].type == TYPE_INT &&
                         length + 1 >= sizeof suffix && !strcmp(end - sizeof suffix + 1, suffix);
        found |= is_number;
        table->interface_columns[c / 64] |= (uint64_t)is_number << c % 64;
    }
    return found;
}

bool table_join(struct table *table, struct table *other) {
    uint64_t rows = table->row_count + other->row_count;
    if (!other->row_count)
        return true;
    if (!table->others && !(table->others = calloc(PARTS_MOST, sizeof *table->others)))
        return false;
    if (other->order && !list_grow(&table->order, &table->order_room, rows, sizeof *table->order))
        return false;
    if (other->order)
        memcpy(table->order + table->row_count, other->order,
               other->row_count * sizeof *other->order);
    table->row_count = rows;
    table->others[other->part] = other->own;
    table->records = table->records ? table->records : other->records;
    other->own = (struct table_part){0};
    other->row_count = 0;
    return true;
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
