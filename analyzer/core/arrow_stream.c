/* SPDX-License-Identifier: Apache-2.0 */
/* Batches are unpacked one at a time as the consumer asks, so that a table is never in memory
 * twice. */
#include "arrow_stream.h"
#include "vocabulary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES    (4u << 20) /* of one batch's fixed-width values, about */
#define BATCH_ROWS_MAX 65536u

static const char *const formats[] = {
    [TYPE_INT] = "l",  [TYPE_REAL] = "g", [TYPE_BOOL] = "b",
    [TYPE_WORD] = "u", [TYPE_TEXT] = "u", [TYPE_ADDRESS] = "u",
};

static bool is_text(const struct column *column) {
    return formats[column->type][0] == 'u';
}

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    free(schema->private_data);
    schema->release = NULL;
}

int arrow_schema_export(const struct schema *schema, struct ArrowSchema *out) {
    size_t count = schema->column_count;
    struct {
        struct ArrowSchema *pointers[COLUMNS_MAX];
        struct ArrowSchema children[COLUMNS_MAX];
    } *held = calloc(1, sizeof *held);
    if (!held)
        return ENOMEM;
    for (size_t i = 0; i < count; i++) {
        held->pointers[i] = &held->children[i];
        held->children[i] = (struct ArrowSchema){.format = formats[schema->columns[i].type],
                                                 .name = schema->columns[i].name,
                                                 .flags = ARROW_FLAG_NULLABLE,
                                                 .release = release_schema};
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = schema->name,
                                .n_children = (int64_t)count,
                                .children = held->pointers,
                                .release = release_schema,
                                .private_data = held};
    return 0;
}

/* A child array owns its buffers, since a consumer may move it out of its batch and release it
 * later. */
static void release_child(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

static void release_batch(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    free(array->private_data);
    array->release = NULL;
}

/* A column of a batch while it fills: buffers[0] validity, [1] values or text offsets, [2] text. */
struct filling {
    struct ArrowArray *array;
    uint8_t *validity;
    void *values;
    size_t text_used, text_room;
};

struct batch {
    const void *buffers[1]; /* of the struct array itself: no validity */
    struct ArrowArray *pointers[COLUMNS_MAX];
    struct ArrowArray children[COLUMNS_MAX];
};

static size_t values_size(const struct column *column, size_t rows) {
    if (column->type == TYPE_BOOL)
        return (rows + 7) / 8;
    return is_text(column) ? (rows + 1) * sizeof(int32_t) : rows * sizeof(int64_t);
}

static bool begin_column(struct filling *filling, struct ArrowArray *array,
                         const struct column *column, size_t rows) {
    *array = (struct ArrowArray){.n_buffers = is_text(column) ? 3 : 2, .release = release_child};
    array->buffers = calloc(3, sizeof *array->buffers);
    if (!array->buffers)
        return false;
    *filling = (struct filling){.array = array};
    array->buffers[0] = filling->validity = calloc(1, (rows + 7) / 8 + 1);
    array->buffers[1] = filling->values = calloc(1, values_size(column, rows) + 1);
    return filling->validity && filling->values;
}

static bool append_text(struct filling *filling, const char *text, size_t size) {
    if (filling->text_used + size > INT32_MAX)
        return false;
    if (filling->text_used + size > filling->text_room) {
        size_t room = (filling->text_used + size) * 2 + 64;
        void *grown = realloc((void *)filling->array->buffers[2], room);
        if (!grown)
            return false;
        filling->array->buffers[2] = grown;
        filling->text_room = room;
    }
    memcpy((char *)filling->array->buffers[2] + filling->text_used, text, size);
    filling->text_used += size;
    return true;
}

static bool fill_text(struct filling *filling, const struct table *table, unsigned type,
                      int64_t value) {
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    if (type == TYPE_WORD)
        return append_text(filling, word_text((enum word)value),
                           strlen(word_text((enum word)value)));
    if (type == TYPE_ADDRESS) {
        size = text_store_address(table->texts, value, address);
        return append_text(filling, address, size);
    }
    const char *text = text_store_get(table->texts, value, &size);
    return append_text(filling, text, size);
}

static bool fill(struct filling *filling, const struct table *table, unsigned type, size_t at,
                 const struct row *row, unsigned column) {
    bool known = row_known(row, column);
    filling->validity[at / 8] |= (uint8_t)(known << at % 8);
    filling->array->null_count += !known;
    switch (type) {
    case TYPE_INT:
    case TYPE_REAL: ((int64_t *)filling->values)[at] = row->value[column]; return true;
    case TYPE_BOOL:
        ((uint8_t *)filling->values)[at / 8] |= (uint8_t)((row->value[column] != 0) << at % 8);
        return true;
    }
    if (known && !fill_text(filling, table, type, row->value[column]))
        return false;
    ((int32_t *)filling->values)[at + 1] = (int32_t)filling->text_used;
    return true;
}

struct reading {
    const struct table *table;
    struct table_cursor cursor;
    void *owner;
    void (*disown)(void *owner);
    const char *error;
};

static size_t batch_rows(const struct reading *reading) {
    uint64_t left = reading->table->row_count - reading->cursor.row;
    size_t most = BATCH_BYTES / (reading->table->schema->column_count * sizeof(int64_t));
    if (most > BATCH_ROWS_MAX)
        most = BATCH_ROWS_MAX;
    return left < most ? (size_t)left : most;
}

static bool fill_batch(struct reading *reading, struct ArrowArray *out, size_t rows) {
    const struct schema *schema = reading->table->schema;
    struct batch *batch = out->private_data;
    struct filling filling[COLUMNS_MAX];
    struct row row;
    for (size_t c = 0; c < schema->column_count; c++) {
        out->n_children = (int64_t)c + 1;
        if (!begin_column(&filling[c], &batch->children[c], &schema->columns[c], rows))
            return false;
    }
    for (size_t at = 0; at < rows; at++) {
        if (!table_next(reading->table, &reading->cursor, &row))
            return false;
        for (unsigned c = 0; c < schema->column_count; c++)
            if (!fill(&filling[c], reading->table, schema->columns[c].type, at, &row, c))
                return false;
    }
    for (size_t c = 0; c < schema->column_count; c++)
        batch->children[c].length = (int64_t)rows;
    return true;
}

static int next_batch(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    struct reading *reading = stream->private_data;
    size_t rows = batch_rows(reading);
    *out = (struct ArrowArray){0};
    if (!rows)
        return 0;
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        reading->error = "out of memory";
        return ENOMEM;
    }
    for (size_t c = 0; c < COLUMNS_MAX; c++)
        batch->pointers[c] = &batch->children[c];
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .n_buffers = 1,
                               .buffers = batch->buffers,
                               .children = batch->pointers,
                               .release = release_batch,
                               .private_data = batch};
    if (fill_batch(reading, out, rows))
        return 0;
    release_batch(out);
    reading->error = "out of memory";
    return ENOMEM;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    struct reading *reading = stream->private_data;
    return arrow_schema_export(reading->table->schema, out);
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    return ((struct reading *)stream->private_data)->error;
}

static void release_stream(struct ArrowArrayStream *stream) {
    struct reading *reading = stream->private_data;
    reading->disown(reading->owner);
    free(reading);
    stream->release = NULL;
}

int arrow_stream_export(const struct table *table, struct ArrowArrayStream *out, void *owner,
                        void (*disown)(void *owner)) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return ENOMEM;
    *reading = (struct reading){.table = table, .owner = owner, .disown = disown};
    *out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                     .get_next = next_batch,
                                     .get_last_error = stream_error,
                                     .release = release_stream,
                                     .private_data = reading};
    return 0;
}
