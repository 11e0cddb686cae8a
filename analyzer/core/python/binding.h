/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder, the only ones that may include Python.h. They use the limited
 * API of Python 3.11 (setup.py), so that one binary serves all later versions. A function that
 * returns NULL or -1 has set an exception.
 *
 * Ownership: a Table keeps a reference to its Analysis, whose memory it reads; pieces of JSON
 * and Arrow streams keep one to their Table. No reference points back, so that no cycle can
 * arise and the types need no garbage collection. Tables are finished before Python sees them:
 * any number of readers may iterate over one, each with its own cursor. */
#ifndef WIRETALE_BINDING_H
#define WIRETALE_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/error.h"
#include "export/arrow_struct.h"
#include "format/merged_input.h"
#include "table/table.h"

#define METHOD(name, function, flags, doc)                                                         \
    { name, (PyCFunction)(void (*)(void))function, flags, doc }

/* Frees the memory of an instance of a heap type. The deallocator must have released its
 * members. */
void binding_free_object(PyObject *self);
/* Appends a value, whose reference it takes over; NULL means that it could not be created. Returns
 * false with an exception set. */
bool binding_append(PyObject *list, PyObject *value);

/* Returns the damage of files that ended early, as a list of texts. */
PyObject *binding_damage(const struct merged_input *input);

/* Creates _core.Error. */
PyObject *binding_error_make(void);
/* Raises _core.Error and returns NULL. */
PyObject *binding_raise(const struct error *error);

/* Paths as the file system's bytes (os.fsencode). */
struct binding_paths {
    PyObject *encoded; /* tuple of bytes objects, into which `texts` points */
    const char **texts;
    size_t count;
};

/* Takes a list of str, bytes and path objects; a path with a NUL raises ValueError. A converter for
 * the format O&: `paths`, a struct binding_paths, must be zero and be freed also if it returns 0
 * with an exception set. */
int binding_take_paths(PyObject *list, void *paths);
void binding_free_paths(struct binding_paths *paths);

/* Converters that fill struct analysis_options and struct reading_mode from the records of
 * analyzer/options.py (module_options.c). They point into the record, which must stay. The caller
 * must free packets.flows of the mode with PyMem_Free(), also if they return 0. */
int binding_take_options(PyObject *record, void *options);
int binding_take_mode(PyObject *record, void *mode);

/* Returns the flow numbers of a list and sets their count; the caller must free them with
 * PyMem_Free(). Returns NULL with an exception set if it is not a list of integers. */
uint32_t *binding_flow_numbers(PyObject *list, size_t *count);

/* Takes a tuple of a value for each column of a table without words and addresses. None, an empty
 * text and NaN are null; texts are added to `texts`, which may be NULL if there is no such column.
 * Returns false with an exception set. */
bool binding_take_row(PyObject *values, const struct schema *schema, struct string_table *texts,
                      struct row *row);

/* Wrap a stream or schema as a capsule, which owns it. The structure is moved: the caller must
 * not release its own copy, even if NULL is returned. */
PyObject *binding_stream_capsule(struct ArrowArrayStream *stream);
PyObject *binding_schema_capsule(struct ArrowSchema *schema);
/* Releases a stream's reference to its owner; acquires the GIL, because any thread may release a
 * stream. */
void binding_disown(void *owner);

/* Returns the type of tables (borrowed), created once. */
PyTypeObject *table_types_make(void);
/* _core.frames(paths, frames, room) (module_frames.c). */
PyObject *module_frames(PyObject *module, PyObject *args);
/* _core.cut() and _core.pseudonym() (module_cut.c). */
PyObject *module_cut(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *module_pseudonym(PyObject *module, PyObject *args);
/* Constants (module_constants.c). */
PyObject *module_schemas(PyObject *module, PyObject *unused);
PyObject *module_libraries(PyObject *module, PyObject *unused);
PyObject *module_foreign_format(PyObject *module, PyObject *argument);
PyObject *module_vocabulary(PyObject *module, PyObject *unused);
struct analysis;
/* Analysis.split() (module_shard.c): returns the facts of a capture, and sets the analysis with its
 * rows, which the caller must close. */
PyObject *split_capture(PyObject *args, struct analysis **analysis);
/* Returns (flow, time or None, frame, whether it is late) of each flow of a shard of which the
 * table of flows does not have the packet that began it (module_shard.c). */
PyObject *begins_list(struct analysis *analysis);
/* Analysis.joined() (module_join.c). */
struct analysis *join_tables(PyObject *args);
struct judged_sums;
/* Returns (reason, measures, packets, wire bytes) of each sum with packets (module_join.c). */
PyObject *judged_list(const struct judged_sums *sums);
/* _core.frame_index(path, every), _core.seek_points(path, store) and _core.seek_read(path, points,
 * store, offset, size) (module_index.c). */
PyObject *module_frame_index(PyObject *module, PyObject *args);
PyObject *module_seek_points(PyObject *module, PyObject *args);
PyObject *module_seek_read(PyObject *module, PyObject *args);
/* _core.packet_rows(list) (module_index.c). */
PyObject *module_packet_rows(PyObject *module, PyObject *list);
/* _core.time_columns(parts, flows, chosen, most) (module_columns.c). */
PyObject *module_time_columns(PyObject *module, PyObject *args);
/* Wraps a finished table and keeps a reference to its owner. */
PyObject *table_wrap(PyObject *owner, const struct table *table);
/* The same for a table from malloc(), which is freed with the object, or now if NULL is returned.
 */
PyObject *table_wrap_own(PyObject *owner, struct table *own);
/* Frees a table from malloc(), which may be NULL. */
void table_free_own(struct table *own);
/* Returns (name, type, unit, meaning) of each column. */
PyObject *table_columns_of(const struct schema *schema);

struct table_object {
    PyObject_HEAD PyObject *owner; /* the Analysis, or the Table that owns the texts of `own` */
    const struct table *table;
    struct table *own; /* NULL, or a table that is freed with this object */
};

/* Returns the table of a Python object. */
static inline const struct table *table_of(PyObject *self) {
    return ((struct table_object *)self)->table;
}

/* Returns the table of any object; NULL if it is none. */
const struct table *binding_table(PyObject *object);
/* Returns a column's index, or -1 with KeyError set. */
int table_find_column(const struct table *table, PyObject *name);
/* Returns a value as an object (new reference), None if it is null. Texts and addresses are
 * decoded at each call, words are interned. */
PyObject *table_value_object(const struct table *table, const struct row *row, unsigned column);
/* Methods of Table (module_rows.c, module_column.c). Their documentation strings are in
 * module_table.c, their Python interface in analyzer/table.py. */
PyObject *table_rows(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *table_rows_at(PyObject *self, PyObject *numbers);
PyObject *table_rows_by_flow(PyObject *self, PyObject *flow_count);
PyObject *table_column(PyObject *self, PyObject *name);
PyObject *table_total(PyObject *self, PyObject *name);
PyObject *table_rows_where(PyObject *self, PyObject *args);
PyObject *table_nonzero(PyObject *self, PyObject *names);
PyObject *table_held_columns(PyObject *self, PyObject *unused);
PyObject *table_packed(PyObject *self, PyObject *args);
PyObject *table_time_sums(PyObject *self, PyObject *args);
PyObject *table_flow_sums(PyObject *self, PyObject *args);

#endif
