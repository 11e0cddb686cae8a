/* SPDX-License-Identifier: Apache-2.0 */
/* Rows go through struct row both ways, so that the packing of tables may change. The bytes may
 * come from another machine: each size is checked against what is left, words and texts against
 * their ranges, and a file whose schema differs is refused, because its columns have other
 * meanings. */
#include "shard/row_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vocabulary.h"

#define MAGIC       "WTROWS01"
#define MAGIC_SIZE  8u
#define VARINT_MOST 10u

/* --- writing --------------------------------------------------------------------------------- */

void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

static uint8_t *reserve(struct bytes *bytes, size_t size) {
    if (!list_grow(&bytes->data, &bytes->room, bytes->size + size, 1)) {
        bytes->out_of_memory = true;
        return NULL;
    }
    bytes->size += size;
    return bytes->data + bytes->size - size;
}

static void put(struct bytes *bytes, const void *data, size_t size) {
    uint8_t *place = size ? reserve(bytes, size) : NULL;
    if (place)
        memcpy(place, data, size);
}

static void put_u64(struct bytes *bytes, uint64_t value) {
    put(bytes, &value, sizeof value);
}

static void put_varint(struct bytes *bytes, int64_t value) {
    uint64_t bits = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
    uint8_t out[VARINT_MOST];
    size_t size = 0;
    for (; bits >= 0x80; bits >>= 7)
        out[size++] = (uint8_t)(bits | 0x80);
    out[size++] = (uint8_t)bits;
    put(bytes, out, size);
}

static void put_row(struct bytes *bytes, const struct table *table, const struct row *row) {
    const struct schema *schema = table->schema;
    put(bytes, row->known, (schema->column_count + 7) / 8);
    for (unsigned c = 0; c < schema->column_count; c++) {
        if (!row_known(row, c))
            continue;
        if (schema->columns[c].type < TYPE_TEXT) {
            put_varint(bytes, row->value[c]);
            continue;
        }
        size_t size;
        const char *text = string_table_get(table->texts, row->value[c], &size);
        uint16_t length = (uint16_t)size;
        put(bytes, &length, sizeof length);
        put(bytes, text, size);
    }
}

static void put_table(struct bytes *bytes, const struct table *table,
                      const struct position_list *positions) {
    struct table_cursor cursor = {0};
    struct row row;
    uint64_t count = positions ? positions->count : 0, size_at, size;
    put_u64(bytes, table->row_count);
    put_u64(bytes, count);
    size_at = bytes->size;
    put_u64(bytes, 0);
    if (count)
        put(bytes, positions->list, count * sizeof *positions->list);
    size = bytes->size;
    while (table_next(table, &cursor, &row))
        put_row(bytes, table, &row);
    size = bytes->size - size;
    if (!bytes->out_of_memory)
        memcpy(bytes->data + size_at, &size, sizeof size);
}

/* FNV-1a of all names and types. */
static uint64_t schema_hash(void) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        for (unsigned c = 0; c < schemas[t].column_count; c++) {
            for (const char *name = schemas[t].columns[c].name; *name; name++)
                hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
            hash = (hash ^ schemas[t].columns[c].type) * UINT64_C(0x100000001b3);
        }
    return (hash ^ WORD_COUNT) * UINT64_C(0x100000001b3);
}

static void put_head(struct bytes *bytes) {
    put(bytes, MAGIC, MAGIC_SIZE);
    put_u64(bytes, schema_hash());
}

static bool is_kept(unsigned number) {
    return number != TABLE_packets && number != TABLE_time_spans && !is_after_pass(number);
}

void shard_rows_write(struct bytes *bytes, struct analysis *analysis) {
    const struct analysis_totals *totals = analysis_totals(analysis);
    const struct shard_state *state = analysis_shard_state(analysis);
    const struct row_sink *sink = analysis_sink(analysis);
    const struct position_log *log = sink->positions;
    uint64_t counts[SHARD_COUNTS] = {
        [COUNT_PACKETS] = totals->packets,
        [COUNT_FLOWS] = totals->flows,
        [COUNT_EVICTED_FLOWS] = totals->evicted_flows,
        [COUNT_EVICTED_DATAGRAMS] = totals->evicted_datagrams,
        [COUNT_EVENTS_DROPPED] = totals->events_dropped,
        [COUNT_BLOCKS_DROPPED] = totals->blocks_dropped,
        [COUNT_EXCHANGES_DROPPED] = totals->exchanges_dropped,
        [COUNT_SELECTIONS] = state->selections,
        [COUNT_MISSING] = state->missing,
        [COUNT_UNCERTAIN] = state->uncertain,
    };
    memcpy(&counts[COUNT_PEAKS], log->peaks, sizeof log->peaks);
    put_head(bytes);
    put(bytes, counts, sizeof counts);
    put(bytes, &totals->judged, sizeof totals->judged);
    put_u64(bytes, state->mirrored_count);
    put(bytes, state->mirrored, state->mirrored_count * sizeof *state->mirrored);
    put(bytes, state->ports, capture_ports_size());
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        unsigned list = position_list_of((enum table_number)t);
        if (is_kept(t))
            put_table(bytes, &sink->tables[t], list < POSITION_TABLES ? &log->lists[list] : NULL);
    }
}

void interface_rows_write(struct bytes *bytes, const struct split_facts *facts) {
    const struct table *tables = facts->sink.tables;
    put_head(bytes);
    put_table(bytes, &tables[TABLE_interfaces], NULL);
    put_table(bytes, &tables[TABLE_decode_stops], NULL);
    put_table(bytes, &tables[TABLE_neighbors], NULL);
    put_table(bytes, &tables[TABLE_announcers], NULL);
    put_table(bytes, &tables[TABLE_groups], NULL);
    put_table(bytes, &tables[TABLE_exchanges], NULL);
    put_u64(bytes, facts->local_pairs);
}

/* --- reading --------------------------------------------------------------------------------- */

/* What is left; `bad` if more was wanted. */
struct input {
    const uint8_t *p, *end;
    bool bad;
};

static const uint8_t *take(struct input *in, uint64_t size) {
    const uint8_t *place = in->p;
    if (in->bad || size > (uint64_t)(in->end - in->p)) {
        in->bad = true;
        return NULL;
    }
    in->p += size;
    return place;
}

static uint64_t take_u64(struct input *in) {
    const uint8_t *p = take(in, sizeof(uint64_t));
    return p ? load_le64(p) : 0;
}

/* Takes `count` elements; checks the product, which could exceed 64 bits. */
static const uint8_t *take_list(struct input *in, uint64_t count, size_t size) {
    in->bad |= count > (uint64_t)(in->end - in->p) / size;
    return take(in, in->bad ? 0 : count * size);
}

static void take_table(struct input *in, struct table_bytes *table) {
    table->rows = take_u64(in);
    table->position_count = take_u64(in);
    uint64_t size = take_u64(in);
    table->positions = take_list(in, table->position_count, sizeof(struct position));
    table->start = take(in, size);
    table->end = in->p;
    in->bad |= table->rows > size; /* each has a byte */
}

static bool take_head(struct input *in) {
    const uint8_t *magic = take(in, MAGIC_SIZE);
    return magic && !memcmp(magic, MAGIC, MAGIC_SIZE) && take_u64(in) == schema_hash();
}

bool shard_rows_read(struct shard_rows *rows, const uint8_t *bytes, size_t size) {
    struct input in = {bytes, bytes + size, false};
    *rows = (struct shard_rows){0};
    if (!take_head(&in))
        return false;
    for (unsigned i = 0; i < SHARD_COUNTS; i++)
        rows->counts[i] = take_u64(&in);
    const uint8_t *judged = take(&in, sizeof rows->judged);
    if (judged)
        memcpy(&rows->judged, judged, sizeof rows->judged);
    rows->mirrored_count = take_u64(&in);
    rows->mirrored = take_list(&in, rows->mirrored_count, sizeof(uint64_t));
    rows->ports = take(&in, capture_ports_size());
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        if (is_kept(t))
            take_table(&in, &rows->tables[t]);
    return !in.bad && in.p == in.end;
}

bool interface_rows_read(struct interface_tables *tables, const uint8_t *bytes, size_t size) {
    struct input in = {bytes, bytes + size, false};
    if (!take_head(&in))
        return false;
    take_table(&in, &tables->interfaces);
    take_table(&in, &tables->decode_stops);
    take_table(&in, &tables->neighbors);
    take_table(&in, &tables->announcers);
    take_table(&in, &tables->groups);
    take_table(&in, &tables->exchanges);
    tables->local_pairs = take_u64(&in);
    return !in.bad && in.p == in.end;
}

static int64_t take_varint(struct input *in) {
    uint64_t bits = 0;
    for (unsigned shift = 0; shift < 7 * VARINT_MOST; shift += 7) {
        const uint8_t *p = take(in, 1);
        if (!p)
            return 0;
        bits |= (uint64_t)(*p & 0x7F) << shift;
        if (*p < 0x80)
            return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    }
    in->bad = true;
    return 0;
}

static const uint8_t *take_text(struct input *in, size_t *size) {
    const uint8_t *p = take(in, 2);
    *size = p ? load_le16(p) : 0;
    in->bad |= *size > TEXT_MAX;
    return take(in, *size);
}

/* Adds a text or an address; returns its number. */
static int64_t add_text(struct row_sink *sink, struct input *in, enum column_type type) {
    char text[TEXT_MAX + 1];
    size_t size;
    const uint8_t *p = take_text(in, &size);
    if (!p)
        return 0;
    if (type == TYPE_ADDRESS) {
        in->bad |= size != 4 && size != 16;
        return in->bad ? 0 : add_address(sink, size == 4 ? 4 : 6, p);
    }
    memcpy(text, p, size);
    text[size] = '\0';
    int64_t number = type == TYPE_PATH ? string_table_add_bytes(&sink->texts, text, strlen(text))
                                       : string_table_add(&sink->texts, text);
    sink->out_of_memory |= number < 0;
    return number < 0 ? 0 : number;
}

static int64_t take_value(struct row_sink *sink, struct input *in, enum column_type type) {
    if (type >= TYPE_TEXT)
        return add_text(sink, in, type);
    int64_t value = take_varint(in);
    if (type == TYPE_WORD)
        in->bad |= value < 0 || value >= WORD_COUNT;
    if (type == TYPE_BOOL)
        in->bad |= value < 0 || value > 1;
    return in->bad ? 0 : value;
}

/* Takes the bits of the known columns into a row; none above the last column may be set. */
static void take_known(struct input *in, const struct schema *schema, struct row *row) {
    size_t size = (schema->column_count + 7) / 8;
    const uint8_t *known = take(in, size);
    row_clear(row);
    if (!known)
        return;
    memcpy(row->known, known, size);
    if (schema->column_count % 8)
        in->bad |= known[size - 1] >> schema->column_count % 8;
}

bool row_read(struct row_sink *sink, enum table_number number, const uint8_t **p,
              const uint8_t *end, struct row *row) {
    const struct schema *schema = &schemas[number];
    struct input in = {*p, end, false};
    take_known(&in, schema, row);
    for (unsigned c = 0; !in.bad && c < schema->column_count; c++)
        if (row_known(row, c))
            row->value[c] = take_value(sink, &in, schema->columns[c].type);
    *p = in.p;
    return !in.bad && !sink->out_of_memory;
}
