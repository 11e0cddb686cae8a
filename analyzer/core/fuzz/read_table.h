/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of all tables, as outputs write them. */
#ifndef WIRETALE_FUZZ_READ_TABLE_H
#define WIRETALE_FUZZ_READ_TABLE_H

#include <stdlib.h>

#include "export/export.h"
#include "pipeline/analysis.h"

/* One buffer for all tables and executions: allocating megabytes costs more than a small capture.
 */
static inline void write_json(const struct table *table) {
    static size_t room;
    static char *out;
    struct table_cursor cursor = {0}, again = {0};
    const struct json_form array = {0}, lines = {.lines = true};
    size_t wanted = 2 * table_json_room(table->schema);
    if (wanted > room) {
        free(out);
        out = malloc(wanted);
        room = out ? wanted : 0;
    }
    while (room && table_json(table, &cursor, &array, out, room) > 0)
        continue;
    while (room && table_json(table, &again, &lines, out, room) > 0)
        continue;
}

static inline void disown(void *owner) {
    (void)owner;
}

static inline void write_arrow(const struct table *table) {
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    if (arrow_stream_export(table, INTEGERS_NONE, &stream, NULL, disown))
        return;
    while (!stream.get_next(&stream, &batch) && batch.release)
        batch.release(&batch);
    stream.release(&stream);
}

static inline void write_tables(const struct analysis *analysis) {
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        write_json(analysis_table(analysis, (enum table_number)i));
        write_arrow(analysis_table(analysis, (enum table_number)i));
    }
}

#endif
