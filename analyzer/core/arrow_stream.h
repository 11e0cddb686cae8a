/* SPDX-License-Identifier: Apache-2.0 */
/* A table handed over as Arrow: the C data interface and C stream interface, whose structures are
 * written here from the specification (https://arrow.apache.org/docs/format/CDataInterface.html).
 */
#ifndef WIRETALE_ARROW_STREAM_H
#define WIRETALE_ARROW_STREAM_H

#include "table.h"

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* 0, or ENOMEM with nothing to release. `out` holds structs of one child for each column. */
int arrow_schema_export(const struct schema *schema, struct ArrowSchema *out);

/* A stream over a finished table. `owner` is kept until the stream is released, when
 * `disown(owner)` is called (from whichever thread releases it). */
int arrow_stream_export(const struct table *table, struct ArrowArrayStream *out, void *owner,
                        void (*disown)(void *owner));

#endif
