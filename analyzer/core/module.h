/* SPDX-License-Identifier: Apache-2.0 */
/* What module.c and module_table.c, the only files that know Python, have of each other. */
#ifndef WIRETALE_MODULE_H
#define WIRETALE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "table.h"

#define METHOD(name, function, flags, doc)                                                         \
    { name, (PyCFunction)(void (*)(void))function, flags, doc }

/* Frees an instance of one of the heap types. */
void module_free_object(PyObject *self);
/* Flow numbers of a list, for PyMem_Free(); NULL with an exception set. */
uint32_t *module_flow_numbers(PyObject *list, size_t *count);

/* The type of tables (borrowed), made once; NULL with an exception set. */
PyTypeObject *table_types_make(void);
/* The type of passages (new); NULL with an exception set. */
PyObject *passages_type_make(void);
/* A finished table of `owner`, which lives as long. */
PyObject *table_wrap(PyObject *owner, const struct table *table);
/* (name, type, unit, meaning) of each column. */
PyObject *table_columns_of(const struct schema *schema);

#endif
