/* SPDX-License-Identifier: Apache-2.0 */
/* Analysis.split(): a capture into parts. Bytes objects stay referenced by the caller's arguments
 * until the call returns. */
#include <errno.h>
#include <string.h>

#include "python/binding.h"
#include "shard/split.h"
#include "update/update.h"

/* Takes a list of descriptors. */
static bool take_fds(PyObject *list, int *fds, uint32_t *count) {
    Py_ssize_t size = PyList_Size(list);
    if (size < 1 || size > (Py_ssize_t)SHARDS_MOST) {
        PyErr_Format(PyExc_ValueError, "expected 1 to %u parts", SHARDS_MOST);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        fds[i] = (int)PyLong_AsLong(PyList_GetItem(list, i));
    *count = (uint32_t)size;
    return !PyErr_Occurred();
}

/* Returns (first frame, last frame, time) of each span. */
static PyObject *spans_of(const struct split_facts *facts) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < facts->span_count; i++) {
        const struct merge_span *span = &facts->spans[i];
        if (!binding_append(list, Py_BuildValue("(KKL)", (unsigned long long)span->first,
                                                (unsigned long long)span->last,
                                                (long long)span->merge_ns)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *facts_of(const struct split *split) {
    const struct split_facts *facts = split_facts(split);
    PyObject *spans = spans_of(facts);
    if (!spans)
        return NULL;
    return Py_BuildValue("{sIsIsOsLsLsLsLsN}", "interfaces", facts->interfaces, "interfaces_early",
                         facts->interfaces_early, "timed", facts->timed ? Py_True : Py_False,
                         "first_ns", (long long)facts->first_ns, "last_ns",
                         (long long)facts->last_ns, "end_ns", (long long)facts->end_ns, "clock_ns",
                         (long long)facts->clock_ns, "spans", spans);
}

PyObject *begins_list(struct analysis *analysis) {
    const struct flow_begin *begins = analysis_begins(analysis);
    const struct table *table = analysis_table(analysis, TABLE_flows);
    PyObject *list = PyList_New(0);
    struct table_cursor cursor = {0};
    struct row row;
    for (; begins && list && table_next_of(table, &cursor, flows_first_frame + 1, &row); begins++) {
        bool timed = begins->time_ns != TIME_UNKNOWN;
        bool same = begins->frame == (uint64_t)row.value[flows_first_frame] && timed &&
                    begins->time_ns == row.value[flows_first_ns];
        if (same && !begins->late)
            continue;
        if (!binding_append(list, Py_BuildValue("(LNKO)", (long long)row.value[flows_flow],
                                                timed ? PyLong_FromLongLong(begins->time_ns)
                                                      : Py_NewRef(Py_None),
                                                (unsigned long long)begins->frame,
                                                begins->late ? Py_True : Py_False)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *run_split(struct split *split, struct analysis **analysis) {
    struct error error = {0};
    enum split_state state = SPLIT_MORE;
    while (state == SPLIT_MORE) {
        Py_BEGIN_ALLOW_THREADS state = split_step(split, &error);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals()) return NULL;
    }
    if (state == SPLIT_FAILED)
        return binding_raise(&error);
    if (state == SPLIT_DONE) {
        PyObject *facts = facts_of(split);
        *analysis = facts ? split_analysis(split) : NULL;
        return facts;
    }
    errno = split_write_error(split);
    return PyErr_SetFromErrno(PyExc_OSError);
}

PyObject *split_capture(PyObject *args, struct analysis **analysis) {
    struct split_options options = {0};
    struct error error = {0};
    int fds[SHARDS_MOST];
    PyObject *list, *path = NULL, *name = NULL, *facts = NULL;
    Py_ssize_t head_size = 0, key_size = 0;
    const char *key;
    if (!PyArg_ParseTuple(args, "O&O&IO!y#y#O&", PyUnicode_FSConverter, &path,
                          PyUnicode_FSConverter, &name, &options.file, &PyList_Type, &list,
                          &options.head, &head_size, &key, &key_size, binding_take_options,
                          &options.analysis))
        goto end;
    if (key_size != sizeof options.key.seed || options.file >= 1u << 19) {
        PyErr_SetString(PyExc_ValueError, "the key has 24 bytes, and files are below 524288");
        goto end;
    }
    memcpy(options.key.seed, key, sizeof options.key.seed);
    options.path = PyBytes_AsString(path);
    options.name = PyBytes_AsString(name);
    options.head_size = (size_t)head_size;
    options.fds = fds;
    if (options.path && options.name && take_fds(list, fds, &options.shard_count)) {
        struct split *split;
        Py_BEGIN_ALLOW_THREADS split = split_open(&options, &error);
        Py_END_ALLOW_THREADS facts = split ? run_split(split, analysis) : binding_raise(&error);
        split_close(split);
    }
end:
    Py_XDECREF(path);
    Py_XDECREF(name);
    return facts;
}
