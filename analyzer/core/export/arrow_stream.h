/* SPDX-License-Identifier: Apache-2.0 */
/* A table handed over as an Arrow stream. */
#ifndef WIRETALE_ARROW_STREAM_H
#define WIRETALE_ARROW_STREAM_H

#include "export/arrow_struct.h"
#include "table/table.h"

/* 0, or ENOMEM with nothing to release. `out` holds structs of one child for each column. */
int arrow_schema_export(const struct schema *schema, struct ArrowSchema *out);

/* A stream over a finished table. `owner` is kept until the stream is released, when
 * `disown(owner)` is called (from whichever thread releases it). */
int arrow_stream_export(const struct table *table, struct ArrowArrayStream *out, void *owner,
                        void (*disown)(void *owner));

#endif
