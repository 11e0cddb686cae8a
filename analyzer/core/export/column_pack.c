/* SPDX-License-Identifier: Apache-2.0 */
/* Packs columns as typed arrays (column_pack in export.h). One pass over the table serves all
 * columns and unpacks rows only up to the last one that is needed. For chosen flows of a grouped
 * table only their groups are read; other tables are read in full and filtered by binary search,
 * so that the list of flows must be ascending. The caller allocates the outputs and must size
 * them by column_pack_rows() times column_pack_size(). Nothing is allocated; the caller must
 * check the codes, because an unknown one writes nothing. */
#include "export/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct code {
    char code;
    uint8_t size; /* bytes per value */
    bool real;
    int64_t least, most;
} codes[] = {
    {'b', 1, false, INT8_MIN, INT8_MAX},
    {'B', 1, false, 0, UINT8_MAX},
    {'H', 2, false, 0, UINT16_MAX},
    {'i', 4, false, INT32_MIN, INT32_MAX},
    {'I', 4, false, 0, UINT32_MAX},
    {'f', 4, true, 0, 0},
    {'d', 8, true, 0, 0},
};

static const struct code *find_code(char code) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return &codes[i];
    return NULL;
}

size_t column_pack_size(char code) {
    const struct code *found = find_code(code);
    return found ? found->size : 0;
}

static double real_of(int64_t value, uint8_t type) {
    double real;
    memcpy(&real, &value, sizeof real);
    return type == TYPE_REAL ? real : (double)value;
}

/* (value - offset) / divisor, within the range of the code. If the difference overflows, its
 * sign is that of the value. INT64_MIN / -1 would trap, so it saturates. */
static int64_t bounded(const struct code *code, const struct column_pack *pack, int64_t value) {
    int64_t moved;
    if (__builtin_sub_overflow(value, pack->offset, &moved))
        return value < 0 ? code->least : code->most;
    moved = pack->divisor == -1 && moved == INT64_MIN ? INT64_MAX : moved / pack->divisor;
    if (moved < code->least)
        return code->least;
    return moved > code->most ? code->most : moved;
}

/* Values are little-endian, because JavaScript reads them; the host is too (bytes.h). */
static void put_real(uint8_t *out, double value, size_t size) {
    float narrow = (float)value;
    memcpy(out, size == sizeof narrow ? (void *)&narrow : &value, size);
}

/* Exact if the difference is a multiple of the unit, below 2^53 units. */
static double real_value(const struct column_pack *pack, int64_t value, uint8_t type) {
    int64_t moved;
    if (type == TYPE_REAL || __builtin_sub_overflow(value, pack->offset, &moved))
        return (real_of(value, type) - (double)pack->offset) / (double)pack->divisor;
    return (double)moved / (double)pack->divisor;
}

static int compare_flow(const void *key, const void *member) {
    int64_t flow = *(const int64_t *)key, other = *(const uint32_t *)member;
    return flow < other ? -1 : flow > other;
}

static bool is_chosen(const struct flow_choice *choice, int64_t flow) {
    return bsearch(&flow, choice->flows, choice->count, sizeof *choice->flows, compare_flow);
}

/* The output of one column. */
struct filling {
    const struct column_pack *pack;
    const struct code *code;
    uint8_t type;
    int64_t before;
    uint8_t *out;
};

/* With `delta` a null takes part as the code's maximum, so that a reader that adds up the
 * differences modulo the width finds it again. */
static void put_value(struct filling *filling, const struct row *row) {
    const struct code *code = filling->code;
    const struct column_pack *pack = filling->pack;
    bool known = row_known(row, pack->column);
    int64_t value = known ? row->value[pack->column] : 0;
    uint8_t *out = filling->out;
    filling->out += code->size;
    if (code->real) {
        put_real(out, known ? real_value(pack, value, filling->type) : (double)NAN, code->size);
        return;
    }
    value = known ? bounded(code, pack, value) : code->most;
    uint64_t bits = (uint64_t)value - (pack->delta ? (uint64_t)filling->before : 0);
    memcpy(out, &bits, code->size);
    filling->before = value;
}

/* Iterates over the chosen rows. */
struct choosing {
    const struct table *table;
    const struct flow_choice *choice;
    int flow_column;
    size_t columns; /* columns to unpack, from the first */
    struct table_cursor cursor;
    size_t next;   /* next flow of the choice, in a table in the order of flows */
    uint32_t left; /* remaining rows of its group */
};

static struct choosing begin_choosing(const struct table *table, const struct flow_choice *choice,
                                      size_t columns) {
    int flow_column = choice->flows ? schema_column(table->schema, "flow") : -1;
    size_t needed = (size_t)(flow_column + 1);
    return (struct choosing){.table = table,
                             .choice = choice,
                             .flow_column = flow_column,
                             .columns = columns < needed ? needed : columns};
}

/* Reads only the chosen flows of a table in the order of flows. */
static bool next_of_groups(struct choosing *choosing, struct row *row) {
    const struct table *table = choosing->table;
    while (!choosing->left) {
        if (choosing->next == choosing->choice->count)
            return false;
        uint32_t flow = choosing->choice->flows[choosing->next++];
        choosing->left = table->grouped ? table_enter_group(table, &choosing->cursor, flow)
                                        : table_enter_flow(table, &choosing->cursor, flow);
    }
    choosing->left--;
    return table_next_of(choosing->table, &choosing->cursor, choosing->columns, row);
}

static bool next_chosen(struct choosing *choosing, struct row *row) {
    if ((choosing->table->grouped || choosing->table->by_flow) && choosing->choice->flows)
        return next_of_groups(choosing, row);
    while (table_next_of(choosing->table, &choosing->cursor, choosing->columns, row))
        if (choosing->flow_column < 0 ||
            (row_known(row, (unsigned)choosing->flow_column) &&
             is_chosen(choosing->choice, row->value[choosing->flow_column])))
            return true;
    return false;
}

size_t column_pack_rows(const struct table *table, const struct flow_choice *choice) {
    struct choosing choosing = begin_choosing(table, choice, 0);
    struct row row;
    size_t count = 0;
    if (!choice->flows)
        return table->row_count;
    while (next_chosen(&choosing, &row))
        count++;
    return count;
}

void column_pack(const struct table *table, const struct column_pack *packs, size_t count,
                 const struct flow_choice *choice, uint8_t *const *out) {
    struct filling filling[COLUMNS_MAX];
    struct row row;
    size_t columns = 0;
    for (size_t i = 0; i < count; i++) {
        filling[i] = (struct filling){.pack = &packs[i],
                                      .code = find_code(packs[i].code),
                                      .type = table->schema->columns[packs[i].column].type,
                                      .out = out[i]};
        if (!filling[i].code)
            return;
        columns = packs[i].column >= columns ? packs[i].column + 1 : columns;
    }
    struct choosing choosing = begin_choosing(table, choice, columns);
    while (next_chosen(&choosing, &row))
        for (size_t i = 0; i < count; i++)
            put_value(&filling[i], &row);
}
