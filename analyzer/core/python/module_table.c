/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in Python: columns, rows, typed arrays, Arrow, JSON. A Table refers to a finished table in
 * the core and keeps its owner alive; only of_flows() makes a table of its own. Rows are unpacked
 * on demand, so that packed() and Arrow need far less memory than rows() and column().
 *
 * Arrow consumers may read a stream in any thread and without the GIL: the callbacks of
 * arrow_stream.c use no Python object, and binding_disown() acquires the GIL. */
#include <stdlib.h>
#include <string.h>

#include "base/vocabulary.h"
#include "export/export.h"
#include "python/binding.h"

#define JSON_PIECE ((size_t)1 << 18)

static PyTypeObject *table_type, *json_type;

static const char *const type_words[] = {
    [TYPE_INT] = "int",   [TYPE_TIME] = "time", [TYPE_DURATION] = "duration",
    [TYPE_REAL] = "real", [TYPE_BOOL] = "bool", [TYPE_WORD] = "word",
    [TYPE_TEXT] = "text", [TYPE_PATH] = "path", [TYPE_ADDRESS] = "address",
};

/* --- Table ---------------------------------------------------------------------------------- */

/* PyType_GenericAlloc() returns zeroed memory, so `own` is NULL. */
PyObject *table_wrap(PyObject *owner, const struct table *table) {
    struct table_object *self = (struct table_object *)PyType_GenericAlloc(table_type, 0);
    if (!self)
        return NULL;
    self->owner = Py_NewRef(owner);
    self->table = table;
    return (PyObject *)self;
}

PyObject *table_wrap_own(PyObject *owner, struct table *own) {
    PyObject *self = table_wrap(owner, own);
    if (self)
        ((struct table_object *)self)->own = own;
    else
        table_free_own(own);
    return self;
}

const struct table *binding_table(PyObject *object) {
    return PyObject_TypeCheck(object, table_type) ? table_of(object) : NULL;
}

void table_free_own(struct table *own) {
    if (own)
        table_free(own);
    free(own);
}

static void table_dealloc(PyObject *self) {
    struct table_object *object = (struct table_object *)self;
    Py_DECREF(object->owner);
    table_free_own(object->own);
    binding_free_object(self);
}

static Py_ssize_t table_length(PyObject *self) {
    return (Py_ssize_t)table_of(self)->row_count;
}

static PyObject *table_name(PyObject *self, void *Py_UNUSED(unused)) {
    return PyUnicode_FromString(table_of(self)->schema->name);
}

static PyObject *table_meaning(PyObject *self, void *Py_UNUSED(unused)) {
    return PyUnicode_FromString(table_of(self)->schema->meaning);
}

PyObject *table_columns_of(const struct schema *schema) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < schema->column_count; i++) {
        const struct column *column = &schema->columns[i];
        if (!binding_append(list, Py_BuildValue("(ssssN)", column->name, type_words[column->type],
                                                column->unit, column->meaning,
                                                PyBool_FromLong(!column->known))))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *table_columns(PyObject *self, PyObject *Py_UNUSED(unused)) {
    return table_columns_of(table_of(self)->schema);
}

/* Copies the first `most` rows of some flows. Returns false if memory is exhausted. */
static bool copy_rows(const struct table *from, struct table *to, const uint32_t *flows,
                      size_t count, uint64_t most) {
    uint32_t size;
    struct table_cursor cursor = {0};
    struct row row;
    bool done = true;
    uint8_t *set = flow_set(flows, count, UINT32_MAX, &size);
    while (done && set && to->row_count < most && table_next(from, &cursor, &row)) {
        size_t flow = (size_t)row.value[packets_flow];
        if (flow < size && set[flow / 8] >> flow % 8 & 1)
            done = table_add(to, &row);
    }
    free(set);
    return set && done;
}

/* of_flows(flows, most): a table of packets or spans with the first `most` rows of these flows. The
 * copy shares the texts of the original, so that the new Table must keep this one alive. */
static PyObject *table_of_flows(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    PyObject *chosen, *result = NULL;
    unsigned long long most;
    size_t count;
    if (!PyArg_ParseTuple(args, "OK", &chosen, &most))
        return NULL;
    ptrdiff_t number = table->schema - schemas;
    if (number != TABLE_packets && number != TABLE_time_spans)
        return PyErr_Format(PyExc_TypeError, "rows of this table cannot be chosen by flow");
    uint32_t *flows = binding_flow_numbers(chosen, &count);
    if (!flows)
        return NULL;
    struct table *copy = calloc(1, sizeof *copy);
    if (copy)
        table_init(copy, (enum table_number)number, table->texts, 0, false);
    if (copy && copy_rows(table, copy, flows, count, most)) {
        result = table_wrap_own(self, copy);
    } else {
        table_free_own(copy);
        PyErr_NoMemory();
    }
    PyMem_Free(flows);
    return result;
}

static PyObject *streams_object(const struct packet_streams *streams) {
    PyObject *dict = PyDict_New();
    for (unsigned i = 0; dict && i < STREAM_COUNT; i++) {
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)streams->streams[i].bytes,
                                                    (Py_ssize_t)streams->streams[i].used);
        if (!bytes || PyDict_SetItemString(dict, packet_stream_names[i], bytes))
            Py_CLEAR(dict);
        Py_XDECREF(bytes);
    }
    return dict;
}

/* packet_streams(flows, base_ns, flights=False): (packets packed, {stream: bytes}) in the format of
 * export.h. */
static PyObject *table_packet_streams(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    struct packet_streams streams = {0};
    PyObject *chosen, *result = NULL;
    long long base_ns;
    size_t count;
    int flights = 0;
    if (!PyArg_ParseTuple(args, "OL|p", &chosen, &base_ns, &flights))
        return NULL;
    if (table->schema != &schemas[TABLE_packets])
        return PyErr_Format(PyExc_TypeError, "only the packets table has packet streams");
    uint32_t *flows = binding_flow_numbers(chosen, &count);
    if (!flows)
        return NULL;
    if (packet_pack(table, flows, count, base_ns, flights, &streams))
        result =
            Py_BuildValue("(KN)", (unsigned long long)streams.packets, streams_object(&streams));
    else
        PyErr_NoMemory();
    packet_streams_free(&streams);
    PyMem_Free(flows);
    return result;
}

/* --- Arrow ---------------------------------------------------------------------------------- */

/* __arrow_c_stream__(requested_schema=None, integers=False, times=False): `requested_schema` is
 * ignored, which the protocol permits. If `integers`, times and durations are integers, or
 * durations alone if `times`. The reference for binding_disown() is taken after the export, because
 * the export does not call it if it fails. */
static PyObject *table_arrow_stream(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"requested_schema", "integers", "times", NULL};
    PyObject *requested = NULL;
    int integers = 0, times = 0;
    struct ArrowArrayStream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp", names, &requested, &integers, &times))
        return NULL;
    enum arrow_integers chosen = times ? INTEGERS_DURATIONS : INTEGERS_TIMES_TOO;
    if (arrow_stream_export(table_of(self), integers ? chosen : INTEGERS_NONE, &stream, self,
                            binding_disown))
        return PyErr_NoMemory();
    Py_INCREF(self);
    return binding_stream_capsule(&stream);
}

/* An arrow_further; `owner` is a list with the table before, which is released, and the function.
 */
static const struct table *further_table(void *owner, const char **error) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *next = PyObject_CallNoArgs(PyList_GetItem(owner, 1));
    bool is_table = next && PyObject_TypeCheck(next, table_type) &&
                    table_of(next)->schema == table_of(PyList_GetItem(owner, 0))->schema;
    const struct table *table = is_table ? table_of(next) : NULL;
    if (!is_table && next != Py_None)
        *error = "the next rows could not be made";
    PyErr_Clear();
    if (is_table)
        PyList_SetItem(owner, 0, next);
    else
        Py_XDECREF(next);
    PyGILState_Release(state);
    return table;
}

/* following_stream(next, times): a stream of the rows of tables of this kind, those that next()
 * returns until it returns None. If it raises, the stream ends with an error. Durations are
 * integers, and times unless `times`. */
static PyObject *table_following_stream(PyObject *self, PyObject *args) {
    struct ArrowArrayStream stream;
    PyObject *next;
    int times;
    if (!PyArg_ParseTuple(args, "Op", &next, &times))
        return NULL;
    enum arrow_integers integers = times ? INTEGERS_DURATIONS : INTEGERS_TIMES_TOO;
    PyObject *owner = Py_BuildValue("[OO]", self, next);
    if (!owner || arrow_stream_export(table_of(self), integers, &stream, owner, binding_disown)) {
        Py_XDECREF(owner);
        return PyErr_NoMemory();
    }
    arrow_stream_follow(&stream, further_table);
    return binding_stream_capsule(&stream);
}

/* Returns the tables of a list (malloc), which must have the schema of `first`; NULL with an
 * exception set. */
static const struct table **tables_of(PyObject *list, const struct table *first) {
    Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : 0;
    const struct table **tables = malloc((size_t)(count + !count) * sizeof *tables);
    if (!tables)
        return (const struct table **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        tables[i] = PyObject_TypeCheck(item, table_type) ? table_of(item) : NULL;
        if (!tables[i] || tables[i]->schema != first->schema)
            count = 0;
    }
    if (count)
        return tables;
    free(tables);
    PyErr_SetString(PyExc_TypeError, "expected a list of tables with the same columns");
    return NULL;
}

/* joined_stream(tables, times): a stream of their rows; durations are integers, and times unless
 * `times`. It keeps a copy of the list, because the caller may change its own. */
static PyObject *table_joined_stream(PyObject *self, PyObject *args) {
    struct ArrowArrayStream stream;
    PyObject *given;
    int times;
    if (!PyArg_ParseTuple(args, "Op", &given, &times))
        return NULL;
    enum arrow_integers integers = times ? INTEGERS_DURATIONS : INTEGERS_TIMES_TOO;
    PyObject *list = PySequence_List(given);
    const struct table **tables = list ? tables_of(list, table_of(self)) : NULL;
    if (tables && !arrow_stream_join(tables, (size_t)PyList_Size(list), integers, &stream, list,
                                     binding_disown))
        return binding_stream_capsule(&stream);
    if (tables)
        PyErr_NoMemory();
    free(tables);
    Py_XDECREF(list);
    return NULL;
}

static PyObject *table_arrow_schema(PyObject *self, PyObject *Py_UNUSED(unused)) {
    struct ArrowSchema schema;
    if (arrow_schema_export(table_of(self)->schema, INTEGERS_NONE, false, &schema))
        return PyErr_NoMemory();
    return binding_schema_capsule(&schema);
}

/* --- JSON ----------------------------------------------------------------------------------- */

struct json_object {
    PyObject_HEAD PyObject *owner; /* the Table */
    struct table_cursor cursor;
    struct json_form form;
    bool wanted[COLUMNS_MAX];
    bool ended;
};

/* Marks the columns of a sequence of names. */
static bool take_columns(struct json_object *json, const struct schema *schema, PyObject *names) {
    Py_ssize_t count = PySequence_Size(names);
    json->form.wanted = json->wanted;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PySequence_GetItem(names, i);
        const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        int column = text ? schema_column(schema, text) : -1;
        Py_XDECREF(name);
        if (column < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_KeyError, "no such column");
            return false;
        }
        json->wanted[column] = true;
    }
    return count >= 0;
}

static PyObject *table_json_method(PyObject *self, PyObject *args) {
    PyObject *names = Py_None;
    int lines = false;
    if (!PyArg_ParseTuple(args, "|Op", &names, &lines))
        return NULL;
    struct json_object *json = (struct json_object *)PyType_GenericAlloc(json_type, 0);
    if (!json)
        return NULL;
    json->owner = Py_NewRef(self);
    json->form.lines = lines;
    if (names != Py_None && !take_columns(json, table_of(self)->schema, names)) {
        Py_DECREF(json);
        return NULL;
    }
    return (PyObject *)json;
}

static void json_dealloc(PyObject *self) {
    Py_DECREF(((struct json_object *)self)->owner);
    binding_free_object(self);
}

/* The last piece. If no row was written, there was no opening bracket either, so that the array
 * must be written as a whole. */
static PyObject *json_end(struct json_object *self) {
    bool empty = !self->cursor.row;
    self->ended = true;
    if (self->form.lines)
        return NULL;
    return PyBytes_FromString(empty ? "[]" : "\n]");
}

/* Returns the next piece as bytes, or NULL without an exception at the end, which the iterator
 * protocol permits. Pieces end between rows; a consumer can write each at once. */
static PyObject *json_next(PyObject *object) {
    struct json_object *self = (struct json_object *)object;
    const struct table *table = table_of(self->owner);
    size_t room = JSON_PIECE + table_json_room(table->schema), size;
    if (self->ended)
        return NULL;
    char *piece = PyMem_Malloc(room);
    if (!piece)
        return PyErr_NoMemory();
    size = table_json(table, &self->cursor, &self->form, piece, room);
    PyObject *bytes = size ? PyBytes_FromStringAndSize(piece, (Py_ssize_t)size) : json_end(self);
    PyMem_Free(piece);
    return bytes;
}

/* --- types ---------------------------------------------------------------------------------- */

static PyMethodDef table_methods[] = {
    METHOD("columns", table_columns, METH_NOARGS,
           "(name, type, unit, meaning, nullable) of each column."),
    METHOD("column", table_column, METH_O, "A column's values as objects, None for null."),
    METHOD("total", table_total, METH_O, "The sum of a column of integers."),
    METHOD("rows_where", table_rows_where, METH_VARARGS,
           "Rows that are not null, are a word, or at least an integer."),
    METHOD("rows", table_rows, METH_VARARGS | METH_KEYWORDS, "Rows start to stop as dicts."),
    METHOD("rows_at", table_rows_at, METH_O, "Rows by their numbers as dicts."),
    METHOD("held_columns", table_held_columns, METH_NOARGS,
           "Names of the columns that are not null in every row."),
    METHOD("nonzero", table_nonzero, METH_O, "Rows and values that are neither null nor 0."),
    METHOD("rows_by_flow", table_rows_by_flow, METH_O, "How many rows each of so many flows has."),
    METHOD("packed", table_packed, METH_VARARGS, "Columns as typed arrays."),
    METHOD("time_sums", table_time_sums, METH_VARARGS, "Sums of columns over time."),
    METHOD("flow_sums", table_flow_sums, METH_VARARGS, "Sums of columns over time, of each flow."),
    METHOD("of_flows", table_of_flows, METH_VARARGS, "The first rows of some flows, copied."),
    METHOD("packet_streams", table_packet_streams, METH_VARARGS, "Packets of flows, packed."),
    METHOD("json", table_json_method, METH_VARARGS,
           "Rows as JSON in pieces: an array, or lines; all columns, or those named."),
    METHOD("__arrow_c_stream__", table_arrow_stream, METH_VARARGS | METH_KEYWORDS,
           "The rows as an Arrow stream."),
    METHOD("following_stream", table_following_stream, METH_VARARGS,
           "The rows of tables of this kind that a function returns, as one Arrow stream."),
    METHOD("joined_stream", table_joined_stream, METH_VARARGS,
           "The rows of tables of this kind as one Arrow stream, with the number of the table."),
    METHOD("__arrow_c_schema__", table_arrow_schema, METH_NOARGS,
           "The columns as an Arrow schema."),
    {0},
};

static PyGetSetDef table_getset[] = {
    {"name", table_name, NULL, "the table's name", NULL},
    {"meaning", table_meaning, NULL, "the meaning of a row", NULL},
    {0},
};

static PyType_Slot table_slots[] = {
    {Py_tp_doc, "A finished table."}, {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},   {Py_tp_getset, table_getset},
    {Py_sq_length, table_length},     {0},
};
static PyType_Slot json_slots[] = {
    {Py_tp_dealloc, json_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, json_next},
    {0},
};

/* Only the core creates these types, because an instance without an owner would be invalid. */
#define MADE_HERE (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION)

static PyType_Spec table_spec = {"wiretale.analyzer._core.Table", sizeof(struct table_object), 0,
                                 MADE_HERE, table_slots};
static PyType_Spec json_spec = {"wiretale.analyzer._core.JsonPieces", sizeof(struct json_object), 0,
                                MADE_HERE, json_slots};

PyTypeObject *table_types_make(void) {
    table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
    json_type = (PyTypeObject *)PyType_FromSpec(&json_spec);
    return json_type ? table_type : NULL;
}
