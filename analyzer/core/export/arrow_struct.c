/* SPDX-License-Identifier: Apache-2.0 */
#include "export/arrow_struct.h"

#include <errno.h>
#include <stdlib.h>

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    free(schema->children);
    free(schema->private_data);
    schema->release = NULL;
}

int arrow_struct_schema(const char *name, const struct arrow_field *fields, size_t count,
                        struct ArrowSchema *out) {
    struct ArrowSchema **pointers = calloc(count, sizeof *pointers);
    struct ArrowSchema *children = calloc(count, sizeof *children);
    if (!pointers || !children) {
        free(pointers);
        free(children);
        return ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &children[i];
        children[i] = (struct ArrowSchema){.format = fields[i].format,
                                           .name = fields[i].name,
                                           .flags = ARROW_FLAG_NULLABLE,
                                           .release = release_schema};
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = name,
                                .n_children = (int64_t)count,
                                .children = pointers,
                                .release = release_schema,
                                .private_data = children};
    return 0;
}

static void release_child(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

bool arrow_child_begin(struct ArrowArray *child, size_t rows, int64_t buffers) {
    *child = (struct ArrowArray){
        .length = (int64_t)rows, .n_buffers = buffers, .release = release_child};
    child->buffers = calloc((size_t)buffers, sizeof *child->buffers);
    if (!child->buffers) {
        child->n_buffers = 0;
        return false;
    }
    child->buffers[0] = calloc(1, rows / 8 + 1);
    return child->buffers[0];
}

/* Of the struct itself, which has no validity. */
static const void *no_buffer[1];

static void release_batch(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    free(array->children);
    free(array->private_data);
    array->release = NULL;
}

bool arrow_struct_begin(struct ArrowArray *out, size_t count, size_t rows) {
    struct ArrowArray **pointers = calloc(count, sizeof *pointers);
    struct ArrowArray *children = calloc(count, sizeof *children);
    if (!pointers || !children) {
        free(pointers);
        free(children);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        pointers[i] = &children[i];
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .n_buffers = 1,
                               .n_children = (int64_t)count,
                               .buffers = no_buffer,
                               .children = pointers,
                               .release = release_batch,
                               .private_data = children};
    return true;
}
