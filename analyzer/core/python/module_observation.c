/* SPDX-License-Identifier: Apache-2.0 */
/* Observations in Python: a stream of rows, and the files' descriptions. An Observations object
 * opens no file before its stream is read. Each stream has its own reader; the consumer may read it
 * in any thread and without the GIL. At the end of the input the stream hands its reader to the
 * object (keep_reader), which then answers interfaces(), damage() and counts(). If several streams
 * end, the last one counts.
 *
 * The stream refers to `paths` and to the object, which it keeps alive until it is released.
 * `paths` never changes; `reader` may be read or replaced only with the GIL held. */
#include <stdlib.h>
#include <string.h>

#include "observation/observation.h"
#include "python/binding.h"

struct observations_object {
    PyObject_HEAD struct binding_paths paths;
    struct observation_reader *reader; /* set after the last stream ended */
};

/* Called by the stream at the end of the input, from any thread. An earlier reader is closed
 * with the GIL held, so that no method can use it meanwhile. */
static void keep_reader(void *owner, struct observation_reader *reader) {
    PyGILState_STATE state = PyGILState_Ensure();
    struct observations_object *self = owner;
    observation_reader_close(self->reader);
    self->reader = reader;
    PyGILState_Release(state);
}

static void observations_dealloc(PyObject *object) {
    struct observations_object *self = (struct observations_object *)object;
    observation_reader_close(self->reader);
    binding_free_paths(&self->paths);
    binding_free_object(object);
}

/* The paths live as long as the object, because a stream opens the files later. */
static PyObject *observations_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"paths", NULL};
    PyObject *list;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &list))
        return NULL;
    PyObject *self = PyType_GenericAlloc(type, 0);
    if (self && !binding_take_paths(list, &((struct observations_object *)self)->paths))
        Py_CLEAR(self);
    return self;
}

/* __arrow_c_stream__(): `requested_schema` is ignored, which the protocol permits: a consumer
 * must convert by itself. Opening and reading errors appear when the first batch is requested. */
static PyObject *observations_stream(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"requested_schema", NULL};
    struct observations_object *self = (struct observations_object *)object;
    struct observation_listener listener = {keep_reader, binding_disown, self};
    PyObject *requested = NULL;
    struct ArrowArrayStream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &requested))
        return NULL;
    if (observation_stream_export(self->paths.texts, self->paths.count, &listener, &stream))
        return PyErr_NoMemory();
    Py_INCREF(object);
    return binding_stream_capsule(&stream);
}

static PyObject *observations_schema(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(unused)) {
    struct ArrowSchema schema;
    if (observation_schema_export(&schema))
        return PyErr_NoMemory();
    return binding_schema_capsule(&schema);
}

/* A file without a drop counter gives None, not 0: the number of drops is then unknown. */
static PyObject *count_or_none(uint64_t count) {
    return count == DROPS_UNKNOWN ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(count);
}

/* A dict, with the sizes and counts as in the interfaces table. */
static PyObject *interface_object(const struct interface *i) {
    return Py_BuildValue(
        "{sNsIszsIsNsNsNsN}", "file", PyUnicode_DecodeFSDefault(i->file), "index", i->index, "name",
        i->name, "snaplen", i->snaplen, "received", count_or_none(i->received), "dropped_kernel",
        count_or_none(i->dropped_kernel), "dropped_interface", count_or_none(i->dropped_interface),
        "dropped_program", count_or_none(interface_dropped_program(i)));
}

/* Returns the reader of a stream that has been read to its end; NULL with RuntimeError set before,
 * because interfaces and damage can still appear. */
static struct observation_reader *ended_reader(PyObject *object) {
    struct observation_reader *reader = ((struct observations_object *)object)->reader;
    if (!reader)
        PyErr_SetString(PyExc_RuntimeError, "nothing was read to its end yet");
    return reader;
}

static PyObject *observations_interfaces(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct observation_reader *reader = ended_reader(object);
    if (!reader)
        return NULL;
    const struct interface_list *interfaces =
        merged_input_interfaces(observation_reader_captures(reader));
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < interfaces->count; i++)
        if (!binding_append(list, interface_object(interfaces->items[i])))
            Py_CLEAR(list);
    return list;
}

static PyObject *observations_damage(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct observation_reader *reader = ended_reader(object);
    return reader ? binding_damage(observation_reader_captures(reader)) : NULL;
}

static PyObject *observations_counts(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct observation_reader *reader = ended_reader(object);
    if (!reader)
        return NULL;
    struct observation_counts counts = observation_reader_counts(reader);
    return Py_BuildValue("{sKsKsKsK}", "packets", (unsigned long long)counts.packets, "not_ip",
                         (unsigned long long)counts.not_ip, "unread",
                         (unsigned long long)counts.unread, "unassigned",
                         (unsigned long long)counts.unassigned);
}

static PyMethodDef observations_methods[] = {
    METHOD("__arrow_c_stream__", observations_stream, METH_VARARGS | METH_KEYWORDS,
           "The files' packets, read as the consumer asks; each call reads anew."),
    METHOD("__arrow_c_schema__", observations_schema, METH_NOARGS, "The rows' columns."),
    METHOD("interfaces", observations_interfaces, METH_NOARGS,
           "Returns the descriptions of the files and their interfaces."),
    METHOD("damage", observations_damage, METH_NOARGS,
           "Returns the damage that ended the reading of files early."),
    METHOD("counts", observations_counts, METH_NOARGS, "Packets read, and those that gave no row."),
    {0},
};

static PyType_Slot observations_slots[] = {
    {Py_tp_doc, "The packets of one capture point, with the fields that identify each."},
    {Py_tp_new, observations_new},
    {Py_tp_dealloc, observations_dealloc},
    {Py_tp_methods, observations_methods},
    {0},
};
static PyType_Spec observations_spec = {"wiretale.analyzer._core.Observations",
                                        sizeof(struct observations_object), 0, Py_TPFLAGS_DEFAULT,
                                        observations_slots};

PyObject *observations_type_make(void) {
    return PyType_FromSpec(&observations_spec);
}
