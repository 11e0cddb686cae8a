/* SPDX-License-Identifier: Apache-2.0 */
/* Each batch is unpacked on request of the consumer, so that a table is in memory only once, in its
 * packed form, plus the batches that the consumer keeps. Rows are unpacked ROWS_AT_ONCE at a time,
 * column by column, because the columns' buffers are then written sequentially.
 *
 * A batch shares no memory with the table and may outlive the stream. The callbacks use no
 * Python object, so that a consumer may call them without the GIL, from one thread at a time per
 * stream. */
#include "common/utf8.h"
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES    (4u << 20) /* fixed-width values of one batch */
#define BATCH_ROWS_MAX 65536u
#define ROWS_AT_ONCE   32 /* must be a multiple of 8 and at most 64; 1 kB each */

/* Format strings of the Arrow C data interface. An export keeps pointers to them. */
static const char *const formats[] = {
    [TYPE_INT] = "l",  [TYPE_TIME] = "tsn:UTC", [TYPE_DURATION] = "tDn",
    [TYPE_REAL] = "g", [TYPE_BOOL] = "b",       [TYPE_WORD] = "i",
    [TYPE_TEXT] = "u", [TYPE_ADDRESS] = "u",    [TYPE_PATH] = "u",
};

static bool is_text(const struct column *column) {
    return formats[column->type][0] == 'u';
}

static bool is_integer(uint8_t type, enum arrow_integers integers) {
    return (type == TYPE_TIME && integers == INTEGERS_TIMES_TOO) ||
           (type == TYPE_DURATION && integers != INTEGERS_NONE);
}

int arrow_schema_export(const struct schema *schema, enum arrow_integers integers, bool numbered,
                        struct ArrowSchema *out) {
    struct arrow_field fields[COLUMNS_MAX + 1];
    for (size_t i = 0; i < schema->column_count; i++) {
        uint8_t type = schema->columns[i].type;
        fields[i] = (struct arrow_field){
            schema->columns[i].name,
            formats[is_integer(type, integers) ? TYPE_INT : type],
            type == TYPE_WORD,
        };
    }
    fields[schema->column_count] = (struct arrow_field){ARROW_TABLE_NUMBER, "l", false};
    return arrow_struct_schema(schema->name, fields, schema->column_count + numbered, out);
}

/* A column of the batch being built: buffers[0] is validity, [1] values or text offsets, [2] text.
 */
struct filling {
    struct ArrowArray *array;
    void *values;
    size_t text_used, text_room;
};

/* Bytes of buffers[1]; text has one offset more than rows. */
static size_t values_size(const struct column *column, size_t rows) {
    if (column->type == TYPE_BOOL)
        return (rows + 7) / 8;
    if (column->type == TYPE_WORD)
        return rows * sizeof(int32_t);
    return is_text(column) ? (rows + 1) * sizeof(int32_t) : rows * sizeof(int64_t);
}

static bool begin_column(struct filling *filling, struct ArrowArray *array,
                         const struct column *column, size_t rows) {
    if (!arrow_child_begin(array, rows, is_text(column) ? 3 : 2) ||
        (column->type == TYPE_WORD && !arrow_child_set_words(array)))
        return false;
    *filling = (struct filling){.array = array, .values = calloc(1, values_size(column, rows) + 1)};
    array->buffers[1] = filling->values;
    return filling->values;
}

/* Returns false if memory is exhausted or offsets would exceed 32 bits. A batch cannot come
 * close to that: BATCH_ROWS_MAX texts of TEXT_MAX bytes are 0.5 GB, paths at most 1.6 GB. */
static bool append_text(struct filling *filling, const char *text, size_t size) {
    if (filling->text_used + size > INT32_MAX ||
        !list_grow(&filling->array->buffers[2], &filling->text_room, filling->text_used + size, 1))
        return false;
    memcpy((char *)filling->array->buffers[2] + filling->text_used, text, size);
    filling->text_used += size;
    return true;
}

/* Arrow strings must be UTF-8: each other byte of a path becomes U+FFFD. */
static bool append_path(struct filling *filling, const char *path, size_t size) {
    char text[3 * TEXT_MAX + 1];
    return append_text(filling, text, utf8_copy(text, sizeof text, path, size));
}

static bool fill_text(struct filling *filling, const struct table *table, unsigned type,
                      int64_t value) {
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    const char *text = string_table_text(table->texts, type, value, address, &size);
    return type == TYPE_PATH ? append_path(filling, text, size) : append_text(filling, text, size);
}

/* Writes `count` bits from bit `at`, which must be a multiple of 8. Arrow numbers bits from the
 * lowest, so that a little-endian word (bytes.h) has them in order. */
static void put_bits(void *bitmap, size_t at, uint64_t bits, size_t count) {
    memcpy((uint8_t *)bitmap + at / 8, &bits, (count + 7) / 8);
}

struct reading {
    const struct table *table;   /* the one that is read */
    const struct table **tables; /* of a joined stream, which has their numbers as a column */
    size_t table_count, number;
    struct table_cursor cursor;
    uint64_t left; /* rows of all tables */
    enum arrow_integers integers;
    void *owner;
    void (*disown)(void *owner);
    arrow_further *further; /* NULL: there are no more tables */
    const char *error;
    /* Rows that are unpacked together, and the table of each: they have texts of their own. */
    struct row rows[ROWS_AT_ONCE];
    const struct table *row_tables[ROWS_AT_ONCE];
};

/* A null row repeats the offset before, which makes its text empty. */
static bool fill_texts(struct filling *filling, const struct reading *reading, unsigned column,
                       size_t count, size_t at) {
    uint8_t type = reading->table->schema->columns[column].type;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &reading->rows[i];
        if (row_known(row, column) &&
            !fill_text(filling, reading->row_tables[i], type, row->value[column]))
            return false;
        ((int32_t *)filling->values)[at + i + 1] = (int32_t)filling->text_used;
    }
    return true;
}

/* Fills the rows from `at`, which must be a multiple of 8. */
static bool fill_column(struct filling *filling, const struct reading *reading, unsigned column,
                        size_t count, size_t at) {
    const struct row *rows = reading->rows;
    uint64_t known = 0, set = 0;
    for (size_t i = 0; i < count; i++)
        known |= (uint64_t)row_known(&rows[i], column) << i;
    put_bits((void *)filling->array->buffers[0], at, known, count);
    filling->array->null_count += (int64_t)count - __builtin_popcountll(known);
    switch (reading->table->schema->columns[column].type) {
    case TYPE_INT:
    case TYPE_TIME:
    case TYPE_DURATION:
    case TYPE_REAL:
        for (size_t i = 0; i < count; i++)
            ((int64_t *)filling->values)[at + i] = rows[i].value[column];
        return true;
    case TYPE_WORD:
        for (size_t i = 0; i < count; i++)
            ((int32_t *)filling->values)[at + i] = (int32_t)rows[i].value[column];
        return true;
    case TYPE_BOOL:
        for (size_t i = 0; i < count; i++)
            set |= (uint64_t)(rows[i].value[column] != 0) << i;
        put_bits(filling->values, at, set, count);
        return true;
    default: return fill_texts(filling, reading, column, count, at);
    }
}

/* Rows of the next batch, so that a wide table needs no more memory than a narrow one. A batch of a
 * joined stream has rows of many small tables, because each batch costs its consumer time. */
static size_t batch_rows(const struct reading *reading) {
    size_t most = BATCH_BYTES / (reading->table->schema->column_count * sizeof(int64_t));
    if (most > BATCH_ROWS_MAX)
        most = BATCH_ROWS_MAX;
    return reading->left < most ? (size_t)reading->left : most;
}

/* Begins the next table of a joined stream. Returns false if there is none. */
static bool next_table(struct reading *reading) {
    if (reading->number + 1 >= reading->table_count)
        return false;
    reading->table = reading->tables[++reading->number];
    reading->cursor = (struct table_cursor){0};
    return true;
}

/* Returns the known bits of all columns that some row has, and no values. */
static struct row held_by(const struct row *rows, size_t count) {
    struct row held;
    row_clear(&held);
    for (size_t i = 0; i < count; i++)
        for (size_t w = 0; w < sizeof held.known / sizeof *held.known; w++)
            held.known[w] |= rows[i].known[w];
    return held;
}

/* Fills some rows from `at`; `numbers` is the column with the number of the table, or NULL. */
static bool fill_rows(struct reading *reading, struct filling *filling, int64_t *numbers,
                      size_t count, size_t at) {
    const struct schema *schema = reading->table->schema;
    for (size_t i = 0; i < count; i++) {
        while (!table_next(reading->table, &reading->cursor, &reading->rows[i]))
            if (!next_table(reading))
                return false;
        reading->row_tables[i] = reading->table;
        if (numbers)
            numbers[at + i] = (int64_t)reading->number;
    }
    reading->left -= count;
    struct row held = held_by(reading->rows, count);
    for (unsigned c = 0; c < schema->column_count; c++) {
        if (!row_known(&held, c) && !is_text(&schema->columns[c])) /* its buffers are 0 */
            filling[c].array->null_count += (int64_t)count;
        else if (!fill_column(&filling[c], reading, c, count, at))
            return false;
    }
    return true;
}

/* Begins the column with the number of the table; returns its values. */
static int64_t *begin_numbers(struct ArrowArray *array, size_t rows) {
    int64_t *values;
    if (!arrow_child_begin(array, rows, 2) || !(values = malloc(rows * sizeof *values)))
        return NULL;
    array->buffers[1] = values;
    memset((void *)array->buffers[0], 0xFF, (rows + 7) / 8);
    return values;
}

/* Fills one batch. Returns false if memory is exhausted. */
static bool fill_batch(struct reading *reading, struct ArrowArray *out, size_t rows) {
    const struct schema *schema = reading->table->schema;
    struct filling filling[COLUMNS_MAX];
    int64_t *numbers = NULL;
    for (size_t c = 0; c < schema->column_count; c++)
        if (!begin_column(&filling[c], out->children[c], &schema->columns[c], rows))
            return false;
    if (reading->tables && !(numbers = begin_numbers(out->children[schema->column_count], rows)))
        return false;
    for (size_t at = 0; at < rows; at += ROWS_AT_ONCE)
        if (!fill_rows(reading, filling, numbers,
                       rows - at < ROWS_AT_ONCE ? rows - at : ROWS_AT_ONCE, at))
            return false;
    return true;
}

/* Begins the table after one that is read. */
static void follow(struct reading *reading) {
    while (!reading->left && reading->further) {
        const struct table *table = reading->further(reading->owner, &reading->error);
        if (!table) {
            reading->further = NULL;
            return;
        }
        reading->table = table;
        reading->cursor = (struct table_cursor){0};
        reading->left = table->row_count;
    }
}

static int next_batch(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    struct reading *reading = stream->private_data;
    *out = (struct ArrowArray){0};
    follow(reading);
    if (reading->error)
        return EIO;
    size_t rows = batch_rows(reading), columns = reading->table->schema->column_count;
    if (!rows)
        return 0;
    if (arrow_struct_begin(out, columns + !!reading->tables, rows) &&
        fill_batch(reading, out, rows))
        return 0;
    if (out->release)
        out->release(out);
    reading->error = "out of memory";
    return ENOMEM;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    struct reading *reading = stream->private_data;
    return arrow_schema_export(reading->table->schema, reading->integers, reading->tables, out);
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    return ((struct reading *)stream->private_data)->error;
}

static void release_stream(struct ArrowArrayStream *stream) {
    struct reading *reading = stream->private_data;
    reading->disown(reading->owner);
    free(reading->tables);
    free(reading);
    stream->release = NULL;
}

int arrow_stream_export(const struct table *table, enum arrow_integers integers,
                        struct ArrowArrayStream *out, void *owner, void (*disown)(void *owner)) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return ENOMEM;
    reading->table = table;
    reading->left = table->row_count;
    reading->integers = integers;
    reading->owner = owner;
    reading->disown = disown;
    *out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                     .get_next = next_batch,
                                     .get_last_error = stream_error,
                                     .release = release_stream,
                                     .private_data = reading};
    return 0;
}

void arrow_stream_follow(struct ArrowArrayStream *stream, arrow_further *further) {
    struct reading *reading = stream->private_data;
    reading->left = 0;
    reading->further = further;
}

int arrow_stream_join(const struct table **tables, size_t count, enum arrow_integers integers,
                      struct ArrowArrayStream *out, void *owner, void (*disown)(void *owner)) {
    int failed = arrow_stream_export(tables[0], integers, out, owner, disown);
    if (failed)
        return failed;
    struct reading *reading = out->private_data;
    reading->tables = tables;
    reading->table_count = count;
    for (size_t i = 1; i < count; i++)
        reading->left += tables[i]->row_count;
    return 0;
}
