/* SPDX-License-Identifier: Apache-2.0 */
/* Passages as Python sees them: a stream of rows, and what the files say of themselves. */
#include <stdlib.h>
#include <string.h>

#include "observation/observation_stream.h"
#include "python/module.h"

struct passages_object {
    PyObject_HEAD PyObject *encoded; /* tuple of bytes: the paths */
    const char **paths;
    size_t count;
    struct passage_reader *reader; /* after the last stream ended */
};

static void keep_reader(void *owner, struct passage_reader *reader) {
    PyGILState_STATE state = PyGILState_Ensure();
    struct passages_object *self = owner;
    passage_reader_close(self->reader);
    self->reader = reader;
    PyGILState_Release(state);
}

static void passages_dealloc(PyObject *object) {
    struct passages_object *self = (struct passages_object *)object;
    passage_reader_close(self->reader);
    PyMem_Free(self->paths);
    Py_XDECREF(self->encoded);
    module_free_object(object);
}

static bool take_paths(struct passages_object *self, PyObject *list) {
    Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : 0;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "paths must be a list of at least one path");
        return false;
    }
    self->encoded = PyTuple_New(count);
    self->paths = PyMem_Calloc((size_t)count, sizeof *self->paths);
    self->count = (size_t)count;
    if (!self->encoded || !self->paths)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *path;
        if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &path) ||
            PyTuple_SetItem(self->encoded, i, path))
            return false;
        self->paths[i] = PyBytes_AsString(path);
    }
    return true;
}

static PyObject *passages_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"paths", NULL};
    PyObject *list;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &list))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self && !take_paths((struct passages_object *)self, list))
        Py_CLEAR(self);
    return self;
}

static PyObject *passages_stream(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"requested_schema", NULL};
    struct passages_object *self = (struct passages_object *)object;
    struct passage_listener listener = {keep_reader, module_disown, self};
    PyObject *requested = NULL;
    struct ArrowArrayStream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &requested))
        return NULL;
    if (passage_stream_export(self->paths, self->count, &listener, &stream))
        return PyErr_NoMemory();
    Py_INCREF(object);
    return module_stream_capsule(&stream);
}

static PyObject *passages_schema(PyObject *object, PyObject *unused) {
    struct ArrowSchema schema;
    (void)object;
    (void)unused;
    if (passage_schema_export(&schema))
        return PyErr_NoMemory();
    return module_schema_capsule(&schema);
}

static PyObject *count_or_none(uint64_t count) {
    return count == DROPS_UNKNOWN ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *interface_object(const struct interface *i) {
    return Py_BuildValue(
        "{sNsIszsIsNsNsNsN}", "file", PyUnicode_DecodeFSDefault(i->file), "index", i->index, "name",
        i->name, "snaplen", i->snaplen, "received", count_or_none(i->received), "dropped_kernel",
        count_or_none(i->dropped_kernel), "dropped_interface", count_or_none(i->dropped_interface),
        "dropped_program", count_or_none(interface_dropped_program(i)));
}

static bool has_ended(const struct passages_object *self) {
    if (!self->reader)
        PyErr_SetString(PyExc_RuntimeError, "nothing was read to its end yet");
    return self->reader;
}

static PyObject *passages_interfaces(PyObject *object, PyObject *unused) {
    struct passages_object *self = (struct passages_object *)object;
    (void)unused;
    if (!has_ended(self))
        return NULL;
    const struct capture_set *captures = passage_reader_captures(self->reader);
    size_t count = capture_set_interfaces(captures);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *entry = interface_object(capture_set_interface(captures, i));
        if (!entry || PyList_SetItem(list, (Py_ssize_t)i, entry))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *passages_damage(PyObject *object, PyObject *unused) {
    struct passages_object *self = (struct passages_object *)object;
    PyObject *list = has_ended(self) ? PyList_New(0) : NULL;
    (void)unused;
    if (!list)
        return NULL;
    const struct capture_set *captures = passage_reader_captures(self->reader);
    for (size_t i = 0; list && i < capture_set_files(captures); i++) {
        const struct damage *damage = capture_set_damage(captures, i);
        if (!damage->present)
            continue;
        PyObject *text =
            PyUnicode_DecodeUTF8(damage->text, (Py_ssize_t)strlen(damage->text), "replace");
        if (!text || PyList_Append(list, text))
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *passages_counts(PyObject *object, PyObject *unused) {
    struct passages_object *self = (struct passages_object *)object;
    (void)unused;
    if (!has_ended(self))
        return NULL;
    struct passage_counts counts = passage_reader_counts(self->reader);
    return Py_BuildValue("{sKsKsKsK}", "packets", (unsigned long long)counts.packets, "not_ip",
                         (unsigned long long)counts.not_ip, "unread",
                         (unsigned long long)counts.unread, "unassigned",
                         (unsigned long long)counts.unassigned);
}

static PyMethodDef passages_methods[] = {
    METHOD("__arrow_c_stream__", passages_stream, METH_VARARGS | METH_KEYWORDS,
           "The files' packets, read as the consumer asks; each call reads anew."),
    METHOD("__arrow_c_schema__", passages_schema, METH_NOARGS, "The rows' columns."),
    METHOD("interfaces", passages_interfaces, METH_NOARGS, "What the files say of their inputs."),
    METHOD("damage", passages_damage, METH_NOARGS, "What ended the reading of files early."),
    METHOD("counts", passages_counts, METH_NOARGS, "Packets read, and those that gave no row."),
    {0},
};

static PyType_Slot passages_slots[] = {
    {Py_tp_doc, "The packets of one capture point, with what tells each from all others."},
    {Py_tp_new, passages_new},
    {Py_tp_dealloc, passages_dealloc},
    {Py_tp_methods, passages_methods},
    {0},
};
static PyType_Spec passages_spec = {"wiretale.analyzer._core.Passages",
                                    sizeof(struct passages_object), 0, Py_TPFLAGS_DEFAULT,
                                    passages_slots};

PyObject *passages_type_make(void) {
    return PyType_FromSpec(&passages_spec);
}
