/* SPDX-License-Identifier: Apache-2.0 */
/* The records of analyzer/options.py as the structures of pipeline/options.h, which name each
 * member once: it is the attribute of the same name, and None is its default. Records are tuples
 * that keep their values alive, so texts are not copied. */
#include <string.h>

#include "pipeline/options.h"
#include "python/binding.h"

/* Stores a value that is not None. Returns false with an exception. */
typedef bool take(PyObject *value, void *place);

struct member {
    const char *name;
    take *take;
    size_t offset;
};

static bool take_text(PyObject *value, void *place) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text && strlen(text) != (size_t)size)
        PyErr_SetString(PyExc_ValueError, "embedded null character");
    *(const char **)place = text;
    return !PyErr_Occurred();
}

static bool take_time(PyObject *value, void *place) {
    *(int64_t *)place = PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

static bool take_count(PyObject *value, void *place) {
    unsigned long count = PyLong_AsUnsignedLong(value);
    if (!PyErr_Occurred() && count > UINT32_MAX)
        PyErr_SetString(PyExc_OverflowError, "expected an unsigned number of 32 bits");
    *(uint32_t *)place = (uint32_t)count;
    return !PyErr_Occurred();
}

static bool take_rows(PyObject *value, void *place) {
    *(uint64_t *)place = PyLong_AsUnsignedLongLong(value);
    return !PyErr_Occurred();
}

static bool take_flag(PyObject *value, void *place) {
    *(bool *)place = PyObject_IsTrue(value) == 1;
    return !PyErr_Occurred();
}

/* Takes the name of a kind, or a list of flow numbers of an earlier analysis of the same files. */
static bool take_packets(PyObject *value, void *place) {
    struct wanted_packet_rows *packets = place;
    if (PyList_Check(value)) {
        packets->kind = PACKETS_OF_FLOWS;
        packets->flows = binding_flow_numbers(value, &packets->flow_count);
        return packets->flows != NULL;
    }
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"none", PACKETS_NONE}, {"all", PACKETS_ALL}, {"identified", PACKETS_IDENTIFIED}};
    for (size_t i = 0; PyUnicode_Check(value) && i < sizeof kinds / sizeof *kinds; i++)
        if (!PyUnicode_CompareWithASCIIString(value, kinds[i].name)) {
            packets->kind = kinds[i].kind;
            return true;
        }
    PyErr_SetString(PyExc_TypeError, "packets must be none, all, identified or flow numbers");
    return false;
}

/* Fills the members of a structure, which has its defaults. Returns false with an exception. */
static bool take_members(PyObject *record, const struct member *members, size_t count,
                         void *structure) {
    bool taken = PyTuple_Check(record);
    if (!taken)
        PyErr_SetString(PyExc_TypeError, "expected a record of wiretale.analyzer.options");
    for (size_t i = 0; taken && i < count; i++) {
        PyObject *value = PyObject_GetAttrString(record, members[i].name);
        taken = value &&
                (value == Py_None || members[i].take(value, (char *)structure + members[i].offset));
        Py_XDECREF(value);
    }
    return taken;
}

#define DEFAULT(type, kind, name, unset) .name = unset,

int binding_take_options(PyObject *record, void *options) {
    static const struct member members[] = {
#define X(type, kind, name, unset) {#name, take_##kind, offsetof(struct analysis_options, name)},
        ANALYSIS_OPTIONS(X)
#undef X
    };
    *(struct analysis_options *)options = (struct analysis_options){ANALYSIS_OPTIONS(DEFAULT)};
    return take_members(record, members, sizeof members / sizeof *members, options);
}

int binding_take_mode(PyObject *record, void *mode) {
    static const struct member members[] = {
#define X(type, kind, name, unset) {#name, take_##kind, offsetof(struct reading_mode, name)},
        READING_MODES(X)
#undef X
    };
    *(struct reading_mode *)mode = (struct reading_mode){READING_MODES(DEFAULT)};
    return take_members(record, members, sizeof members / sizeof *members, mode);
}
