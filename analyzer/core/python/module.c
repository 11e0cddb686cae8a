/* SPDX-License-Identifier: Apache-2.0 */
/* The module wiretale.analyzer._core and the type Analysis. analysis_open(), analysis_step() and
 * analysis_finish() run without the GIL, so that Python can show progress and handle Ctrl-C between
 * steps; `busy` prevents a second thread from entering the same analysis meanwhile. `busy` needs no
 * atomic access, because it is read and written only with the GIL held.
 *
 * State is static (the types), therefore the module does not support
 * subinterpreters. Errors of the core become _core.Error(kind, text); misuse of the interface
 * raises Python's own exceptions. Tables are handed out only after analysis_finish() and never
 * change, except that the caller may add findings. */
#include <stdlib.h>
#include <string.h>

#include "common/portable.h"
#include "exchange/exchange_parents.h"
#include "pipeline/analysis.h"
#include "python/binding.h"
#include "rows/rows.h"

/* --- Analysis ------------------------------------------------------------------------------- */

struct analysis_object {
    PyObject_HEAD struct analysis *analysis;
    bool busy; /* a thread is inside without the GIL */
};

/* The constructor's arguments, and the references that must be released. Options and mode point
 * into them: analysis_open() copies all that it keeps, so they need to live only until it
 * returns. */
struct arguments {
    struct binding_paths paths, names;
    struct analysis_options options;
    struct reading_mode mode;
};

static bool take_arguments(struct arguments *arguments, PyObject *args, PyObject *kwargs,
                           PyObject **mode) {
    static char *names[] = {"", "", "", "", NULL}; /* by place alone */
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&O&O", names, binding_take_paths,
                                     &arguments->paths, binding_take_paths, &arguments->names,
                                     binding_take_options, &arguments->options, mode) ||
        !binding_take_mode(*mode, &arguments->mode))
        return false;
    if (arguments->names.count != arguments->paths.count)
        PyErr_SetString(PyExc_ValueError, "names must be as many as paths");
    return arguments->names.count == arguments->paths.count;
}

/* Takes over the analysis. */
static PyObject *analysis_wrap(PyTypeObject *type, struct analysis *analysis) {
    struct analysis_object *self = (struct analysis_object *)PyType_GenericAlloc(type, 0);
    if (self)
        self->analysis = analysis;
    else
        analysis_close(analysis);
    return (PyObject *)self;
}

/* Returns the analysis; NULL with RuntimeError set while a thread works on it without the GIL.
 * Every method must call it, also those that only read counters, because the worker changes them.
 */
static struct analysis *idle_analysis(PyObject *object) {
    struct analysis_object *self = (struct analysis_object *)object;
    if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "another thread works on this analysis");
    return self->busy ? NULL : self->analysis;
}

/* The same; RuntimeError with `otherwise` before finish() too. */
static struct analysis *finished_analysis(PyObject *object, const char *otherwise) {
    struct analysis *analysis = idle_analysis(object);
    bool finished = analysis && analysis_totals(analysis)->finished;
    if (analysis && !finished)
        PyErr_SetString(PyExc_RuntimeError, otherwise);
    return finished ? analysis : NULL;
}

/* Sets the analysis that is the attribute `first` of a mode. Returns false with an exception. */
static bool take_first(PyTypeObject *type, PyObject *record, struct reading_mode *mode) {
    PyObject *first = PyObject_GetAttrString(record, "first");
    Py_XDECREF(first); /* the record keeps it */
    if (!first || first == Py_None)
        return first;
    if (!PyObject_TypeCheck(first, type)) {
        PyErr_SetString(PyExc_TypeError, "first must be an Analysis");
        return false;
    }
    mode->first = finished_analysis(first, "first must be finished");
    return mode->first;
}

/* Opens the files without the GIL, because a pipe or a network file system can block. The object
 * is allocated last, so that it never exists without an analysis. */
static PyObject *analysis_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    struct arguments arguments = {0};
    struct error error = {0};
    struct analysis *analysis = NULL;
    PyObject *mode = NULL; /* borrowed */
    bool taken =
        take_arguments(&arguments, args, kwargs, &mode) && take_first(type, mode, &arguments.mode);
    if (taken) {
        const struct analysis_files files = {arguments.paths.texts, arguments.names.texts,
                                             arguments.paths.count};
        Py_BEGIN_ALLOW_THREADS analysis =
            analysis_open(&files, &arguments.options, &arguments.mode, &error);
        Py_END_ALLOW_THREADS
    }
    binding_free_paths(&arguments.paths);
    binding_free_paths(&arguments.names);
    PyMem_Free((void *)arguments.mode.packets.flows);
    if (!analysis)
        return taken ? binding_raise(&error) : NULL;
    return analysis_wrap(type, analysis);
}

/* split(path, name, file, fds, head, key, options): a class method, so that the rows of the whole
 * file are those of an Analysis. */
static PyObject *analysis_split_method(PyObject *type, PyObject *args) {
    struct analysis *analysis = NULL;
    PyObject *facts = split_capture(args, &analysis);
    PyObject *rows = facts ? analysis_wrap((PyTypeObject *)type, analysis) : NULL;
    if (!rows)
        Py_XDECREF(facts);
    return rows ? Py_BuildValue("(NN)", rows, facts) : NULL;
}

static PyObject *analysis_begins_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis *analysis = finished_analysis(object, "flows are numbered after finish()");
    return analysis ? begins_list(analysis) : NULL;
}

/* joined(tables, totals, judged, excluded): likewise. */
static PyObject *analysis_joined_method(PyObject *type, PyObject *args) {
    struct analysis *analysis = join_tables(args);
    return analysis ? analysis_wrap((PyTypeObject *)type, analysis) : NULL;
}

/* No thread can be inside: the method that runs holds a reference. Tables hold one as well, so
 * that their memory outlives the last Table. */
static void analysis_dealloc(PyObject *self) {
    analysis_close(((struct analysis_object *)self)->analysis);
    binding_free_object(self);
}

/* step(most): processes about `most` packets and returns whether the input has not ended. The
 * caller chooses `most` so that a step takes a fraction of a second, because signals are handled
 * only between steps. */
static PyObject *analysis_step_method(PyObject *object, PyObject *most) {
    struct analysis_object *self = (struct analysis_object *)object;
    unsigned long long packets = PyLong_AsUnsignedLongLong(most);
    struct error error;
    bool more;
    if (PyErr_Occurred() || !idle_analysis(object))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS more = analysis_step(self->analysis, packets, &error);
    Py_END_ALLOW_THREADS self->busy = false;
    return error.kind == ERROR_NONE ? PyBool_FromLong(more) : binding_raise(&error);
}

/* finish(): should be called once, also if the input has not ended, for instance after Ctrl-C. */
static PyObject *analysis_finish_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis_object *self = (struct analysis_object *)object;
    struct error error;
    if (!idle_analysis(object))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS analysis_finish(self->analysis, &error);
    Py_END_ALLOW_THREADS self->busy = false;
    return error.kind == ERROR_NONE ? Py_NewRef(Py_None) : binding_raise(&error);
}

/* follow(paths, names): further files of a running analysis, whose files were read to their end. */
static PyObject *analysis_follow_method(PyObject *object, PyObject *args) {
    struct analysis_object *self = (struct analysis_object *)object;
    struct binding_paths paths = {0}, names = {0};
    struct error error = {0};
    bool taken =
        idle_analysis(object) &&
        PyArg_ParseTuple(args, "O&O&", binding_take_paths, &paths, binding_take_paths, &names) &&
        paths.count == names.count;
    if (taken) {
        const struct analysis_files files = {paths.texts, names.texts, paths.count};
        self->busy = true;
        Py_BEGIN_ALLOW_THREADS analysis_follow(self->analysis, &files, &error);
        Py_END_ALLOW_THREADS self->busy = false;
    }
    binding_free_paths(&paths);
    binding_free_paths(&names);
    if (!taken)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a name for each path");
    return error.kind == ERROR_NONE ? Py_NewRef(Py_None) : binding_raise(&error);
}

/* take(): an Analysis with the rows of flows that ended since the last call. */
static PyObject *analysis_take_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis_object *self = (struct analysis_object *)object;
    struct analysis *taken;
    struct error error;
    if (!idle_analysis(object))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS taken = analysis_take(self->analysis, &error);
    Py_END_ALLOW_THREADS self->busy = false;
    return taken ? analysis_wrap(Py_TYPE(object), taken) : binding_raise(&error);
}

/* open_flows(): the first packets of open flows, 8 bytes each. */
static PyObject *analysis_open_flows_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis *analysis = idle_analysis(object);
    size_t count;
    uint64_t *flows = analysis ? analysis_open_flows(analysis, &count) : NULL;
    if (!flows)
        return analysis ? PyErr_NoMemory() : NULL;
    PyObject *bytes =
        PyBytes_FromStringAndSize((const char *)flows, (Py_ssize_t)(count * sizeof *flows));
    free(flows);
    return bytes;
}

/* keep_flows(flows): ends the open flows without rows that are not among these. */
static PyObject *analysis_keep_flows_method(PyObject *object, PyObject *flows) {
    struct analysis *analysis = idle_analysis(object);
    Py_ssize_t size;
    char *bytes;
    if (!analysis || PyBytes_AsStringAndSize(flows, &bytes, &size) < 0)
        return NULL;
    size_t count = (size_t)size / sizeof(uint64_t);
    uint64_t *list = malloc((count + 1) * sizeof *list);
    if (!list)
        return PyErr_NoMemory();
    memcpy(list, bytes, count * sizeof *list);
    analysis_keep_flows(analysis, list, count);
    free(list);
    Py_RETURN_NONE;
}

/* add_row(table, row): a tuple of all columns, of which texts are copied. */
static PyObject *analysis_add_row_method(PyObject *object, PyObject *args) {
    struct analysis *analysis = finished_analysis(object, "findings come after finish()");
    struct row_sink *sink = analysis ? analysis_sink(analysis) : NULL;
    PyObject *values;
    const char *name;
    struct row row;
    if (!sink || !PyArg_ParseTuple(args, "sO", &name, &values))
        return NULL;
    for (unsigned number = 0; number < TABLE_COUNT; number++)
        if (is_after_pass(number) && !strcmp(schemas[number].name, name)) {
            if (!binding_take_row(values, &schemas[number], &sink->texts, &row))
                return NULL;
            return table_add(&sink->tables[number], &row) ? Py_NewRef(Py_None) : PyErr_NoMemory();
        }
    return PyErr_Format(PyExc_ValueError, "rows of %s come from the core", name);
}

static PyObject *analysis_nest_exchanges_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis *analysis = finished_analysis(object, "parents come after finish()");
    bool done;
    if (!analysis)
        return NULL;
    Py_BEGIN_ALLOW_THREADS done =
        exchange_parents_set(&analysis_sink(analysis)->tables[TABLE_exchanges]);
    Py_END_ALLOW_THREADS return done ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *analysis_totals_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const struct analysis *analysis = idle_analysis(object);
    if (!analysis)
        return NULL;
    const struct analysis_totals *totals = analysis_totals(analysis);
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsK}", "packets", (unsigned long long)totals->packets,
                         "flows", (unsigned long long)totals->flows, "evicted_flows",
                         (unsigned long long)totals->evicted_flows, "evicted_datagrams",
                         (unsigned long long)totals->evicted_datagrams, "filter_refused",
                         (unsigned long long)totals->filter_refused, "packets_rows_dropped",
                         (unsigned long long)totals->packet_rows_dropped, "events_dropped",
                         (unsigned long long)totals->events_dropped, "blocks_dropped",
                         (unsigned long long)totals->blocks_dropped, "exchanges_dropped",
                         (unsigned long long)totals->exchanges_dropped);
}

/* progress(): (bytes read, bytes of all files or 0, packets read). */
static PyObject *analysis_progress_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const struct analysis *analysis = idle_analysis(object);
    if (!analysis)
        return NULL;
    const struct analysis_totals *totals = analysis_totals(analysis);
    return Py_BuildValue("(KKK)", (unsigned long long)totals->bytes_read,
                         (unsigned long long)totals->bytes_total,
                         (unsigned long long)totals->packets);
}

/* excluded(): (count, first time, last time) in ns since the epoch, of packets that start_ns and
 * end_ns excluded. None if there are none, since their times would be undefined. */
static PyObject *analysis_excluded_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const struct analysis *analysis =
        finished_analysis(object, "excluded packets are counted after finish()");
    if (!analysis)
        return NULL;
    const struct excluded_packets *excluded = &analysis_totals(analysis)->excluded;
    if (!excluded->count)
        Py_RETURN_NONE;
    return Py_BuildValue("KLL", (unsigned long long)excluded->count, (long long)excluded->first_ns,
                         (long long)excluded->last_ns);
}

/* judged(): the sum of all flows as reason "", then traffic that was not judged for some measures.
 * The reason of another protocol is its word. */
static PyObject *analysis_judged_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const struct analysis *analysis =
        finished_analysis(object, "judged packets are counted after finish()");
    return analysis ? judged_list(&analysis_totals(analysis)->judged) : NULL;
}

/* table(name): a new Table that shares the memory of the analysis and keeps it alive. Two calls
 * return two objects. An argument that is not a string raises KeyError as an unknown name does. */
static PyObject *analysis_table_method(PyObject *object, PyObject *argument) {
    const struct analysis *analysis =
        finished_analysis(object, "tables are complete after finish()");
    if (!analysis)
        return NULL;
    for (unsigned i = 0; PyUnicode_Check(argument) && i < TABLE_COUNT; i++)
        if (!PyUnicode_CompareWithASCIIString(argument, schemas[i].name))
            return table_wrap(object, analysis_table(analysis, (enum table_number)i));
    return PyErr_Format(PyExc_KeyError, "no table %R", argument);
}

/* take_packets(): a Table with the packets of the steps since the last call, so that a consumer of
 * any number of packets needs the memory of one step. */
static PyObject *analysis_take_packets_method(PyObject *object, PyObject *Py_UNUSED(unused)) {
    struct analysis *analysis = idle_analysis(object);
    struct table *rows = analysis ? malloc(sizeof *rows) : NULL;
    if (!rows)
        return analysis ? PyErr_NoMemory() : NULL;
    struct row_sink *sink = analysis_sink(analysis);
    *rows = sink->tables[TABLE_packets];
    table_init(&sink->tables[TABLE_packets], TABLE_packets, &sink->texts, 0, false);
    sink->tables[TABLE_packets].schema = rows->schema;
    return table_wrap_own(object, rows);
}

/* --- the module ----------------------------------------------------------------------------- */

static PyMethodDef analysis_methods[] = {
    METHOD("step", analysis_step_method, METH_O,
           "Reads up to about so many packets; False at the end."),
    METHOD("finish", analysis_finish_method, METH_NOARGS,
           "Fills the tables with the packets that were read."),
    METHOD("follow", analysis_follow_method, METH_VARARGS, "Gives it further files."),
    METHOD("take", analysis_take_method, METH_NOARGS,
           "An Analysis with the rows of the flows that ended since the last call."),
    METHOD("open_flows", analysis_open_flows_method, METH_NOARGS,
           "The number of the file and the frame of each open flow's first packet."),
    METHOD("keep_flows", analysis_keep_flows_method, METH_O, "Ends other open flows without rows."),
    METHOD("add_row", analysis_add_row_method, METH_VARARGS,
           "Adds a row of findings or their evidence."),
    METHOD("nest_exchanges", analysis_nest_exchanges_method, METH_NOARGS,
           "Sets the parent of each exchange (exchanges.within)."),
    METHOD("progress", analysis_progress_method, METH_NOARGS,
           "Bytes read so far, bytes of all files or 0, packets read so far."),
    METHOD("totals", analysis_totals_method, METH_NOARGS, "Counts over the whole input."),
    METHOD("judged", analysis_judged_method, METH_NOARGS,
           "Traffic of all flows, and the part that was not judged, by reason."),
    METHOD("excluded", analysis_excluded_method, METH_NOARGS,
           "Count, first and last time of packets outside start_ns and end_ns, or None."),
    METHOD("table", analysis_table_method, METH_O, "A table by name, after finish()."),
    METHOD(
        "begins", analysis_begins_method, METH_NOARGS,
        "Of flows whose first packet is not the one of flows.first_ns: flow, time, frame, late."),
    METHOD("split", analysis_split_method, METH_VARARGS | METH_CLASS,
           "Writes a capture to parts; its own rows as an Analysis, and its facts."),
    METHOD("joined", analysis_joined_method, METH_VARARGS | METH_CLASS,
           "An Analysis with the rows of Arrow streams."),
    METHOD("take_packets", analysis_take_packets_method, METH_NOARGS,
           "Moves the rows of packets so far to a Table."),
    {0},
};

static PyType_Slot analysis_slots[] = {
    {Py_tp_doc, "One pass over capture files; the tables are complete after finish()."},
    {Py_tp_new, analysis_new},
    {Py_tp_dealloc, analysis_dealloc},
    {Py_tp_methods, analysis_methods},
    {0},
};
static PyType_Spec analysis_spec = {"wiretale.analyzer._core.Analysis",
                                    sizeof(struct analysis_object), 0, Py_TPFLAGS_DEFAULT,
                                    analysis_slots};

static PyObject *module_give_back_memory(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    give_back_memory();
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    METHOD("vocabulary", module_vocabulary, METH_NOARGS, "Every word of the tables, by number."),
    METHOD("schemas", module_schemas, METH_NOARGS, "(table, meaning, columns) of every table."),
    METHOD(
        "foreign_format", module_foreign_format, METH_O,
        "Name of a file that this reader does not read, by its first bytes, and the command that "
        "converts it; None if it is unknown."),
    METHOD(
        "frames", module_frames, METH_VARARGS,
        "Frames of a file, in rising order: decoded, and their bytes if they fit into the room."),
    METHOD("cut", module_cut, METH_VARARGS | METH_KEYWORDS,
           "Copies chosen packets into a pcapng file; returns (read, written, damage)."),
    METHOD("pseudonym", module_pseudonym, METH_VARARGS,
           "The pseudonym of an address of 4, 6 or 16 bytes under a key."),
    METHOD("frame_index", module_frame_index, METH_VARARGS,
           "(compression, frames, checkpoints, header blocks) of a file."),
    METHOD("seek_points", module_seek_points, METH_VARARGS,
           "Points from which a compressed file can be decompressed."),
    METHOD("seek_read", module_seek_read, METH_VARARGS,
           "Bytes of a compressed file, decompressed from the point before them."),
    METHOD("packet_rows", module_packet_rows, METH_O, "A packets table with these rows."),
    METHOD("time_columns", module_time_columns, METH_VARARGS,
           "Packets of tables, and flows by columns of time, packed."),
    METHOD("give_back_memory", module_give_back_memory, METH_NOARGS,
           "Returns freed memory to the kernel."),
    METHOD("libraries", module_libraries, METH_NOARGS, "Versions of the libraries in use."),
    {0},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "wiretale.analyzer._core",
    .m_doc = "The native core.",
    .m_size = -1,
    .m_methods = module_methods,
};

/* setup.py sets the stamp (analyzer/core_stamp.py); other compilations have none. */
#ifndef CORE_STAMP
#define CORE_STAMP ""
#endif

/* References are not released if this fails: the import fails once, and the process usually
 * ends. PyModule_AddObjectRef() leaves one reference of each type with the static pointers. */
PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *analysis_type = PyType_FromSpec(&analysis_spec);
    PyObject *error_type = binding_error_make();
    PyTypeObject *table_type = table_types_make();
    if (!module || !analysis_type || !error_type || !table_type ||
        PyModule_AddObjectRef(module, "Analysis", analysis_type) ||
        PyModule_AddObjectRef(module, "Table", (PyObject *)table_type) ||
        PyModule_AddObjectRef(module, "Error", error_type) ||
        PyModule_AddStringConstant(module, "STAMP", CORE_STAMP))
        return NULL;
    return module;
}
