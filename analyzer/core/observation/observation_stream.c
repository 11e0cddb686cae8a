/* SPDX-License-Identifier: Apache-2.0 */
/* The Arrow stream of observations. A batch has at most BATCH_ROWS rows, which are read into an
 * array of structs and then copied column by column into buffers that belong to the batch. The
 * stream itself needs 5 MB for that array, whatever the size of the capture.
 *
 * Columns have offset and width of a struct member, so that one loop serves all fixed types;
 * only `ends` is text. Signed 64-bit columns are nullable by OBSERVATION_UNKNOWN, all others
 * never null. Errors are errno values with a text (get_last_error); after an error the stream
 * must be released. */
#include "observation/observation.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS 8192u

struct observation_column {
    const char *name, *format;
    size_t offset, width;
};

static const struct observation_column columns[] = {
#define X(member, format)                                                                          \
    {#member, format, offsetof(struct observation, member),                                        \
     sizeof(((struct observation *)0)->member)},
    OBSERVATION_COLUMNS(X)
#undef X
};

#define FIXED (sizeof columns / sizeof *columns)
#define ENDS  FIXED /* the text column is the last one */
#define COUNT (FIXED + 1)

int observation_schema_export(struct ArrowSchema *out) {
    struct arrow_field fields[COUNT];
    for (size_t i = 0; i < FIXED; i++)
        fields[i] = (struct arrow_field){.name = columns[i].name, .format = columns[i].format};
    fields[ENDS] = (struct arrow_field){.name = "ends", .format = "u"};
    return arrow_struct_schema("observations", fields, COUNT, out);
}

/* Only columns of format l have a null value; the others have none to spare. */
static bool is_null(const struct observation *row, const struct observation_column *column) {
    int64_t value;
    if (column->format[0] != 'l')
        return false;
    memcpy(&value, (const char *)row + column->offset, sizeof value);
    return value == OBSERVATION_UNKNOWN;
}

/* The buffers belong to the child as soon as they are set, so that a failure leaks nothing: the
 * batch's release frees them. */
static bool fill_column(struct ArrowArray *array, const struct observation_column *column,
                        const struct observation *rows, size_t count) {
    if (!arrow_child_begin(array, count, 2))
        return false;
    char *values = malloc(count * column->width);
    array->buffers[1] = values;
    if (!values)
        return false;
    for (size_t i = 0; i < count; i++) {
        arrow_child_set_valid(array, i, !is_null(&rows[i], column));
        memcpy(values + i * column->width, (const char *)&rows[i] + column->offset, column->width);
    }
    return true;
}

static size_t text_size(const struct observation *row) {
    return row->has_ends ? strlen(row->ends) : 0;
}

/* The sizes are added up first, so that the text is allocated once. It stays below 4 MB. */
static bool fill_ends(struct ArrowArray *array, const struct observation *rows, size_t count) {
    size_t size = 0;
    if (!arrow_child_begin(array, count, 3))
        return false;
    for (size_t i = 0; i < count; i++)
        size += text_size(&rows[i]);
    int32_t *offsets = calloc(count + 1, sizeof *offsets);
    char *text = malloc(size + 1);
    array->buffers[1] = offsets;
    array->buffers[2] = text;
    if (!offsets || !text)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t length = text_size(&rows[i]);
        memcpy(text + offsets[i], rows[i].ends, length);
        offsets[i + 1] = offsets[i] + (int32_t)length;
        arrow_child_set_valid(array, i, rows[i].has_ends);
    }
    return true;
}

struct reading {
    const char *const *paths;
    size_t path_count;
    struct observation_listener listener;
    struct observation_reader *reader;
    bool ended;
    struct error error;
    struct observation rows[BATCH_ROWS]; /* of the batch that is made */
};

static bool fill_batch(struct ArrowArray *out, const struct observation *rows, size_t count) {
    if (!arrow_struct_begin(out, COUNT, count))
        return false;
    for (size_t c = 0; c < FIXED; c++)
        if (!fill_column(out->children[c], &columns[c], rows, count))
            return false;
    return fill_ends(out->children[ENDS], rows, count);
}

/* get_next: writes a batch, or an array without `release` at the end of the stream, as the
 * interface demands. May block while a pipe has no data. The files are opened here, not at the
 * export, because a consumer that only needs the schema must not wait for a pipe. */
static int next_batch(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    struct reading *reading = stream->private_data;
    *out = (struct ArrowArray){0};
    if (reading->ended)
        return 0;
    if (!reading->reader)
        reading->reader =
            observation_reader_open(reading->paths, reading->path_count, &reading->error);
    if (!reading->reader)
        return EIO;
    size_t count = observation_read(reading->reader, reading->rows, BATCH_ROWS);
    if (!count) {
        reading->ended = true;
        reading->listener.ended(reading->listener.owner, reading->reader);
        reading->reader = NULL;
        return 0;
    }
    if (fill_batch(out, reading->rows, count))
        return 0;
    if (out->release)
        out->release(out);
    error_set(&reading->error, ERROR_MEMORY, "out of memory");
    return ENOMEM;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    (void)stream;
    return observation_schema_export(out);
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    return ((struct reading *)stream->private_data)->error.text;
}

/* The reader is NULL if it was handed over or never opened. */
static void release_stream(struct ArrowArrayStream *stream) {
    struct reading *reading = stream->private_data;
    observation_reader_close(reading->reader);
    reading->listener.disown(reading->listener.owner);
    free(reading);
    stream->release = NULL;
}

int observation_stream_export(const char *const *paths, size_t count,
                              const struct observation_listener *listener,
                              struct ArrowArrayStream *out) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return ENOMEM;
    reading->paths = paths;
    reading->path_count = count;
    reading->listener = *listener;
    *out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                     .get_next = next_batch,
                                     .get_last_error = stream_error,
                                     .release = release_stream,
                                     .private_data = reading};
    return 0;
}
