/* SPDX-License-Identifier: Apache-2.0 */
/* A table handed over as an Arrow stream. */
#ifndef WIRETALE_ARROW_STREAM_H
#define WIRETALE_ARROW_STREAM_H

#include "export/arrow_struct.h"
#include "table/table.h"

/* Writes the schema into `out`: a struct with one child for each column. Times are timestamp[ns,
 * UTC] and durations duration[ns], or with `integers` int64, for consumers that keep less than ns
 * of them. Words are a dictionary. Returns 0, or ENOMEM with nothing to release. */
int arrow_schema_export(const struct schema *schema, bool integers, struct ArrowSchema *out);

/* Writes a stream over a finished table into `out`. `owner` is kept until the stream is released,
 * when `disown(owner)` is called (from whichever thread releases it). Returns 0, or ENOMEM with
 * nothing to release. */
int arrow_stream_export(const struct table *table, bool integers, struct ArrowArrayStream *out,
                        void *owner, void (*disown)(void *owner));

#endif
