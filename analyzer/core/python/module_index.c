/* SPDX-License-Identifier: Apache-2.0 */
/* For `wiretale view`: the index of the frames of a file and its seek points, and rows of packets
 * that come back from a store, so that they are packed for the page by the same code as those of an
 * analysis. Files are read without the GIL, because a large one takes seconds. Lists become bytes
 * objects of native 64-bit numbers, which Python reads by array(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/frame_index.h"
#include "input/seek_points.h"
#include "python/binding.h"

_Static_assert(sizeof(struct checkpoint) == 2 * sizeof(uint64_t), "two numbers");
_Static_assert(sizeof(struct header_place) == 4 * sizeof(uint64_t), "four numbers");
_Static_assert(sizeof(struct seek_point) == 6 * sizeof(uint64_t), "six numbers");

#define SEEK_READ_MAX (16u << 20) /* bytes */

/* "" for an empty list, whose pointer is NULL. */
static PyObject *bytes_of(const void *list, size_t count, size_t size) {
    return PyBytes_FromStringAndSize(list ? list : "", (Py_ssize_t)(count * size));
}

/* frame_index(path, every): (compression or None, frames, checkpoints as pairs of frames before
 * and offset, header blocks as frames before, offset, size and whether it is a section header). */
PyObject *module_frame_index(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *path, *result = NULL;
    unsigned long long every;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &path, &every))
        return NULL;
    struct frame_index index = {0};
    struct error error = {0};
    bool made;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS made = frame_index_make(&index, name, every ? every : 1, &error);
    Py_END_ALLOW_THREADS if (made) result = Py_BuildValue(
        "(zKNN)", index.compression, (unsigned long long)index.frames,
        bytes_of(index.checkpoints, index.count, sizeof *index.checkpoints),
        bytes_of(index.headers.places, index.headers.count, sizeof *index.headers.places));
    else binding_raise(&error);
    frame_index_free(&index);
    Py_DECREF(path);
    return result;
}

/* seek_points(path, store, spacing, most): the points of a compressed file, b"" if it is not
 * compressed. */
PyObject *module_seek_points(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *path, *result = NULL;
    int store;
    unsigned long long spacing, most;
    if (!PyArg_ParseTuple(args, "O&iKK", PyUnicode_FSConverter, &path, &store, &spacing, &most))
        return NULL;
    struct seek_bounds bounds = {spacing ? spacing : 1, most > 1 ? (size_t)most : 2};
    struct seek_list list = {0};
    struct error error = {0};
    bool made;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS made = seek_points_make(&list, name, store, &bounds, &error);
    Py_END_ALLOW_THREADS if (made) result = bytes_of(list.points, list.count, sizeof *list.points);
    else if ((errno = list.write_error)) PyErr_SetFromErrno(PyExc_OSError);
    else binding_raise(&error);
    free(list.points);
    Py_DECREF(path);
    return result;
}

/* Returns a list of a copy of these bytes, which are aligned then. */
static bool points_of(struct seek_list *list, const char *bytes, Py_ssize_t size) {
    *list = (struct seek_list){.count = (size_t)size / sizeof *list->points};
    list->points = malloc(list->count * sizeof *list->points + 1);
    if (list->points)
        memcpy(list->points, bytes, list->count * sizeof *list->points);
    return list->points;
}

/* seek_read(path, points, store, offset, size): bytes of the decompressed file, fewer at its end.
 */
PyObject *module_seek_read(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *path, *result = NULL;
    const char *points;
    Py_ssize_t points_size, size;
    int store;
    unsigned long long offset;
    if (!PyArg_ParseTuple(args, "O&y#iKn", PyUnicode_FSConverter, &path, &points, &points_size,
                          &store, &offset, &size))
        return NULL;
    struct seek_list list = {0};
    struct error error = {0};
    size_t got = 0;
    const char *name = PyBytes_AsString(path);
    bool fits = size >= 0 && size <= SEEK_READ_MAX;
    uint8_t *room = fits ? malloc((size_t)size + 1) : NULL;
    if (!fits)
        PyErr_Format(PyExc_ValueError, "expected a size up to %u", SEEK_READ_MAX);
    else if (!room || !points_of(&list, points, points_size))
        PyErr_NoMemory();
    else {
        bool read;
        Py_BEGIN_ALLOW_THREADS read =
            seek_points_read(&list, name, store, offset, room, (size_t)size, &got, &error);
        Py_END_ALLOW_THREADS if (read) result =
            PyBytes_FromStringAndSize((char *)room, (Py_ssize_t)got);
        else binding_raise(&error);
    }
    free(list.points);
    free(room);
    Py_DECREF(path);
    return result;
}

/* --- rows that come back ---------------------------------------------------------------------- */

/* Adds a row. Returns false with an exception set. */
static bool add_packet(struct table *table, PyObject *values) {
    struct row row;
    if (!binding_take_row(values, table->schema, NULL, &row))
        return false;
    if (row.value[packets_direction] < 0 || row.value[packets_direction] > 1) {
        PyErr_SetString(PyExc_ValueError, "expected 0 or 1 as the direction");
        return false;
    }
    return table_add(table, &row) || PyErr_NoMemory();
}

/* packet_rows(rows): a packets table with these rows. It has no texts, so that none is its owner.
 */
PyObject *module_packet_rows(PyObject *Py_UNUSED(module), PyObject *list) {
    static const struct string_table no_texts;
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "expected a list of tuples");
    struct table *table = malloc(sizeof *table);
    if (!table)
        return PyErr_NoMemory();
    table_init(table, TABLE_packets, &no_texts, 0, false);
    bool made = true;
    for (Py_ssize_t i = 0; made && i < PyList_Size(list); i++)
        made = add_packet(table, PyList_GetItem(list, i));
    if (made)
        return table_wrap_own(Py_None, table);
    table_free_own(table);
    return NULL;
}
