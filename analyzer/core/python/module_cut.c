/* SPDX-License-Identifier: Apache-2.0 */
/* _core.cut(): copies chosen packets (cut/cut.h). Numbers of frames and files come as packed
 * arrays, because a flow can have millions of packets. The GIL is released while packets are
 * copied; between steps, signals are handled, so that Ctrl-C ends the cut with KeyboardInterrupt.
 * The arguments stay referenced by the caller's tuple and dict until the call returns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cut/address_map.h"
#include "cut/cut.h"
#include "python/binding.h"

/* The arguments of a call. */
struct order {
    struct binding_paths paths;
    struct choice choice;
    struct cut_options options;
    const char **strings;
    size_t *sizes;
    const uint32_t *capture_files; /* file of each interface */
    size_t capture_count;
};

static void free_order(struct order *order) {
    choice_close(&order->choice);
    binding_free_paths(&order->paths);
    PyMem_Free(order->strings);
    PyMem_Free(order->sizes);
}

/* Returns the elements of a bytes object; NULL with an exception set. */
static const void *elements(PyObject *bytes, size_t size, size_t *count) {
    char *start;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(bytes, &start, &length))
        return NULL;
    *count = (size_t)length / size;
    return start;
}

/* Adds (captures, frames, first, last), columns of the packets table: arrays of u32 and of doubles,
 * of which the frames from `first` to `last` count. */
static bool add_frames(struct order *order, PyObject *group) {
    PyObject *capture_bytes, *frame_bytes;
    unsigned long long first, last;
    size_t count = 0, frame_count = 0;
    if (!PyArg_ParseTuple(group, "SSKK", &capture_bytes, &frame_bytes, &first, &last))
        return false;
    const uint32_t *captures = elements(capture_bytes, sizeof *captures, &count);
    const double *frames = elements(frame_bytes, sizeof *frames, &frame_count);
    if (!captures || !frames)
        return false;
    for (size_t i = 0; i < count && i < frame_count; i++) {
        bool chosen = frames[i] >= (double)first && frames[i] <= (double)last;
        if (captures[i] >= order->capture_count || !chosen) /* null is NaN */
            continue;
        uint32_t file = order->capture_files[captures[i]];
        if (!choice_add_frame(&order->choice, file, (uint64_t)frames[i]))
            return PyErr_NoMemory() != NULL;
    }
    return true;
}

static bool take_frames(struct order *order, PyObject *files, PyObject *groups, PyObject *ranges) {
    size_t numbers = 0;
    order->capture_files = elements(files, sizeof *order->capture_files, &order->capture_count);
    if (!order->capture_files)
        return false;
    for (Py_ssize_t i = 0; i < PyList_Size(groups); i++)
        if (!add_frames(order, PyList_GetItem(groups, i)))
            return false;
    order->choice.ranges = elements(ranges, sizeof(uint64_t), &numbers);
    order->choice.range_count = numbers / 3;
    return order->choice.ranges != NULL;
}

/* Takes (frames, strings): an array of u64, file and frame of each, and a list of bytes. */
static bool take_comments(struct order *order, PyObject *tuple) {
    struct cut_comments *comments = &order->options.comments;
    PyObject *frames, *list;
    if (!PyArg_ParseTuple(tuple, "SO!", &frames, &PyList_Type, &list))
        return false;
    comments->frames = elements(frames, sizeof *comments->frames, &comments->count);
    size_t size = (size_t)PyList_Size(list);
    order->strings = PyMem_Calloc(size + 1, sizeof *order->strings);
    order->sizes = PyMem_Calloc(size + 1, sizeof *order->sizes);
    if (!order->strings || !order->sizes)
        return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < size; i++) {
        order->strings[i] = elements(PyList_GetItem(list, (Py_ssize_t)i), 1, &order->sizes[i]);
        if (!order->strings[i])
            return false;
    }
    comments->strings = order->strings;
    comments->sizes = order->sizes;
    if (comments->count != size)
        PyErr_SetString(PyExc_ValueError, "comments: lists of different lengths");
    return !PyErr_Occurred();
}

static bool take_key(struct order *order, const char *key, Py_ssize_t size) {
    order->options.key = (const uint8_t *)key;
    if (key && size != ADDRESS_KEY_SIZE)
        PyErr_SetString(PyExc_ValueError, "the key must have 32 bytes");
    return !PyErr_Occurred();
}

static bool take_order(struct order *order, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"paths",   "fd",      "head",     "files",    "groups",
                            "ranges",  "all",     "start_ns", "end_ns",   "around_ns",
                            "headers", "classic", "key",      "comments", NULL};
    long long start_ns, end_ns, around_ns;
    int all, headers, classic;
    PyObject *files, *groups, *ranges, *comments;
    const char *key;
    Py_ssize_t key_size = 0, head_size = 0;
    struct cut_options *options = &order->options;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&$iy#SO!SpLLLppz#O!", names,
                                     binding_take_paths, &order->paths, &options->fd,
                                     &options->head, &head_size, &files, &PyList_Type, &groups,
                                     &ranges, &all, &start_ns, &end_ns, &around_ns, &headers,
                                     &classic, &key, &key_size, &PyTuple_Type, &comments))
        return false;
    if (!choice_open(&order->choice, order->paths.count))
        return PyErr_NoMemory() != NULL;
    order->choice.all = all;
    order->choice.start_ns = start_ns;
    order->choice.end_ns = end_ns;
    order->choice.around_ns = around_ns;
    options->paths = order->paths.texts;
    options->path_count = order->paths.count;
    options->head_size = (size_t)head_size;
    options->headers_only = headers;
    options->classic = classic;
    options->choice = &order->choice;
    return take_key(order, key, key_size) && take_frames(order, files, groups, ranges) &&
           take_comments(order, comments);
}

/* Returns (read, written, texts of damage, secrets and processes of the input, whether either is in
 * the output). */
static PyObject *outcome_of(const struct cut *cut) {
    PyObject *list = binding_damage(cut_input(cut));
    struct cut_blocks blocks = cut_blocks(cut);
    return list ? Py_BuildValue(
                      "(KKNKKNN)", (unsigned long long)cut_packets_read(cut),
                      (unsigned long long)cut_packets_written(cut), list,
                      (unsigned long long)blocks.secrets, (unsigned long long)blocks.processes,
                      PyBool_FromLong(blocks.with_secrets), PyBool_FromLong(blocks.with_processes))
                : NULL;
}

static PyObject *run_cut(struct cut *cut) {
    struct error error = {0};
    enum cut_state state = CUT_MORE;
    while (state == CUT_MORE) {
        Py_BEGIN_ALLOW_THREADS state = cut_step(cut, &error);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals()) return NULL;
    }
    if (state == CUT_FAILED)
        return binding_raise(&error);
    if (state == CUT_DONE)
        return outcome_of(cut);
    errno = cut_write_error(cut);
    return PyErr_SetFromErrno(PyExc_OSError);
}

PyObject *module_cut(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs) {
    struct order order = {0};
    struct error error = {0};
    PyObject *outcome = NULL;
    if (take_order(&order, args, kwargs)) {
        struct cut *cut;
        Py_BEGIN_ALLOW_THREADS cut = cut_open(&order.options, &error);
        Py_END_ALLOW_THREADS outcome = cut ? run_cut(cut) : binding_raise(&error);
        cut_close(cut);
    }
    free_order(&order);
    return outcome;
}

PyObject *module_pseudonym(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *address, *key;
    Py_ssize_t size, key_size;
    uint8_t mapped[16];
    struct address_map map;
    if (!PyArg_ParseTuple(args, "y#y#", &address, &size, &key, &key_size))
        return NULL;
    if ((size != 4 && size != 6 && size != 16) || key_size != ADDRESS_KEY_SIZE) {
        PyErr_SetString(PyExc_ValueError,
                        "expected an address of 4, 6 or 16 bytes and a key of 32");
        return NULL;
    }
    if (!address_map_open(&map, (const uint8_t *)key))
        return PyErr_NoMemory();
    memcpy(mapped, address, (size_t)size);
    address_map_replace(&map, mapped, (size_t)size);
    address_map_close(&map);
    return PyBytes_FromStringAndSize((const char *)mapped, size);
}
