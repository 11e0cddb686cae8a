/* SPDX-License-Identifier: Apache-2.0 */
#include "column_pack.h"

#include <math.h>
#include <string.h>

static const struct code {
    char code;
    uint8_t size; /* bytes */
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

static int64_t bounded(const struct code *code, const struct column_pack *pack, int64_t value) {
    int64_t moved;
    if (__builtin_sub_overflow(value, pack->offset, &moved))
        return value < 0 ? code->least : code->most;
    moved = pack->divisor == -1 && moved == INT64_MIN ? INT64_MAX : moved / pack->divisor;
    if (moved < code->least)
        return code->least;
    return moved > code->most ? code->most : moved;
}

static void put(uint8_t *out, uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(bits >> 8 * i);
}

static void put_real(uint8_t *out, double value, size_t size) {
    float narrow = (float)value;
    uint32_t narrow_bits;
    uint64_t bits;
    memcpy(&narrow_bits, &narrow, sizeof bits / 2);
    memcpy(&bits, &value, sizeof bits);
    put(out, size == sizeof narrow ? narrow_bits : bits, size);
}

/* Exact where the difference is a whole number of units below 2^53. */
static double real_value(const struct column_pack *pack, int64_t value, uint8_t type) {
    int64_t moved;
    if (type == TYPE_REAL || __builtin_sub_overflow(value, pack->offset, &moved))
        return (real_of(value, type) - (double)pack->offset) / (double)pack->divisor;
    return (double)moved / (double)pack->divisor;
}

static bool is_chosen(const struct column_pack *pack, int flow_column, const struct row *row) {
    size_t low = 0, high = pack->flow_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pack->flows[middle] < row->value[flow_column])
            low = middle + 1;
        else
            high = middle;
    }
    return low < pack->flow_count && pack->flows[low] == row->value[flow_column];
}

static void put_value(const struct code *code, const struct column_pack *pack,
                      const struct row *row, unsigned column, uint8_t type, int64_t *before,
                      uint8_t *out) {
    bool known = row_known(row, column);
    if (code->real) {
        put_real(out, known ? real_value(pack, row->value[column], type) : (double)NAN, code->size);
        return;
    }
    int64_t value = known ? bounded(code, pack, row->value[column]) : code->most;
    put(out, (uint64_t)value - (pack->delta ? (uint64_t)*before : 0), code->size);
    *before = value;
}

/* Where packing stands. */
struct packing {
    const struct table *table;
    const struct column_pack *pack;
    const struct code *code;
    unsigned column;
    int64_t before;
    size_t count;
    uint8_t *out;
};

static void pack_next(struct packing *packing, const struct row *row) {
    uint8_t type = packing->table->schema->columns[packing->column].type;
    if (packing->out)
        put_value(packing->code, packing->pack, row, packing->column, type, &packing->before,
                  packing->out + packing->count * packing->code->size);
    packing->count++;
}

static void pack_all(struct packing *packing) {
    int flow_column = schema_column(packing->table->schema, "flow");
    bool choose = packing->pack->flows && flow_column >= 0;
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(packing->table, &cursor, &row))
        if (!choose || is_chosen(packing->pack, flow_column, &row))
            pack_next(packing, &row);
}

/* Of a grouped table only the groups asked for are read. */
static void pack_groups(struct packing *packing) {
    struct table_cursor cursor;
    struct row row;
    for (size_t i = 0; i < packing->pack->flow_count; i++) {
        uint32_t left = table_enter_group(packing->table, &cursor, packing->pack->flows[i]);
        for (; left && table_next(packing->table, &cursor, &row); left--)
            pack_next(packing, &row);
    }
}

size_t column_pack(const struct table *table, unsigned column, const struct column_pack *pack,
                   uint8_t *out) {
    struct packing packing = {table, pack, find_code(pack->code), column, 0, 0, out};
    if (!packing.code)
        return 0;
    if (table->grouped && pack->flows)
        pack_groups(&packing);
    else
        pack_all(&packing);
    return packing.count;
}
