/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow structures as PyCapsules
 * (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). A consumer
 * moves the structure out of the capsule and sets `release` to NULL in it; the destructor then
 * frees only the memory of the structure. If the capsule is never consumed, the destructor
 * releases both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "python/binding.h"

#include "base/vocabulary.h"

#define PATHS_MOST_COUNT ((Py_ssize_t)1 << 24)

static PyObject *core_error;

/* The first argument of _core.Error: analyzer/trace.py chooses the exception class by it. */
static const char *const error_words[] = {
    [ERROR_NONE] = "",
    [ERROR_USAGE] = "usage",
    [ERROR_UNREADABLE] = "unreadable",
    [ERROR_MEMORY] = "memory",
};

/* Raises _core.Error and returns NULL. The text may contain a path, hence any bytes: those that
 * are not UTF-8 are escaped rather than replaced, so that the name can still be recognized. */
PyObject *binding_raise(const struct error *error) {
    PyObject *text =
        PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "backslashreplace");
    PyObject *arguments = text ? Py_BuildValue("(sN)", error_words[error->kind], text) : NULL;
    if (arguments)
        PyErr_SetObject(core_error, arguments);
    Py_XDECREF(arguments);
    return NULL;
}

PyObject *binding_error_make(void) {
    return core_error = PyErr_NewException("wiretale.analyzer._core.Error", NULL, NULL);
}

/* The GIL may already be held, because the destructor of an unused capsule releases its stream
 * as well: PyGILState_Ensure() nests. */
void binding_disown(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

/* A capsule's destructor must not raise. The name matches, so that PyCapsule_GetPointer() cannot
 * fail. */
static void free_stream(PyObject *capsule) {
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream && stream->release)
        stream->release(stream);
    free(stream);
}

static void free_schema(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema && schema->release)
        schema->release(schema);
    free(schema);
}

/* Copies the structure to the heap, because its address must stay valid as long as the capsule. */
static PyObject *capsule_of(const void *structure, size_t size, const char *name,
                            PyCapsule_Destructor destructor) {
    void *held = malloc(size);
    PyObject *capsule = held ? PyCapsule_New(held, name, destructor) : PyErr_NoMemory();
    if (capsule)
        memcpy(held, structure, size);
    else
        free(held);
    return capsule;
}

/* If it fails, the stream is released, so that its owner loses the reference taken for it. */
PyObject *binding_stream_capsule(struct ArrowArrayStream *stream) {
    PyObject *capsule = capsule_of(stream, sizeof *stream, "arrow_array_stream", free_stream);
    if (!capsule)
        stream->release(stream);
    return capsule;
}

PyObject *binding_schema_capsule(struct ArrowSchema *schema) {
    PyObject *capsule = capsule_of(schema, sizeof *schema, "arrow_schema", free_schema);
    if (!capsule)
        schema->release(schema);
    return capsule;
}

/* Since Python 3.8 an instance of a heap type owns a reference to its type, which its
 * deallocator must return after the memory. */
void binding_free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

bool binding_append(PyObject *list, PyObject *value) {
    bool added = value && !PyList_Append(list, value);
    Py_XDECREF(value);
    return added;
}

/* A text may quote bytes of the file, so malformed UTF-8 is replaced. */
PyObject *binding_damage(const struct merged_input *input) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < merged_input_files(input); i++) {
        const struct damage *damage = merged_input_damage(input, i);
        Py_ssize_t size = (Py_ssize_t)strlen(damage->text);
        if (damage->present &&
            !binding_append(list, PyUnicode_DecodeUTF8(damage->text, size, "replace")))
            Py_CLEAR(list);
    }
    return list;
}

int binding_take_paths(PyObject *list, void *place) {
    struct binding_paths *paths = place;
    Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : 0;
    if (count < 1 || count > PATHS_MOST_COUNT) {
        PyErr_SetString(PyExc_TypeError, "paths must be a list of at least one path");
        return false;
    }
    paths->encoded = PyTuple_New(count);
    paths->texts = PyMem_Calloc((size_t)count, sizeof *paths->texts);
    if (!paths->encoded || !paths->texts)
        return PyErr_NoMemory() != NULL;
    for (; paths->count < (size_t)count; paths->count++) {
        Py_ssize_t i = (Py_ssize_t)paths->count;
        PyObject *path;
        if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &path) ||
            PyTuple_SetItem(paths->encoded, i, path))
            return false;
        paths->texts[i] = PyBytes_AsString(path);
    }
    return true;
}

void binding_free_paths(struct binding_paths *paths) {
    PyMem_Free(paths->texts);
    Py_XDECREF(paths->encoded);
}

/* A number that exceeds 32 bits becomes UINT32_MAX, which no flow has, so that it chooses no row
 * instead of a wrong one. A negative number or another type raises. An empty list returns an
 * array as well, because NULL would mean all flows to column_pack(). */
uint32_t *binding_flow_numbers(PyObject *list, size_t *count) {
    Py_ssize_t size = PyList_Size(list);
    uint32_t *flows = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *flows);
    if (size < 0 || !flows)
        return size < 0 ? NULL : (void *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        unsigned long number = PyLong_AsUnsignedLong(PyList_GetItem(list, i));
        flows[i] = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    *count = (size_t)size;
    if (!PyErr_Occurred())
        return flows;
    PyMem_Free(flows);
    return NULL;
}

/* Returns the number of a word; sets an exception if the vocabulary lacks it. */
static int64_t word_of(const char *text) {
    for (int word = 0; word < WORD_COUNT; word++)
        if (!strcmp(word_text((enum word)word), text))
            return word;
    PyErr_Format(PyExc_ValueError, "no word of the tables: %s", text);
    return WORD_NONE;
}

/* Returns false if the value is null, or with an exception set. */
static bool take_value(PyObject *object, uint8_t type, struct string_table *texts, int64_t *value) {
    double real = type == TYPE_REAL ? PyFloat_AsDouble(object) : 0;
    const char *text = type >= TYPE_WORD ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;
    memcpy(value, &real, sizeof real); /* a REAL is stored as its bits */
    if (type < TYPE_REAL || type == TYPE_BOOL)
        *value = PyLong_AsLongLong(object);
    else if (text && type == TYPE_WORD)
        *value = word_of(text);
    else if (text && *text && (*value = string_table_add(texts, text)) < 0)
        PyErr_NoMemory();
    return type < TYPE_WORD ? !isnan(real) : text && *text;
}

bool binding_take_row(PyObject *values, const struct schema *schema, struct string_table *texts,
                      struct row *row) {
    row_clear(row);
    if (!PyTuple_Check(values) || PyTuple_Size(values) != (Py_ssize_t)schema->column_count) {
        PyErr_Format(PyExc_TypeError, "expected a tuple with all columns of %s", schema->name);
        return false;
    }
    for (unsigned c = 0; !PyErr_Occurred() && c < schema->column_count; c++) {
        PyObject *object = PyTuple_GetItem(values, (Py_ssize_t)c);
        int64_t value;
        if (object != Py_None && take_value(object, schema->columns[c].type, texts, &value))
            row_set(row, c, value);
        else if (schema->columns[c].known && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%s.%s is null", schema->name, schema->columns[c].name);
    }
    return !PyErr_Occurred();
}
