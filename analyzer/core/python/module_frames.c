/* SPDX-License-Identifier: Apache-2.0 */
/* How single frames of a file are decoded, for `wiretale verify`, which explains why a frame that
 * Wireshark judges has no verdict. The file is read up to the last frame that is asked for, and
 * only these frames are decoded. The list of frames is copied before the GIL is released, so that
 * no Python object is touched while the file is read. */
#include <string.h>

#include "decode/headers.h"
#include "format/merged_input.h"
#include "python/binding.h"

#define PACKETS_AT_ONCE 64u

struct asked_frame {
    uint64_t number;
    uint8_t reason;   /* enum decode_reason */
    uint8_t protocol; /* IP protocol number, if `network` is set */
    bool found;       /* the file has the frame */
    bool network;     /* an IP header was decoded */
    bool transport;   /* a transport header was decoded */
    bool fragment;
};

static void decode_frame(struct asked_frame *asked, const struct packet *packet) {
    struct headers headers;
    decode_packet(packet, &headers);
    asked->found = true;
    asked->reason = headers.reason;
    asked->network = headers.layer >= LAYER_NETWORK;
    asked->transport = headers.layer == LAYER_TRANSPORT;
    asked->protocol = asked->network ? headers.protocol : 0;
    asked->fragment = asked->network && headers.fragment;
}

/* `asked` must be in rising order; a number that is out of order is not found. */
static void decode_frames(struct merged_input *input, struct asked_frame *asked, size_t count) {
    struct packet packets[PACKETS_AT_ONCE];
    size_t next = 0;
    while (next < count && !merged_input_ended(input)) {
        size_t read = merged_input_read(input, packets, PACKETS_AT_ONCE);
        for (size_t i = 0; i < read; i++)
            for (; next < count && asked[next].number <= packets[i].frame; next++)
                if (asked[next].number == packets[i].frame)
                    decode_frame(&asked[next], &packets[i]);
    }
}

/* Returns the frames of a list of numbers, to be freed with PyMem_Free(); NULL with an exception
 * set if it holds anything else. */
static struct asked_frame *frames_of(PyObject *list, size_t *count) {
    Py_ssize_t size = PyList_Size(list);
    struct asked_frame *asked = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *asked);
    if (!asked)
        return size < 0 ? NULL : (void *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++)
        asked[i].number = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
    *count = (size_t)size;
    if (!PyErr_Occurred())
        return asked;
    PyMem_Free(asked);
    return NULL;
}

/* Returns (reason, IP protocol or None, transport, fragment), or None if the file has no such
 * frame. */
static PyObject *frame_object(const struct asked_frame *asked) {
    if (!asked->found)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(sNNN)", decode_reason_name((enum decode_reason)asked->reason),
                         asked->network ? PyLong_FromLong(asked->protocol) : Py_NewRef(Py_None),
                         PyBool_FromLong(asked->transport), PyBool_FromLong(asked->fragment));
}

static PyObject *frames_list(const struct asked_frame *asked, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (!binding_append(list, frame_object(&asked[i])))
            Py_CLEAR(list);
    return list;
}

PyObject *module_decoded(PyObject *Py_UNUSED(module), PyObject *args) {
    struct binding_paths paths = {0};
    PyObject *numbers, *list = NULL;
    struct asked_frame *asked = NULL;
    size_t count = 0;
    struct error error = {0};
    if (PyArg_ParseTuple(args, "O&O!", binding_take_paths, &paths, &PyList_Type, &numbers))
        asked = frames_of(numbers, &count);
    if (asked) {
        Py_BEGIN_ALLOW_THREADS struct merged_input *input =
            merged_input_open(paths.texts, paths.count, &error);
        if (input)
            decode_frames(input, asked, count);
        merged_input_close(input);
        Py_END_ALLOW_THREADS list = frames_list(asked, count);
    }
    PyMem_Free(asked);
    binding_free_paths(&paths);
    return list;
}
