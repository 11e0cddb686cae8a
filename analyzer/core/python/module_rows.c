/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in Python, each a dict with all columns. There should be few, because each value becomes an
 * object. */
#include <string.h>

#include "python/binding.h"

/* Returns a column's name as an interned object (borrowed), which is kept for the whole process:
 * rows() would otherwise create each name once per row. */
static PyObject *name_object(const struct schema *schema, unsigned column) {
    static PyObject *names[SCHEMA_COUNT][COLUMNS_MAX];
    PyObject **name = &names[schema - schemas][column];
    if (!*name)
        *name = PyUnicode_InternFromString(schema->columns[column].name);
    return *name;
}

static PyObject *row_object(const struct table *table, const struct row *row) {
    PyObject *dict = PyDict_New();
    for (unsigned c = 0; dict && c < table->schema->column_count; c++) {
        PyObject *name = name_object(table->schema, c);
        PyObject *value = name ? table_value_object(table, row, c) : NULL;
        if (!value || PyDict_SetItem(dict, name, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* rows(start=0, stop=None): list of dicts, with the rules of a slice for negative and too large
 * numbers. table_seek() skips whole groups but must unpack the rows before `start` in an
 * ungrouped table, so that a caller should not page through a large one. */
PyObject *table_rows(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"start", "stop", NULL};
    const struct table *table = table_of(self);
    Py_ssize_t start = 0, stop = PY_SSIZE_T_MAX, count = (Py_ssize_t)table->row_count;
    PyObject *end = NULL, *list;
    struct table_cursor cursor = {0};
    struct row row;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|nO", names, &start, &end))
        return NULL;
    if (end && end != Py_None)
        stop = PyNumber_AsSsize_t(end, NULL);
    if (PyErr_Occurred() || !(list = PyList_New(0)))
        return NULL;
    PySlice_AdjustIndices(count, &start, &stop, 1);
    table_seek(table, &cursor, (uint64_t)start);
    for (Py_ssize_t i = start; list && i < stop && table_next(table, &cursor, &row); i++)
        if (!binding_append(list, row_object(table, &row)))
            Py_CLEAR(list);
    return list;
}

/* Moves the cursor to a row. Of a table without an index, rows before it are skipped only if they
 * have not been read. */
static void move_to(const struct table *table, struct table_cursor *cursor, uint64_t number) {
    struct row row;
    if (table->grouped || table->order || number < cursor->row)
        table_seek(table, cursor, number);
    while (cursor->row < number && table_next_of(table, cursor, 0, &row))
        continue;
}

/* rows_at([number, ...]): list of dicts. Numbers that ascend are read in one pass at most. Raises
 * IndexError if there is no such row. */
PyObject *table_rows_at(PyObject *self, PyObject *numbers) {
    const struct table *table = table_of(self);
    Py_ssize_t count = PyList_Size(numbers);
    struct table_cursor cursor = {0};
    struct row row;
    PyObject *list = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        size_t number = PyLong_AsSize_t(PyList_GetItem(numbers, i));
        if (PyErr_Occurred() || number >= table->row_count) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_IndexError, "no row %zu in %s", number, table->schema->name);
            Py_CLEAR(list);
            break;
        }
        move_to(table, &cursor, number);
        if (!table_next(table, &cursor, &row) || !binding_append(list, row_object(table, &row)))
            Py_CLEAR(list);
    }
    return list;
}

/* rows_by_flow(flow_count): bytes with one native uint32 per flow. A grouped table knows its
 * counts; others need a pass. Rows of flows that are null or not below `flow_count` are not
 * counted. */
PyObject *table_rows_by_flow(PyObject *self, PyObject *flow_count) {
    const struct table *table = table_of(self);
    int column = schema_column(table->schema, "flow");
    size_t count = PyLong_AsSize_t(flow_count);
    struct table_cursor cursor = {0};
    struct row row;
    if (column < 0)
        return PyErr_Format(PyExc_KeyError, "no column flow in %s", table->schema->name);
    if (PyErr_Occurred() || count > UINT32_MAX)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "too many flows");
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint32_t)));
    uint32_t *counts = bytes ? (uint32_t *)(void *)PyBytes_AsString(bytes) : NULL;
    if (!counts)
        return bytes;
    memset(counts, 0, count * sizeof *counts);
    for (size_t flow = 0; table->grouped && flow < table->groups.count && flow < count; flow++)
        counts[flow] = table->groups.list[flow].size;
    while (!table->grouped && table_next(table, &cursor, &row))
        if (row_known(&row, (unsigned)column) && (uint64_t)row.value[column] < count)
            counts[row.value[column]]++;
    return bytes;
}
