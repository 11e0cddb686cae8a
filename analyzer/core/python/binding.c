/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow structures as PyCapsules
 * (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). A consumer
 * moves the structure out of the capsule and sets `release` to NULL in it; the destructor then
 * frees only the memory of the structure. If the capsule is never consumed, the destructor
 * releases both. */
#include <stdlib.h>

#include "python/binding.h"

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

/* Copies the structure to the heap, because its address must stay valid as long as the capsule.
 * If that fails, the stream is released, so that its owner loses the reference taken for it. */
PyObject *binding_stream_capsule(struct ArrowArrayStream *stream) {
    struct ArrowArrayStream *held = malloc(sizeof *held);
    PyObject *capsule = held ? PyCapsule_New(held, "arrow_array_stream", free_stream) : NULL;
    if (capsule) {
        *held = *stream;
        return capsule;
    }
    free(held);
    stream->release(stream);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

PyObject *binding_schema_capsule(struct ArrowSchema *schema) {
    struct ArrowSchema *held = malloc(sizeof *held);
    PyObject *capsule = held ? PyCapsule_New(held, "arrow_schema", free_schema) : NULL;
    if (capsule) {
        *held = *schema;
        return capsule;
    }
    free(held);
    schema->release(schema);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

/* Since Python 3.8 an instance of a heap type owns a reference to its type, which its
 * deallocator must return after the memory. The limited API has no access to `tp_free` but by
 * its slot. */
void binding_free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* A number that exceeds 32 bits becomes UINT32_MAX, which no flow has, so that it chooses no row
 * instead of a wrong one. A negative number or another type raises. An empty list returns an
 * array as well, because NULL would mean all flows to column_pack(). */
uint32_t *binding_flow_numbers(PyObject *list, size_t *count) {
    Py_ssize_t size = PyList_Size(list);
    uint32_t *flows = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *flows);
    if (size >= 0 && !flows)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; flows && i < size; i++) {
        unsigned long number = PyLong_AsUnsignedLong(PyList_GetItem(list, i));
        flows[i] = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    *count = size < 0 ? 0 : (size_t)size;
    if (!PyErr_Occurred())
        return flows;
    PyMem_Free(flows);
    return NULL;
}
