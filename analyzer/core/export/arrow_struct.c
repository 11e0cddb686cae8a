/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of exported structures. The parent's children are in one block, behind the pointers to
 * them. A consumer may move a child out by copying it and setting its `release` to NULL; so a child
 * owns its buffers and dictionary, the parent only the array, and the parent releases the children
 * that are still there. Names and formats are not copied: they must be static. */
#include "export/arrow_struct.h"
#include "base/vocabulary.h"

#include <errno.h>
#include <stdlib.h>

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    schema->release = NULL;
}

/* The schema of a dictionary: UTF-8, without children, freed with its owner. */
static struct ArrowSchema *words_schema(void) {
    struct ArrowSchema *words = malloc(sizeof *words);
    if (words)
        *words = (struct ArrowSchema){.format = "u", .name = "", .release = release_schema};
    return words;
}

int arrow_struct_schema(const char *name, const struct arrow_field *fields, size_t count,
                        struct ArrowSchema *out) {
    struct ArrowSchema **pointers = calloc(count, sizeof *pointers + sizeof(struct ArrowSchema));
    struct ArrowSchema *children = (struct ArrowSchema *)(pointers + count);
    if (!pointers)
        return ENOMEM;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = name,
                                .n_children = (int64_t)count,
                                .children = pointers,
                                .release = release_schema};
    bool complete = true;
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &children[i];
        children[i] = (struct ArrowSchema){.format = fields[i].format,
                                           .name = fields[i].name,
                                           .flags = ARROW_FLAG_NULLABLE,
                                           .dictionary = fields[i].words ? words_schema() : NULL,
                                           .release = release_schema};
        complete = complete && !fields[i].words == !children[i].dictionary;
    }
    if (!complete)
        out->release(out);
    return complete ? 0 : ENOMEM;
}

/* Every batch exports the whole vocabulary as its dictionary: nothing is copied, and the numbers
 * of words are indices. */
static void release_words(struct ArrowArray *array) {
    array->release = NULL; /* the buffers are static */
}

bool arrow_child_set_words(struct ArrowArray *child) {
    static const void *buffers[] = {NULL, word_offsets, word_texts};
    child->dictionary = malloc(sizeof *child->dictionary);
    if (child->dictionary)
        *child->dictionary = (struct ArrowArray){
            .length = WORD_COUNT, .n_buffers = 3, .buffers = buffers, .release = release_words};
    return child->dictionary;
}

static void release_child(struct ArrowArray *array) {
    if (array->dictionary && array->dictionary->release)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
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

/* The struct array has no validity buffer. */
static const void *no_buffer[1];

static void release_batch(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    free(array->children);
    array->release = NULL;
}

bool arrow_struct_begin(struct ArrowArray *out, size_t count, size_t rows) {
    struct ArrowArray **pointers = calloc(count, sizeof *pointers + sizeof(struct ArrowArray));
    struct ArrowArray *children = (struct ArrowArray *)(pointers + count);
    if (!pointers)
        return false;
    for (size_t i = 0; i < count; i++)
        pointers[i] = &children[i];
    *out = (struct ArrowArray){.length = (int64_t)rows,
                               .n_buffers = 1,
                               .n_children = (int64_t)count,
                               .buffers = no_buffer,
                               .children = pointers,
                               .release = release_batch};
    return true;
}
