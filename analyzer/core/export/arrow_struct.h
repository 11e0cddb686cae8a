/* SPDX-License-Identifier: Apache-2.0 */
/* The Arrow C data interface and C stream interface, whose structures are written here from the
 * specification (https://arrow.apache.org/docs/format/CDataInterface.html), and the schema and the
 * batches of a stream of structs. */
#ifndef WIRETALE_ARROW_STRUCT_H
#define WIRETALE_ARROW_STRUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct arrow_field {
    const char *name, *format;
    bool words; /* the values are numbers of words: a dictionary, which is the whole vocabulary */
};

/* 0, or ENOMEM with nothing to release: structs with one nullable child for each field. */
int arrow_struct_schema(const char *name, const struct arrow_field *fields, size_t count,
                        struct ArrowSchema *out);

/* A batch of `rows` structs with `count` children, all zero until arrow_child_begin(); false
 * without memory. What was begun of it is released by out->release(out). */
bool arrow_struct_begin(struct ArrowArray *out, size_t count, size_t rows);

/* Gives a child of words its dictionary; false without memory. */
bool arrow_child_set_words(struct ArrowArray *child);

/* Makes a child that owns its buffers, since a consumer may move it out of its batch and release it
 * later: each is free()d. The validity is all null, the others are for the caller to set. */
bool arrow_child_begin(struct ArrowArray *child, size_t rows, int64_t buffers);

static inline void arrow_child_set_valid(struct ArrowArray *child, size_t row, bool valid) {
    ((uint8_t *)child->buffers[0])[row / 8] |= (uint8_t)(valid << row % 8);
    child->null_count += !valid;
}

#endif
