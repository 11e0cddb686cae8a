/* SPDX-License-Identifier: Apache-2.0 */
/* time_columns() of the module. */
#include "export/export.h"
#include "python/binding.h"

/* Takes a list of (flow, begin_ns, width_ns, columns, main, kind). Returns it from PyMem_Malloc();
 * NULL with an exception set. */
static struct column_flow *take_flows(PyObject *list, size_t *count) {
    Py_ssize_t size = PyList_Check(list) ? PyList_Size(list) : -1;
    struct column_flow *flows = PyMem_Malloc(((size_t)size + 2) * sizeof *flows);
    if (size < 0)
        PyErr_SetString(PyExc_TypeError, "expected a list of tuples");
    else if (!flows)
        PyErr_NoMemory();
    if (PyErr_Occurred()) {
        PyMem_Free(flows);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        long long begin_ns, width_ns;
        unsigned flow, columns;
        unsigned char main, kind;
        PyObject *tuple = PyList_GetItem(list, i);
        bool taken = PyTuple_Check(tuple) && PyArg_ParseTuple(tuple, "ILLIbb", &flow, &begin_ns,
                                                              &width_ns, &columns, &main, &kind);
        if (!taken || width_ns <= 0 || !columns || main > 1 || kind > DRAWN_PACKETS) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "expected flows with columns of some width");
            PyMem_Free(flows);
            return NULL;
        }
        flows[i] = (struct column_flow){flow, begin_ns, width_ns, columns, main, kind};
    }
    *count = (size_t)size;
    return flows;
}

/* Adds the packets of a table to the columns, and those of some flows to `kept`. */
static bool add_part(struct time_columns *columns, const struct table *part, struct table *kept,
                     const uint8_t *set, uint32_t size, uint64_t most) {
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(part, &cursor, &row)) {
        size_t flow = (size_t)row.value[packets_flow];
        time_columns_add(columns, &row);
        if (flow < size && set[flow / 8] >> flow % 8 & 1 && kept->row_count < most &&
            !table_add(kept, &row))
            return false;
    }
    return true;
}

/* Reads the tables that an iterator returns. Returns false with an exception set. */
static bool add_parts(struct time_columns *columns, PyObject *parts, struct table *kept,
                      const uint8_t *set, uint32_t size, uint64_t most) {
    bool done = true;
    for (PyObject *part; done && (part = PyIter_Next(parts));) {
        const struct table *table = binding_table(part);
        done = table && table->schema == &schemas[TABLE_packets];
        if (!done)
            PyErr_SetString(PyExc_TypeError, "only the packets table has columns of time");
        else if (!(done = add_part(columns, table, kept, set, size, most)))
            PyErr_NoMemory();
        Py_DECREF(part);
    }
    return done && !PyErr_Occurred();
}

static PyObject *streams_object(const struct time_columns *columns) {
    struct number_stream streams[COLUMN_STREAM_COUNT] = {0};
    PyObject *dict = time_columns_pack(columns, streams) ? PyDict_New() : PyErr_NoMemory();
    for (unsigned i = 0; i < COLUMN_STREAM_COUNT; i++) {
        PyObject *bytes = dict ? PyBytes_FromStringAndSize((const char *)streams[i].bytes,
                                                           (Py_ssize_t)streams[i].used)
                               : NULL;
        if (dict && (!bytes || PyDict_SetItemString(dict, column_stream_names[i], bytes)))
            Py_CLEAR(dict);
        Py_XDECREF(bytes);
        free(streams[i].bytes);
    }
    return dict;
}

/* Reads all parts; `kept` gets the first `most` packets of the flows of `chosen`. */
static PyObject *columns_of(PyObject *parts, const struct column_flow *flows, size_t count,
                            PyObject *chosen, uint64_t most, struct table *kept) {
    size_t chosen_count;
    uint32_t size = 0;
    uint32_t *numbers = binding_flow_numbers(chosen, &chosen_count);
    if (!numbers)
        return NULL;
    uint8_t *set = flow_set(numbers, chosen_count, UINT32_MAX, &size);
    struct time_columns *columns = time_columns_open(flows, count);
    PyObject *streams = NULL;
    if (!set || !columns)
        PyErr_NoMemory();
    else if (add_parts(columns, parts, kept, set, size, most))
        streams = streams_object(columns);
    time_columns_close(columns);
    free(set);
    PyMem_Free(numbers);
    return streams;
}

/* time_columns(parts, flows, chosen, most): (packets, {stream: bytes}). */
PyObject *module_time_columns(PyObject *Py_UNUSED(module), PyObject *args) {
    static const struct string_table no_texts;
    PyObject *parts, *list, *chosen;
    unsigned long long most;
    size_t count;
    if (!PyArg_ParseTuple(args, "OOOK", &parts, &list, &chosen, &most))
        return NULL;
    struct column_flow *flows = take_flows(list, &count);
    if (!flows)
        return NULL;
    struct table *kept = malloc(sizeof *kept);
    if (!kept) {
        PyMem_Free(flows);
        return PyErr_NoMemory();
    }
    table_init(kept, TABLE_packets, &no_texts, 0, false);
    PyObject *iterator = PyObject_GetIter(parts);
    PyObject *streams = iterator ? columns_of(iterator, flows, count, chosen, most, kept) : NULL;
    Py_XDECREF(iterator);
    PyMem_Free(flows);
    if (!streams) {
        table_free_own(kept);
        return NULL;
    }
    return Py_BuildValue("(NN)", table_wrap_own(Py_None, kept), streams);
}
