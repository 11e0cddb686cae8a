/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as Python sees them: columns, rows, typed arrays, Arrow, JSON. */
#include <stdlib.h>
#include <string.h>

#include "arrow_stream.h"
#include "column_pack.h"
#include "module.h"
#include "packet_pack.h"
#include "table_json.h"
#include "vocabulary.h"

#define JSON_PIECE ((size_t)1 << 18)

static PyTypeObject *table_type, *json_type;

static const char *const type_words[] = {
    [TYPE_INT] = "int",   [TYPE_REAL] = "real", [TYPE_BOOL] = "bool",
    [TYPE_WORD] = "word", [TYPE_TEXT] = "text", [TYPE_ADDRESS] = "address",
};

/* --- Table ---------------------------------------------------------------------------------- */

struct table_object {
    PyObject_HEAD PyObject *owner; /* the Analysis */
    const struct table *table;
};

static const struct table *table_of(PyObject *self) {
    return ((struct table_object *)self)->table;
}

PyObject *table_wrap(PyObject *owner, const struct table *table) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(table_type, Py_tp_alloc);
    struct table_object *self = (struct table_object *)allocate(table_type, 0);
    if (!self)
        return NULL;
    self->owner = Py_NewRef(owner);
    self->table = table;
    return (PyObject *)self;
}

static void table_dealloc(PyObject *self) {
    Py_DECREF(((struct table_object *)self)->owner);
    module_free_object(self);
}

static Py_ssize_t table_length(PyObject *self) {
    return (Py_ssize_t)table_of(self)->row_count;
}

static PyObject *table_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(table_of(self)->schema->name);
}

static PyObject *table_meaning(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(table_of(self)->schema->meaning);
}

PyObject *table_columns_of(const struct schema *schema) {
    PyObject *list = PyList_New((Py_ssize_t)schema->column_count);
    for (size_t i = 0; list && i < schema->column_count; i++) {
        const struct column *column = &schema->columns[i];
        PyObject *entry = Py_BuildValue("(ssss)", column->name, type_words[column->type],
                                        column->unit, column->meaning);
        if (!entry || PyList_SetItem(list, (Py_ssize_t)i, entry))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *table_columns(PyObject *self, PyObject *unused) {
    (void)unused;
    return table_columns_of(table_of(self)->schema);
}

static PyObject *text_object(const struct table *table, int64_t number) {
    size_t size;
    const char *text = text_store_get(table->texts, number, &size);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

static PyObject *address_object(const struct table *table, int64_t number) {
    char text[ADDRESS_TEXT_MAX];
    size_t size = text_store_address(table->texts, number, text);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)size);
}

static PyObject *value_object(const struct table *table, const struct row *row, unsigned column) {
    int64_t value = row->value[column];
    double real;
    if (!row_known(row, column))
        return Py_NewRef(Py_None);
    switch (table->schema->columns[column].type) {
    case TYPE_BOOL: return PyBool_FromLong(value != 0);
    case TYPE_WORD: return PyUnicode_InternFromString(word_text((enum word)value));
    case TYPE_TEXT: return text_object(table, value);
    case TYPE_ADDRESS: return address_object(table, value);
    case TYPE_REAL: memcpy(&real, &value, sizeof real); return PyFloat_FromDouble(real);
    default: return PyLong_FromLongLong(value);
    }
}

static int find_column(const struct table *table, const char *name) {
    int column = schema_column(table->schema, name);
    if (column < 0)
        PyErr_Format(PyExc_KeyError, "no column %s in %s", name, table->schema->name);
    return column;
}

static PyObject *table_column(PyObject *self, PyObject *argument) {
    const struct table *table = table_of(self);
    const char *name = PyUnicode_AsUTF8AndSize(argument, NULL);
    int column = name ? find_column(table, name) : -1;
    PyObject *list = column < 0 ? NULL : PyList_New((Py_ssize_t)table->row_count);
    struct table_cursor cursor = {0};
    struct row row;
    for (Py_ssize_t i = 0; list && table_next(table, &cursor, &row); i++) {
        PyObject *value = value_object(table, &row, (unsigned)column);
        if (!value || PyList_SetItem(list, i, value))
            Py_CLEAR(list);
    }
    return list;
}

static bool add_nonzero(PyObject *list, Py_ssize_t number, PyObject *value) {
    PyObject *entry = value ? Py_BuildValue("(nO)", number, value) : NULL;
    bool added = entry && !PyList_Append(list, entry);
    Py_XDECREF(entry);
    Py_XDECREF(value);
    return added;
}

/* Of each column named: number and value of the rows where it is neither null nor 0. */
static bool find_nonzero(const struct table *table, const int *columns, PyObject **lists,
                         Py_ssize_t count) {
    struct table_cursor cursor = {0};
    struct row row;
    for (Py_ssize_t number = 0; table_next(table, &cursor, &row); number++)
        for (Py_ssize_t i = 0; i < count; i++) {
            unsigned column = (unsigned)columns[i];
            if (row.value[column] && row_known(&row, column) &&
                !add_nonzero(lists[i], number, value_object(table, &row, column)))
                return false;
        }
    return true;
}

static PyObject *table_nonzero(PyObject *self, PyObject *names) {
    const struct table *table = table_of(self);
    int columns[COLUMNS_MAX];
    PyObject *lists[COLUMNS_MAX];
    Py_ssize_t count = PyList_Size(names);
    PyObject *dict = count >= 0 && count <= COLUMNS_MAX ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < count; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyList_GetItem(names, i), NULL);
        columns[i] = name ? find_column(table, name) : -1;
        lists[i] = columns[i] < 0 ? NULL : PyList_New(0);
        if (!lists[i] || PyDict_SetItem(dict, PyList_GetItem(names, i), lists[i]))
            Py_CLEAR(dict);
        Py_XDECREF(lists[i]); /* the dict holds it */
    }
    if (dict && !find_nonzero(table, columns, lists, count))
        Py_CLEAR(dict);
    if (!dict && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "too many columns");
    return dict;
}

static PyObject *row_object(const struct table *table, const struct row *row) {
    PyObject *dict = PyDict_New();
    for (unsigned c = 0; dict && c < table->schema->column_count; c++) {
        PyObject *value = value_object(table, row, c);
        if (!value || PyDict_SetItemString(dict, table->schema->columns[c].name, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *table_rows(PyObject *self, PyObject *args, PyObject *kwargs) {
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
    for (Py_ssize_t i = start; list && i < stop && table_next(table, &cursor, &row); i++) {
        PyObject *dict = row_object(table, &row);
        if (!dict || PyList_Append(list, dict))
            Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *table_rows_by_flow(PyObject *self, PyObject *flow_count) {
    const struct table *table = table_of(self);
    int column = find_column(table, "flow");
    size_t count = PyLong_AsSize_t(flow_count);
    struct table_cursor cursor = {0};
    struct row row;
    if (column < 0 || PyErr_Occurred() || count > UINT32_MAX)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "too many flows");
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint32_t)));
    uint32_t *counts = bytes ? (uint32_t *)(void *)PyBytes_AsString(bytes) : NULL;
    if (!counts)
        return bytes;
    memset(counts, 0, count * sizeof *counts);
    for (size_t flow = 0; table->grouped && flow < table->group_count && flow < count; flow++)
        counts[flow] = table->group_sizes[flow];
    while (!table->grouped && table_next(table, &cursor, &row))
        if (row_known(&row, (unsigned)column) && (uint64_t)row.value[column] < count)
            counts[row.value[column]]++;
    return bytes;
}

static bool check_pack(const struct table *table, int column, const struct column_pack *pack) {
    uint8_t type = column < 0 ? TYPE_TEXT : table->schema->columns[column].type;
    if (column < 0)
        return false;
    if (column_pack_size(pack->code) && pack->divisor && type != TYPE_TEXT && type != TYPE_ADDRESS)
        return true;
    PyErr_Format(PyExc_ValueError, "column %s cannot be packed as %c",
                 table->schema->columns[column].name, pack->code);
    return false;
}

static PyObject *pack_bytes(const struct table *table, unsigned column,
                            const struct column_pack *pack) {
    size_t count = pack->flows ? column_pack(table, column, pack, NULL) : table->row_count;
    size_t size = count * column_pack_size(pack->code);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes)
        column_pack(table, column, pack, (uint8_t *)PyBytes_AsString(bytes));
    return bytes;
}

static PyObject *table_packed(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name", "code", "offset", "divisor", "delta", "flows", NULL};
    const struct table *table = table_of(self);
    long long offset = 0, divisor = 1;
    const char *name, *code;
    PyObject *chosen = NULL, *bytes = NULL;
    uint32_t *flows = NULL;
    size_t flow_count = 0;
    int delta = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss|$LLpO", names, &name, &code, &offset,
                                     &divisor, &delta, &chosen))
        return NULL;
    if (chosen && chosen != Py_None && !(flows = module_flow_numbers(chosen, &flow_count)))
        return NULL;
    struct column_pack pack = {code[0], delta, offset, divisor, flows, flow_count};
    int column = find_column(table, name);
    if (check_pack(table, column, &pack))
        bytes = pack_bytes(table, (unsigned)column, &pack);
    PyMem_Free(flows);
    return bytes;
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

static PyObject *table_packet_streams(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    struct packet_streams streams = {0};
    PyObject *chosen, *result = NULL;
    long long base_ns;
    size_t count;
    if (!PyArg_ParseTuple(args, "OL", &chosen, &base_ns))
        return NULL;
    if (table->schema != &schemas[TABLE_packets])
        return PyErr_Format(PyExc_TypeError, "only the packets table has packet streams");
    uint32_t *flows = module_flow_numbers(chosen, &count);
    if (!flows)
        return NULL;
    if (packet_pack(table, flows, count, base_ns, &streams))
        result =
            Py_BuildValue("(KN)", (unsigned long long)streams.packets, streams_object(&streams));
    else
        PyErr_NoMemory();
    packet_streams_free(&streams);
    PyMem_Free(flows);
    return result;
}

/* --- Arrow ---------------------------------------------------------------------------------- */

static PyObject *table_arrow_stream(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"requested_schema", NULL};
    PyObject *requested = NULL;
    struct ArrowArrayStream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &requested))
        return NULL;
    if (arrow_stream_export(table_of(self), &stream, self, module_disown))
        return PyErr_NoMemory();
    Py_INCREF(self);
    return module_stream_capsule(&stream);
}

static PyObject *table_arrow_schema(PyObject *self, PyObject *unused) {
    struct ArrowSchema schema;
    (void)unused;
    if (arrow_schema_export(table_of(self)->schema, &schema))
        return PyErr_NoMemory();
    return module_schema_capsule(&schema);
}

/* --- JSON ----------------------------------------------------------------------------------- */

struct json_object {
    PyObject_HEAD PyObject *owner; /* the Table */
    struct table_cursor cursor;
    bool ended;
};

static PyObject *table_json_method(PyObject *self, PyObject *unused) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(json_type, Py_tp_alloc);
    struct json_object *json = (struct json_object *)allocate(json_type, 0);
    (void)unused;
    if (json)
        json->owner = Py_NewRef(self);
    return (PyObject *)json;
}

static void json_dealloc(PyObject *self) {
    Py_DECREF(((struct json_object *)self)->owner);
    module_free_object(self);
}

static PyObject *json_end(struct json_object *self) {
    bool empty = !self->cursor.row;
    self->ended = true;
    return PyBytes_FromString(empty ? "[]" : "\n]");
}

static PyObject *json_next(PyObject *object) {
    struct json_object *self = (struct json_object *)object;
    const struct table *table = table_of(self->owner);
    size_t room = JSON_PIECE + table_json_room(table->schema), size;
    if (self->ended)
        return NULL;
    char *piece = PyMem_Malloc(room);
    if (!piece)
        return PyErr_NoMemory();
    size = table_json(table, &self->cursor, piece, room);
    PyObject *bytes = size ? PyBytes_FromStringAndSize(piece, (Py_ssize_t)size) : json_end(self);
    PyMem_Free(piece);
    return bytes;
}

/* --- types ---------------------------------------------------------------------------------- */

static PyMethodDef table_methods[] = {
    METHOD("columns", table_columns, METH_NOARGS, "(name, type, unit, meaning) of each column."),
    METHOD("column", table_column, METH_O, "A column's values as objects, None for null."),
    METHOD("rows", table_rows, METH_VARARGS | METH_KEYWORDS, "Rows start to stop as dicts."),
    METHOD("nonzero", table_nonzero, METH_O, "Rows and values that are neither null nor 0."),
    METHOD("rows_by_flow", table_rows_by_flow, METH_O, "How many rows each of so many flows has."),
    METHOD("packed", table_packed, METH_VARARGS | METH_KEYWORDS, "A column as a typed array."),
    METHOD("packet_streams", table_packet_streams, METH_VARARGS, "Packets of flows, packed."),
    METHOD("json", table_json_method, METH_NOARGS, "A JSON array of row objects, in pieces."),
    METHOD("__arrow_c_stream__", table_arrow_stream, METH_VARARGS | METH_KEYWORDS,
           "The rows as an Arrow stream."),
    METHOD("__arrow_c_schema__", table_arrow_schema, METH_NOARGS,
           "The columns as an Arrow schema."),
    {0},
};

static PyGetSetDef table_getset[] = {
    {"name", table_name, NULL, "the table's name", NULL},
    {"meaning", table_meaning, NULL, "what a row is", NULL},
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
