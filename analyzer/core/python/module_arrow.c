/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow structures as capsules
 * (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). */
#include <stdlib.h>

#include "python/module.h"

void binding_disown(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

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
