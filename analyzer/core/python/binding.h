/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder, the only ones that include Python.h. */
#ifndef WIRETALE_BINDING_H
#define WIRETALE_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "export/arrow_struct.h"
#include "table/table.h"

#define METHOD(name, function, flags, doc)                                                         \
    { name, (PyCFunction)(void (*)(void))function, flags, doc }

/* Frees an instance of one of the heap types. */
void binding_free_object(PyObject *self);
/* Flow numbers of a list, for PyMem_Free(); NULL with an exception set. */
uint32_t *binding_flow_numbers(PyObject *list, size_t *count);

/* Both take over what they are given; NULL with an exception set. */
PyObject *binding_stream_capsule(struct ArrowArrayStream *stream);
PyObject *binding_schema_capsule(struct ArrowSchema *schema);
/* Gives back a reference that a stream kept, from whichever thread releases it. */
void binding_disown(void *owner);

/* The type of tables (borrowed), made once; NULL with an exception set. */
PyTypeObject *table_types_make(void);
/* The type of observations (new); NULL with an exception set. */
PyObject *observations_type_make(void);
/* A finished table of `owner`, which lives as long. */
PyObject *table_wrap(PyObject *owner, const struct table *table);
/* (name, type, unit, meaning) of each column. */
PyObject *table_columns_of(const struct schema *schema);

/* The table behind a Python object. */
const struct table *table_of(PyObject *self);

/* module_column.c: columns as Python sees them. */
/* A column's number, -1 with an exception set. */
int table_find_column(const struct table *table, const char *name);
PyObject *table_value_object(const struct table *table, const struct row *row, unsigned column);
PyObject *table_column(PyObject *self, PyObject *name);
PyObject *table_total(PyObject *self, PyObject *name);
PyObject *table_rows_where(PyObject *self, PyObject *args);
PyObject *table_words(PyObject *self, PyObject *name);
PyObject *table_nonzero(PyObject *self, PyObject *names);
PyObject *table_packed(PyObject *self, PyObject *args);

#endif
