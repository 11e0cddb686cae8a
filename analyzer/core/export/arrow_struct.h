/* SPDX-License-Identifier: Apache-2.0 */
/* The Arrow C data and stream interfaces
 * (https://arrow.apache.org/docs/format/CDataInterface.html): schema and batches of a stream of
 * structs. Everything exported has a release callback; a consumer may move children out of a batch
 * and must release each once. */
#ifndef WIRETALE_ARROW_STRUCT_H
#define WIRETALE_ARROW_STRUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARROW_FLAG_NULLABLE 2

/* The three structures are an ABI: their members and order must stay as the specification
 * defines them. */
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

struct arrow_field {
    const char *name, *format;
    bool words; /* the values index a dictionary, the whole vocabulary */
};

/* Writes a struct schema with one nullable child per field. Returns 0, or ENOMEM with nothing to
 * release. */
int arrow_struct_schema(const char *name, const struct arrow_field *fields, size_t count,
                        struct ArrowSchema *out);

/* Starts a batch of `rows` structs with `count` children, zeroed until arrow_child_begin(). Returns
 * false if memory is exhausted. out->release(out) frees a partial batch as well. */
bool arrow_struct_begin(struct ArrowArray *out, size_t count, size_t rows);

/* Sets the dictionary of a child of words. Returns false if memory is exhausted. */
bool arrow_child_set_words(struct ArrowArray *child);

/* Creates a child that owns its `buffers` buffers (each is freed with free()), because a consumer
 * may move it out of its batch. The validity buffer starts as all null; the caller must set the
 * others. */
bool arrow_child_begin(struct ArrowArray *child, size_t rows, int64_t buffers);

#endif
