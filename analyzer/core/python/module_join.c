/* SPDX-License-Identifier: Apache-2.0 */
/* Analysis.joined(): the tables of the parts of a cluster as one finished Analysis; and sums of the
 * traffic that was not judged, as Python has them. */
#include <string.h>

#include "base/packet.h"
#include "base/vocabulary.h"
#include "python/binding.h"
#include "rows/rows.h"
#include "shard/join.h"

/* --- sums ------------------------------------------------------------------------------------ */

/* A sum with its name. */
struct named_sum {
    const char *reason, *measures;
    struct traffic_sum *sum;
};

#define SUMS (1 + UNJUDGED_COUNT * MEASURES_ALL + 256)

/* Names all sums: that of all flows as "", and those of other protocols by their words. */
static void name_sums(struct judged_sums *sums, struct named_sum named[static SUMS]) {
    static const char *const names[] = {
#define X(name, text, measures) text,
        JUDGED_REASONS(X)
#undef X
    };
    static const char *const measures[MEASURES_ALL + 1] = {
        "", "loss", "rtt", "loss rtt", "limits", "loss limits", "rtt limits", "loss rtt limits"};
    *named++ = (struct named_sum){"", "", &sums->whole};
    for (unsigned i = 0; i < UNJUDGED_COUNT; i++)
        for (unsigned left = 1; left <= MEASURES_ALL; left++)
            *named++ = (struct named_sum){names[i], measures[left], &sums->unjudged[i][left]};
    for (unsigned i = 0; i < 256; i++)
        *named++ = (struct named_sum){word_text(protocol_word((uint8_t)i)), measures[MEASURES_ALL],
                                      &sums->protocols[i]};
}

/* Adds the sums of protocols that have the same word to the first of them. */
static void join_words(struct judged_sums *sums) {
    for (unsigned i = 1; i < 256; i++)
        for (unsigned first = 0; first < i; first++)
            if (protocol_word((uint8_t)first) == protocol_word((uint8_t)i)) {
                sums->protocols[first].packets += sums->protocols[i].packets;
                sums->protocols[first].wire_bytes += sums->protocols[i].wire_bytes;
                sums->protocols[i] = (struct traffic_sum){0};
                break;
            }
}

PyObject *judged_list(const struct judged_sums *sums) {
    struct judged_sums copy = *sums;
    struct named_sum named[SUMS];
    PyObject *list = PyList_New(0);
    join_words(&copy);
    name_sums(&copy, named);
    for (unsigned i = 0; list && i < SUMS; i++)
        if (named[i].sum->packets &&
            !binding_append(list, Py_BuildValue("(ssKK)", named[i].reason, named[i].measures,
                                                (unsigned long long)named[i].sum->packets,
                                                (unsigned long long)named[i].sum->wire_bytes)))
            Py_CLEAR(list);
    return list;
}

/* Adds (reason, measures, packets, wire bytes) to the sum of that name. */
static bool add_judged(struct judged_sums *sums, PyObject *judged) {
    struct named_sum named[SUMS];
    const char *reason, *measures;
    unsigned long long packets, wire_bytes;
    if (!PyArg_ParseTuple(judged, "ssKK", &reason, &measures, &packets, &wire_bytes))
        return false;
    name_sums(sums, named);
    for (unsigned i = 0; i < SUMS; i++)
        if (!strcmp(named[i].reason, reason) && !strcmp(named[i].measures, measures)) {
            named[i].sum->packets += packets;
            named[i].sum->wire_bytes += wire_bytes;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "no sum %s, %s", reason, measures);
    return false;
}

/* --- tables ---------------------------------------------------------------------------------- */

static bool take_totals(PyObject *record, struct analysis_totals *totals) {
    const struct {
        const char *name;
        uint64_t *count;
    } counts[] = {
        {"packets", &totals->packets},
        {"flows", &totals->flows},
        {"evicted_flows", &totals->evicted_flows},
        {"evicted_datagrams", &totals->evicted_datagrams},
        {"filter_refused", &totals->filter_refused},
        {"events_dropped", &totals->events_dropped},
        {"blocks_dropped", &totals->blocks_dropped},
        {"exchanges_dropped", &totals->exchanges_dropped},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        PyObject *count = PyDict_GetItemString(record, counts[i].name); /* borrowed */
        if (!count)
            PyErr_SetString(PyExc_KeyError, counts[i].name);
        else
            *counts[i].count = PyLong_AsUnsignedLongLong(count);
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

/* Takes (table, stream). */
static bool take_table(struct analysis *analysis, PyObject *pair) {
    struct error error = {0};
    PyObject *capsule;
    const char *name;
    if (!PyArg_ParseTuple(pair, "sO", &name, &capsule))
        return false;
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    unsigned number = 0;
    while (number < TABLE_COUNT && strcmp(schemas[number].name, name) != 0)
        number++;
    if (stream && number == TABLE_COUNT)
        PyErr_Format(PyExc_ValueError, "no table %s", name);
    if (!stream || number == TABLE_COUNT)
        return false;
    bool done;
    Py_BEGIN_ALLOW_THREADS done = join_rows(analysis, (enum table_number)number, stream, &error);
    Py_END_ALLOW_THREADS if (!done) binding_raise(&error);
    return done;
}

static bool take_all(struct analysis *analysis, struct analysis_totals *totals, PyObject *tables,
                     PyObject *record, PyObject *judged) {
    struct error error = {0};
    bool done = take_totals(record, totals);
    for (Py_ssize_t i = 0; done && i < PyList_Size(judged); i++)
        done = add_judged(&totals->judged, PyList_GetItem(judged, i));
    PyObject *pair, *pairs = done ? PyObject_GetIter(tables) : NULL;
    while (pairs && done && (pair = PyIter_Next(pairs))) {
        done = take_table(analysis, pair);
        Py_DECREF(pair);
    }
    done = pairs && done && !PyErr_Occurred();
    Py_XDECREF(pairs);
    return done && (join_end(analysis, &error) || binding_raise(&error));
}

struct analysis *join_tables(PyObject *args) {
    struct analysis_totals *totals;
    PyObject *tables, *record, *judged;
    unsigned long long excluded;
    long long first_ns, last_ns;
    if (!PyArg_ParseTuple(args, "OO!O!(KLL)", &tables, &PyDict_Type, &record, &PyList_Type, &judged,
                          &excluded, &first_ns, &last_ns))
        return NULL;
    struct analysis *analysis = analysis_empty(&totals);
    if (!analysis) {
        PyErr_NoMemory();
        return NULL;
    }
    totals->excluded = (struct excluded_packets){excluded, first_ns, last_ns};
    if (take_all(analysis, totals, tables, record, judged))
        return analysis;
    analysis_close(analysis);
    return NULL;
}
