/* SPDX-License-Identifier: Apache-2.0 */
/* Single frames of a file: decoded for `wiretale verify`, which explains why a frame that Wireshark
 * judges has no verdict, and as bytes for the report, whose cited frames tshark dissects. The file
 * is read up to the last frame that is asked for. The list of frames is copied before the GIL is
 * released, so that no Python object is touched while the file is read. */
#include <stdlib.h>
#include <string.h>

#include "decode/headers.h"
#include "format/merged_input.h"
#include "python/binding.h"

#define PACKETS_AT_ONCE 64u

struct asked_frame {
    uint64_t number;
    uint8_t *data;   /* copy of `captured` bytes; NULL if they do not fit, or without memory */
    int64_t time_ns; /* as in struct packet */
    uint32_t length; /* bytes on the wire */
    uint32_t captured;
    uint16_t link_type;
    uint8_t reason;   /* enum decode_reason */
    uint8_t protocol; /* IP protocol number, if `network` is set */
    bool found;       /* the file has the frame */
    bool fits;        /* its bytes fit into the room for copies */
    bool network;     /* an IP header was decoded */
    bool transport;   /* a transport header was decoded */
    bool fragment;
};

/* Decodes a frame that was asked for, and copies it if it fits into the room that is left. */
static void take_frame(struct asked_frame *asked, const struct packet *packet, size_t *room) {
    struct headers headers;
    decode_packet(packet, &headers);
    asked->found = true;
    asked->reason = headers.reason;
    asked->network = headers.layer >= LAYER_NETWORK;
    asked->transport = headers.layer == LAYER_TRANSPORT;
    asked->protocol = asked->network ? headers.protocol : 0;
    asked->fragment = asked->network && headers.fragment;
    asked->fits = packet->captured <= *room;
    if (!asked->fits)
        return;
    asked->data = malloc((size_t)packet->captured + 1);
    asked->time_ns = packet->time_ns;
    asked->length = packet->length;
    asked->captured = packet->captured;
    asked->link_type = packet->link_type;
    if (asked->data)
        memcpy(asked->data, packet->data, packet->captured);
    *room -= packet->captured;
}

/* `asked` must be in rising order; a number that is out of order is not found. */
static void take_frames(struct merged_input *input, struct asked_frame *asked, size_t count,
                        size_t room) {
    struct packet packets[PACKETS_AT_ONCE];
    size_t next = 0;
    while (next < count && !merged_input_ended(input)) {
        size_t read = merged_input_read(input, packets, PACKETS_AT_ONCE);
        for (size_t i = 0; i < read; i++)
            for (; next < count && asked[next].number <= packets[i].frame; next++)
                if (asked[next].number == packets[i].frame)
                    take_frame(&asked[next], &packets[i], &room);
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

/* Returns (link type, time or None, bytes on the wire, captured bytes), None if they do not fit
 * into the room. */
static PyObject *bytes_object(const struct asked_frame *asked) {
    if (!asked->fits)
        return Py_NewRef(Py_None);
    if (!asked->data)
        return PyErr_NoMemory();
    bool timed = asked->time_ns > TIME_OUT_OF_RANGE;
    return Py_BuildValue("(iNIy#)", (int)asked->link_type,
                         timed ? PyLong_FromLongLong(asked->time_ns) : Py_NewRef(Py_None),
                         (unsigned)asked->length, (const char *)asked->data,
                         (Py_ssize_t)asked->captured);
}

/* Returns the decoded frame, (reason, IP protocol or None, transport, fragment), and its bytes;
 * None if the file has no such frame. */
static PyObject *frame_object(const struct asked_frame *asked) {
    if (!asked->found)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(sNNN)N", decode_reason_name((enum decode_reason)asked->reason),
                         asked->network ? PyLong_FromLong(asked->protocol) : Py_NewRef(Py_None),
                         PyBool_FromLong(asked->transport), PyBool_FromLong(asked->fragment),
                         bytes_object(asked));
}

/* Takes the frames of the list `numbers`, and returns the list of their objects. */
static PyObject *frames_of_paths(const struct binding_paths *paths, PyObject *numbers,
                                 size_t room) {
    size_t count = 0;
    struct error error = {0};
    struct asked_frame *asked = frames_of(numbers, &count);
    if (!asked)
        return NULL;
    Py_BEGIN_ALLOW_THREADS struct merged_input *input =
        merged_input_open(paths->texts, NULL, paths->count, &error);
    if (input)
        take_frames(input, asked, count, room);
    merged_input_close(input);
    Py_END_ALLOW_THREADS PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) {
        if (list && !binding_append(list, frame_object(&asked[i])))
            Py_CLEAR(list);
        free(asked[i].data);
    }
    PyMem_Free(asked);
    return list;
}

PyObject *module_frames(PyObject *Py_UNUSED(module), PyObject *args) {
    struct binding_paths paths = {0};
    PyObject *numbers, *list = NULL;
    Py_ssize_t room = 0;
    if (PyArg_ParseTuple(args, "O&O!n", binding_take_paths, &paths, &PyList_Type, &numbers, &room))
        list = frames_of_paths(&paths, numbers, room < 0 ? 0 : (size_t)room);
    binding_free_paths(&paths);
    return list;
}
