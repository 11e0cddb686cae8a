/* SPDX-License-Identifier: Apache-2.0 */
/* _core.split(), Analysis.shard_rows() and _core.gather(): captures into shards, the rows of a
 * shard as bytes, and the rows of all shards as one finished Analysis. Bytes objects stay
 * referenced by the caller's arguments until the call returns. */
#include <errno.h>
#include <string.h>

#include "python/binding.h"
#include "shard/gather.h"
#include "shard/row_file.h"
#include "shard/split.h"

/* --- split ------------------------------------------------------------------------------------ */

/* Takes a list of descriptors. */
static bool take_fds(PyObject *list, int *fds, uint32_t *count) {
    Py_ssize_t size = PyList_Size(list);
    if (size < 1 || size > (Py_ssize_t)SHARDS_MOST) {
        PyErr_Format(PyExc_ValueError, "expected 1 to %u shards", SHARDS_MOST);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        fds[i] = (int)PyLong_AsLong(PyList_GetItem(list, i));
    *count = (uint32_t)size;
    return !PyErr_Occurred();
}

static PyObject *facts_of(const struct split *split) {
    const struct split_facts *facts = split_facts(split);
    struct bytes rows = {0};
    PyObject *result = NULL;
    interface_rows_write(&rows, facts);
    if (rows.out_of_memory)
        PyErr_NoMemory();
    else
        result = Py_BuildValue(
            "{sKsKsLsLsKsOsIsIsOsKsLsLsLsLsOsy#sy#sz}", "packets",
            (unsigned long long)facts->packets, "excluded",
            (unsigned long long)facts->excluded.count, "excluded_first_ns",
            (long long)facts->excluded.first_ns, "excluded_last_ns",
            (long long)facts->excluded.last_ns, "refused", (unsigned long long)facts->refused,
            "behind", facts->behind ? Py_True : Py_False, "interfaces", facts->interfaces,
            "interfaces_early", facts->interfaces_early, "untimed_first",
            facts->untimed_first ? Py_True : Py_False, "untimed",
            (unsigned long long)facts->untimed, "first_ns", (long long)facts->first_ns, "last_ns",
            (long long)facts->last_ns, "end_ns", (long long)facts->end_ns, "clock_ns",
            (long long)facts->clock_ns, "timed", facts->timed ? Py_True : Py_False, "rows",
            (const char *)rows.data, (Py_ssize_t)rows.size, "spans",
            facts->spans ? (const char *)facts->spans : "",
            (Py_ssize_t)(facts->span_count * sizeof *facts->spans), "damage", split_damage(split));
    bytes_free(&rows);
    return result;
}

static PyObject *run_split(struct split *split) {
    struct error error = {0};
    enum split_state state = SPLIT_MORE;
    while (state == SPLIT_MORE) {
        Py_BEGIN_ALLOW_THREADS state = split_step(split, &error);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals()) return NULL;
    }
    if (state == SPLIT_FAILED)
        return binding_raise(&error);
    if (state == SPLIT_DONE)
        return facts_of(split);
    errno = split_write_error(split);
    return PyErr_SetFromErrno(PyExc_OSError);
}

PyObject *module_split(PyObject *Py_UNUSED(module), PyObject *args) {
    struct split_options options = {0};
    struct error error = {0};
    int fds[SHARDS_MOST];
    PyObject *list, *path = NULL, *name = NULL, *result = NULL;
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
        Py_END_ALLOW_THREADS result = split ? run_split(split) : binding_raise(&error);
        split_close(split);
    }
end:
    Py_XDECREF(path);
    Py_XDECREF(name);
    return result;
}

/* --- rows ------------------------------------------------------------------------------------- */

PyObject *shard_rows_of(struct analysis *analysis) {
    struct bytes rows = {0};
    if (!analysis_shard_state(analysis)) {
        PyErr_SetString(PyExc_RuntimeError, "expected the finished analysis of a shard");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS shard_rows_write(&rows, analysis);
    Py_END_ALLOW_THREADS PyObject *result =
        rows.out_of_memory
            ? PyErr_NoMemory()
            : PyBytes_FromStringAndSize((const char *)rows.data, (Py_ssize_t)rows.size);
    bytes_free(&rows);
    return result;
}

/* --- gather ----------------------------------------------------------------------------------- */

/* Takes (rows, spans, packets, excluded, first and last time of them, refused) of each file. */
static bool take_files(PyObject *list, struct gathered_file *files, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Py_ssize_t rows_size, spans_size;
        unsigned long long packets, excluded, refused;
        long long first_ns, last_ns;
        if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "y#y#KKLLK", &files[i].rows,
                              &rows_size, &files[i].spans, &spans_size, &packets, &excluded,
                              &first_ns, &last_ns, &refused))
            return false;
        files[i].rows_size = (size_t)rows_size;
        files[i].span_count = (size_t)spans_size / sizeof(struct merge_span);
        files[i].packets = packets;
        files[i].excluded = (struct excluded_packets){excluded, first_ns, last_ns};
        files[i].refused = refused;
    }
    return true;
}

static bool take_shards(PyObject *list, struct gathered_shard *shards, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *start;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, (Py_ssize_t)i), &start, &size))
            return false;
        shards[i] = (struct gathered_shard){(const uint8_t *)start, (size_t)size};
    }
    return true;
}

struct analysis *gather_shards(PyObject *args) {
    struct gather_input input = {0};
    struct error error = {0};
    struct analysis *analysis = NULL;
    struct analysis_options options;
    PyObject *files, *shards;
    size_t bad;
    int inexact;
    if (!PyArg_ParseTuple(args, "O!O!O&p", &PyList_Type, &files, &PyList_Type, &shards,
                          binding_take_options, &options, &inexact))
        return NULL;
    input.max_flows = options.max_flows;
    input.inexact = inexact;
    input.file_count = (size_t)PyList_Size(files);
    input.shard_count = (size_t)PyList_Size(shards);
    struct gathered_file *file_list = PyMem_Calloc(input.file_count + 1, sizeof *file_list);
    struct gathered_shard *shard_list = PyMem_Calloc(input.shard_count + 1, sizeof *shard_list);
    if (!file_list || !shard_list) {
        PyErr_NoMemory();
    } else if (input.shard_count > SHARDS_MOST) {
        PyErr_SetString(PyExc_ValueError, "too many shards");
    } else if (take_files(files, file_list, input.file_count) &&
               take_shards(shards, shard_list, input.shard_count)) {
        input.files = file_list;
        input.shards = shard_list;
        Py_BEGIN_ALLOW_THREADS analysis = gather(&input, &bad, &error);
        Py_END_ALLOW_THREADS if (!analysis && bad != SIZE_MAX)
            PyErr_Format(PyExc_ValueError, "%zu", bad);
        else if (!analysis) binding_raise(&error);
    }
    PyMem_Free(file_list);
    PyMem_Free(shard_list);
    return analysis;
}
