/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a table as an Arrow C stream. */
#ifndef WIRETALE_ARROW_STREAM_H
#define WIRETALE_ARROW_STREAM_H

#include "export/arrow_struct.h"
#include "table/table.h"

/* Writes the schema into `out`: a struct with one child per column. Times are timestamp[ns, UTC]
 * and durations duration[ns], or int64 if `integers`, for consumers with a coarser resolution.
 * Words are dictionaries. Returns 0, or ENOMEM with nothing to release. */
int arrow_schema_export(const struct schema *schema, bool integers, struct ArrowSchema *out);

/* Writes a stream over a finished table into `out`. `owner` must outlive the stream: at its
 * release, `disown(owner)` is called from the releasing thread. Returns 0, or ENOMEM with nothing
 * to release. */
int arrow_stream_export(const struct table *table, bool integers, struct ArrowArrayStream *out,
                        void *owner, void (*disown)(void *owner));

#endif
