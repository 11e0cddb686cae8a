/* SPDX-License-Identifier: Apache-2.0 */
/* Values go through struct row, so that the packing of tables may change. The rows come from files:
 * types, words, addresses, flows and nulls are checked, because readers of the tables rely on them.
 */
#include "shard/join.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/vocabulary.h"
#include "rows/row_sink.h"

/* The rows of a batch, and the words of each column that were found last. */
struct joining {
    struct row_sink *sink;
    const struct schema *schema;
    struct table *table;
    const struct ArrowArray *columns[COLUMNS_MAX];
    uint8_t words[COLUMNS_MAX];
    uint64_t flow_count;
    int64_t before; /* flow of the row before, -1 for none */
};

static const char *format_of(enum column_type type) {
    static const char *const formats[] = {
        [TYPE_INT] = "l",  [TYPE_TIME] = "l",    [TYPE_DURATION] = "l",
        [TYPE_REAL] = "g", [TYPE_BOOL] = "b",    [TYPE_WORD] = "u",
        [TYPE_TEXT] = "u", [TYPE_ADDRESS] = "u", [TYPE_PATH] = "u"};
    return formats[type];
}

/* Returns whether the columns are those of the table. */
static bool schema_fits(const struct schema *schema, struct ArrowArrayStream *stream) {
    struct ArrowSchema arrow = {0};
    if (stream->get_schema(stream, &arrow))
        return false;
    bool fits = arrow.n_children == (int64_t)schema->column_count;
    for (size_t c = 0; fits && c < schema->column_count; c++)
        fits = !strcmp(arrow.children[c]->name, schema->columns[c].name) &&
               !strcmp(arrow.children[c]->format, format_of(schema->columns[c].type));
    if (arrow.release)
        arrow.release(&arrow);
    return fits;
}

static bool bit_of(const void *bitmap, uint64_t at) {
    return ((const uint8_t *)bitmap)[at / 8] >> at % 8 & 1;
}

static bool is_word(const char *text, size_t size, unsigned word) {
    size_t offset = (size_t)word_offsets[word];
    return (size_t)word_offsets[word + 1] - offset == size &&
           !memcmp(word_texts + offset, text, size);
}

/* Returns the number of a word, -1 if there is none. */
static int64_t word_number(struct joining *joining, unsigned column, const char *text,
                           size_t size) {
    uint8_t *last = &joining->words[column];
    if (is_word(text, size, *last))
        return *last;
    for (unsigned word = 0; word < WORD_COUNT; word++)
        if (is_word(text, size, word))
            return *last = (uint8_t)word;
    return -1;
}
_Static_assert(WORD_COUNT <= UINT8_MAX, "the words found last");

static int64_t address_number(struct row_sink *sink, const char *text) {
    uint8_t address[16];
    unsigned version = strchr(text, ':') ? 6 : 4;
    if (inet_pton(version == 4 ? AF_INET : AF_INET6, text, address) != 1)
        return -1;
    return add_address(sink, version, address);
}

/* Returns the number of a text, -1 if it cannot be one of the column. */
static int64_t text_number(struct joining *joining, unsigned column, uint64_t at) {
    const struct ArrowArray *array = joining->columns[column];
    const int32_t *offsets = array->buffers[1];
    size_t size = (size_t)(offsets[at + 1] - offsets[at]);
    const char *bytes = size ? (const char *)array->buffers[2] + offsets[at] : "";
    char text[TEXT_MAX + 1];
    if (offsets[at + 1] < offsets[at] || size > TEXT_MAX)
        return -1;
    if (joining->schema->columns[column].type == TYPE_WORD)
        return word_number(joining, column, bytes, size);
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (joining->schema->columns[column].type == TYPE_ADDRESS)
        return address_number(joining->sink, text);
    int64_t number = string_table_add(&joining->sink->texts, text);
    joining->sink->out_of_memory |= number < 0;
    return number;
}

/* Sets a column. Returns false for a value that it cannot have. */
static bool take_value(struct joining *joining, unsigned column, uint64_t at, struct row *row) {
    const struct ArrowArray *array = joining->columns[column];
    const struct column *about = &joining->schema->columns[column];
    at += (uint64_t)array->offset;
    if (array->buffers[0] && !bit_of(array->buffers[0], at))
        return !about->known;
    int64_t value = about->type >= TYPE_WORD   ? text_number(joining, column, at)
                    : about->type == TYPE_BOOL ? bit_of(array->buffers[1], at)
                                               : ((const int64_t *)array->buffers[1])[at];
    if (about->type >= TYPE_WORD && value < 0)
        return false;
    row_set(row, column, value);
    return true;
}

/* Returns whether a row may follow the one of flow `before`: each flow has one row in the table of
 * flows, and one for each of its directions. */
static bool is_ordered(const struct joining *joining, const struct row *row) {
    uint64_t i = joining->table->row_count;
    int64_t flow = row->value[0];
    if (joining->schema == &schemas[TABLE_flows])
        return flow == (int64_t)i;
    if (joining->schema == &schemas[TABLE_directions])
        return flow == (int64_t)(i / 2) && row->value[directions_direction] == (int64_t)(i % 2);
    return flow >= joining->before;
}

/* Adds a row. Returns false if it cannot be one of the table, or without memory. */
static bool add(struct joining *joining, const struct row *row) {
    struct table *table = joining->table;
    struct row_order order = {.at = table->row_count};
    bool of_flow = !strcmp(joining->schema->columns[0].name, "flow") && row_known(row, 0);
    if (of_flow && (uint64_t)row->value[0] >= joining->flow_count &&
        joining->schema != &schemas[TABLE_flows])
        return false;
    if (table->grouped && (!of_flow || !is_ordered(joining, row)))
        return false;
    bool begun = !table->grouped || row->value[0] == joining->before ||
                 table_begin_group(table, (uint32_t)row->value[0]);
    bool sorted = table == &joining->sink->tables[TABLE_exchanges] ||
                  table == &joining->sink->tables[TABLE_datagrams];
    joining->before = of_flow ? row->value[0] : -1;
    if (begun && (sorted ? table_add_ordered(table, row, &order) : table_add(table, row)))
        return true;
    joining->sink->out_of_memory = true;
    return false;
}

static bool add_batch(struct joining *joining, const struct ArrowArray *batch) {
    for (size_t c = 0; c < joining->schema->column_count; c++)
        joining->columns[c] = batch->children[c];
    for (int64_t i = 0; i < batch->length; i++) {
        struct row row;
        row_clear(&row);
        for (unsigned c = 0; c < joining->schema->column_count; c++)
            if (!take_value(joining, c, (uint64_t)(i + batch->offset), &row))
                return false;
        if (!add(joining, &row))
            return false;
    }
    return true;
}

bool join_rows(struct analysis *analysis, enum table_number number, struct ArrowArrayStream *stream,
               struct error *error) {
    struct row_sink *sink = analysis_sink(analysis);
    struct joining joining = {.sink = sink,
                              .schema = &schemas[number],
                              .table = &sink->tables[number],
                              .flow_count = sink->tables[TABLE_flows].row_count,
                              .before = -1};
    bool done = schema_fits(joining.schema, stream);
    for (struct ArrowArray batch; done; batch.release(&batch)) {
        batch = (struct ArrowArray){0};
        if (stream->get_next(stream, &batch)) {
            const char *reason = stream->get_last_error(stream);
            return error_set(error, ERROR_UNREADABLE, "%s: %s", joining.schema->name,
                             reason ? reason : "cannot be read");
        }
        if (!batch.release)
            return true;
        done = add_batch(&joining, &batch);
    }
    return sink->out_of_memory
               ? error_set(error, ERROR_MEMORY, "out of memory while the rows were joined")
               : error_set(error, ERROR_UNREADABLE,
                           "the rows of %s are damaged, or of another version of wiretale",
                           joining.schema->name);
}

bool join_end(struct analysis *analysis, struct error *error) {
    struct row_sink *sink = analysis_sink(analysis);
    if (sink->tables[TABLE_directions].row_count != 2 * sink->tables[TABLE_flows].row_count)
        return error_set(error, ERROR_UNREADABLE, "rows of directions are missing");
    return row_sink_sort(sink) ||
           error_set(error, ERROR_MEMORY, "out of memory while the rows were joined");
}
