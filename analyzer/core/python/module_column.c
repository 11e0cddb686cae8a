/* SPDX-License-Identifier: Apache-2.0 */
/* Columns in Python: values as objects, sums, nonzero rows, typed arrays. Tables are packed row by
 * row, so that each function makes one pass over all rows and unpacks them only up to the last
 * column that it needs (table_next_of()). The GIL is held, unless a pass creates no objects.
 *
 * For many rows packed() or Arrow should be used: column() creates an object per row. */
#include <stdlib.h>
#include <string.h>

#include "base/vocabulary.h"
#include "export/export.h"
#include "python/binding.h"

#define TIME_BINS_MAX 100000
#define FLOW_SUMS_MAX 10000000
#define NAMED         3 /* columns of flow_sums() that are not summed: times, then the flow */

/* A path equals os.fsdecode(): bytes that are not UTF-8 become surrogates, so that os.fsencode()
 * restores it. In other texts string_table_add() has replaced malformed bytes already, and
 * "replace" is a precaution. */
static PyObject *text_object(const struct table *table, enum column_type type, int64_t value) {
    char address[ADDRESS_TEXT_MAX];
    size_t size;
    const char *text = string_table_text(table->texts, type, value, address, &size);
    return type == TYPE_PATH ? PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)size)
                             : PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

/* Returns a word (new reference), an object that is kept for the whole process. */
static PyObject *word_object(int64_t word) {
    static PyObject *words[WORD_COUNT];
    if (!words[word])
        words[word] = PyUnicode_InternFromString(word_text((enum word)word));
    return Py_XNewRef(words[word]);
}

PyObject *table_value_object(const struct table *table, const struct row *row, unsigned column) {
    int64_t value = row->value[column];
    double real;
    if (!row_known(row, column))
        return Py_NewRef(Py_None);
    switch (table->schema->columns[column].type) {
    case TYPE_BOOL: return PyBool_FromLong(value != 0);
    case TYPE_WORD: return word_object(value);
    case TYPE_TEXT:
    case TYPE_ADDRESS:
    case TYPE_PATH: return text_object(table, table->schema->columns[column].type, value);
    case TYPE_REAL: memcpy(&real, &value, sizeof real); return PyFloat_FromDouble(real);
    default: return PyLong_FromLongLong(value);
    }
}

int table_find_column(const struct table *table, PyObject *name) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    int column = text ? schema_column(table->schema, text) : -1;
    if (text && column < 0)
        PyErr_Format(PyExc_KeyError, "no column %s in %s", text, table->schema->name);
    return column;
}

/* Short texts of a column, which are often equal, such as addresses: a later one is the object of
 * the first, which the list of the column keeps. */
struct known_text {
    uint64_t bytes[2]; /* as stored, with zeros after it */
    size_t size;
    PyObject *object;
};

struct known_texts {
    struct known_text *list;
    size_t count; /* a power of two */
};

#define KNOWN_MAX   32768u
#define TEXTS_AHEAD 8

/* Returns the place of a text, which another one may have. */
static struct known_text *find_known(const struct known_texts *known, const uint64_t *bytes) {
    uint64_t hash = (bytes[0] ^ bytes[1] * 0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15;
    return &known->list[(hash >> 32) & (known->count - 1)];
}

/* Returns a text (new reference), that of an equal one before if it is still known. */
static PyObject *shared_text(const struct table *table, enum column_type type, int64_t number,
                             const struct known_texts *known) {
    uint64_t bytes[2] = {0};
    size_t size;
    const char *text = string_table_get(table->texts, number, &size);
    if (size > sizeof bytes)
        return text_object(table, type, number);
    memcpy(bytes, text, size);
    struct known_text *entry = find_known(known, bytes);
    if (entry->object && entry->size == size && entry->bytes[0] == bytes[0] &&
        entry->bytes[1] == bytes[1])
        return Py_NewRef(entry->object);
    *entry = (struct known_text){{bytes[0], bytes[1]}, size, text_object(table, type, number)};
    return entry->object;
}

/* Reads the numbers of texts of a column, -1 for null. */
static void read_numbers(const struct table *table, unsigned column, int64_t *numbers) {
    struct table_cursor cursor = {0};
    struct row row;
    for (size_t i = 0; table_next_of(table, &cursor, column + 1, &row); i++)
        numbers[i] = row_known(&row, column) ? row.value[column] : -1;
}

/* Sets the items of a list to texts by their numbers. Rows end in another order than that of the
 * table, so that a text is rarely in the cache. Returns false with an exception set. */
static bool set_texts(PyObject *list, const struct table *table, enum column_type type,
                      const int64_t *numbers, const struct known_texts *known) {
    Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (i + TEXTS_AHEAD < count && numbers[i + TEXTS_AHEAD] >= 0)
            __builtin_prefetch(string_table_get(table->texts, numbers[i + TEXTS_AHEAD], NULL));
        PyObject *text =
            numbers[i] < 0 ? Py_NewRef(Py_None) : shared_text(table, type, numbers[i], known);
        if (!text || PyList_SetItem(list, i, text))
            return false;
    }
    return true;
}

static PyObject *text_column(const struct table *table, unsigned column) {
    struct known_texts known = {.count = 1};
    size_t rows = (size_t)table->row_count;
    while (known.count < KNOWN_MAX && known.count < rows)
        known.count *= 2;
    known.list = PyMem_Calloc(known.count, sizeof *known.list);
    int64_t *numbers = PyMem_Calloc(rows + !rows, sizeof *numbers);
    PyObject *list = known.list && numbers ? PyList_New((Py_ssize_t)rows) : PyErr_NoMemory();
    if (list) {
        read_numbers(table, column, numbers);
        if (!set_texts(list, table, table->schema->columns[column].type, numbers, &known))
            Py_CLEAR(list);
    }
    PyMem_Free(numbers);
    PyMem_Free(known.list);
    return list;
}

/* column(name). The list has its final length from the start; a slot that is not set yet is
 * NULL, which is safe because the list is not visible before it is returned. */
PyObject *table_column(PyObject *self, PyObject *name) {
    const struct table *table = table_of(self);
    int column = table_find_column(table, name);
    if (column >= 0 && table->schema->columns[column].type >= TYPE_TEXT)
        return text_column(table, (unsigned)column);
    PyObject *list = column < 0 ? NULL : PyList_New((Py_ssize_t)table->row_count);
    struct table_cursor cursor = {0};
    struct row row;
    size_t columns = (size_t)(column + 1);
    for (Py_ssize_t i = 0; list && table_next_of(table, &cursor, columns, &row); i++) {
        PyObject *value = table_value_object(table, &row, (unsigned)column);
        if (!value || PyList_SetItem(list, i, value))
            Py_CLEAR(list);
    }
    return list;
}

/* total(name): null counts as 0. Raises OverflowError instead of a wrapped sum, TypeError unless
 * the column is of integers. */
PyObject *table_total(PyObject *self, PyObject *name) {
    const struct table *table = table_of(self);
    int column = table_find_column(table, name);
    struct table_cursor cursor = {0};
    struct row row;
    int64_t total = 0;
    if (column < 0)
        return NULL;
    if (table->schema->columns[column].type > TYPE_DURATION)
        return PyErr_Format(PyExc_TypeError, "column %U is not of integers", name);
    while (table_next_of(table, &cursor, (size_t)column + 1, &row)) {
        if (__builtin_add_overflow(total, row.value[column], &total))
            return PyErr_Format(PyExc_OverflowError, "the sum of column %U is too great", name);
    }
    return PyLong_FromLongLong(total);
}

/* Returns the number of a word, -1 if it is unknown. */
static int64_t word_number(const char *text) {
    for (int64_t number = 0; number < WORD_COUNT; number++)
        if (!strcmp(word_text((enum word)number), text))
            return number;
    return -1;
}

/* Which rows of a column are wanted: null ones never are. */
struct wanted {
    bool all;
    int64_t least, most;
};

/* Takes nothing for all rows that are not null, a word, or the least integer. An unknown word
 * matches no row, because its number -1 is never stored. Returns false with an exception set. */
static bool take_wanted(const struct table *table, unsigned column, PyObject *given,
                        struct wanted *wanted) {
    enum column_type type = table->schema->columns[column].type;
    *wanted = (struct wanted){.all = given == Py_None, .most = INT64_MAX};
    if (wanted->all)
        return true;
    if (type == TYPE_WORD) {
        const char *word = PyUnicode_AsUTF8AndSize(given, NULL);
        wanted->least = wanted->most = word ? word_number(word) : 0;
        return word != NULL;
    }
    if (type > TYPE_DURATION) {
        PyErr_Format(PyExc_TypeError, "column %s is not of words or integers",
                     table->schema->columns[column].name);
        return false;
    }
    wanted->least = PyLong_AsLongLong(given);
    return !PyErr_Occurred();
}

/* rows_where(name[, word or least]): numbers of the rows where the column is not null and, if
 * given, is this word, or this integer or more. */
PyObject *table_rows_where(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    PyObject *name, *given = Py_None;
    struct table_cursor cursor = {0};
    struct wanted wanted;
    struct row row;
    if (!PyArg_ParseTuple(args, "U|O", &name, &given))
        return NULL;
    int column = table_find_column(table, name);
    if (column < 0 || !take_wanted(table, (unsigned)column, given, &wanted))
        return NULL;
    PyObject *list = PyList_New(0);
    size_t columns = (size_t)(column + 1);
    for (Py_ssize_t i = 0; list && table_next_of(table, &cursor, columns, &row); i++) {
        int64_t value = row.value[column];
        bool is_wanted = wanted.all || (value >= wanted.least && value <= wanted.most);
        if (is_wanted && row_known(&row, (unsigned)column) &&
            !binding_append(list, PyLong_FromSsize_t(i)))
            Py_CLEAR(list);
    }
    return list;
}

/* held_columns(): the names of the columns that are not null in every row. */
PyObject *table_held_columns(PyObject *self, PyObject *Py_UNUSED(unused)) {
    const struct table *table = table_of(self);
    struct row held;
    table_held(table, &held);
    PyObject *list = PyList_New(0);
    for (unsigned c = 0; list && c < table->schema->column_count; c++)
        if (row_known(&held, c) &&
            !binding_append(list, PyUnicode_FromString(table->schema->columns[c].name)))
            Py_CLEAR(list);
    return list;
}

/* Appends (row number, value) to a column's list where the column is neither null nor 0. One
 * pass serves all columns, and a sparse column creates few objects. */
static bool find_nonzero(const struct table *table, const int *columns, PyObject **lists,
                         Py_ssize_t count) {
    struct table_cursor cursor = {0};
    struct row row;
    size_t last = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        last = (size_t)columns[i] > last ? (size_t)columns[i] : last;
    for (Py_ssize_t number = 0; table_next_of(table, &cursor, last + 1, &row); number++)
        for (Py_ssize_t i = 0; i < count; i++) {
            unsigned column = (unsigned)columns[i];
            if (row.value[column] && row_known(&row, column) &&
                !binding_append(lists[i], Py_BuildValue("(nN)", number,
                                                        table_value_object(table, &row, column))))
                return false;
        }
    return true;
}

/* nonzero([name, ...]): a dict of lists. `lists` holds borrowed references, which stay valid as
 * long as the dict. A repeated name would free its first list while in use, so it is an error. */
PyObject *table_nonzero(PyObject *self, PyObject *names) {
    const struct table *table = table_of(self);
    int columns[COLUMNS_MAX];
    PyObject *lists[COLUMNS_MAX];
    Py_ssize_t count = PyList_Size(names);
    PyObject *dict = count >= 0 && count <= COLUMNS_MAX ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < count; i++) {
        PyObject *name = PyList_GetItem(names, i);
        columns[i] = table_find_column(table, name);
        lists[i] = columns[i] < 0 ? NULL : PyList_New(0);
        if (!lists[i] || PyDict_SetItem(dict, name, lists[i])) {
            Py_CLEAR(dict);
        } else if (PyDict_Size(dict) != i + 1) {
            PyErr_Format(PyExc_ValueError, "column %U is named twice", name);
            Py_CLEAR(dict);
        }
        Py_XDECREF(lists[i]); /* the dict has its own reference */
    }
    if (dict && !find_nonzero(table, columns, lists, count))
        Py_CLEAR(dict);
    if (!dict && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "too many columns");
    return dict;
}

/* Parses one tuple (name, code, offset, divisor, delta). Sets ValueError unless the code is known,
 * the divisor is not 0 and the column is of numbers, booleans or words. column_pack() does not
 * check this again. */
static bool take_pack(const struct table *table, PyObject *field, struct column_pack *pack) {
    PyObject *name;
    const char *code;
    long long offset, divisor;
    int delta;
    if (!PyArg_ParseTuple(field, "UsLLp", &name, &code, &offset, &divisor, &delta))
        return false;
    int column = table_find_column(table, name);
    if (column < 0)
        return false;
    *pack = (struct column_pack){(unsigned)column, code[0], delta, offset, divisor};
    if (column_pack_size(code[0]) && divisor && table->schema->columns[column].type <= TYPE_WORD)
        return true;
    PyErr_Format(PyExc_ValueError, "column %U cannot be packed as %c", name, code[0]);
    return false;
}

/* Creates a bytes object of the final size per column and collects their addresses. The bytes
 * are written afterwards, which is permitted as long as no other code has a reference. */
static PyObject *pack_places(const struct column_pack *packs, Py_ssize_t count, size_t rows,
                             uint8_t **places) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        Py_ssize_t size = (Py_ssize_t)(rows * column_pack_size(packs[i].code));
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
        places[i] = bytes ? (uint8_t *)PyBytes_AsString(bytes) : NULL;
        if (!bytes || PyList_SetItem(list, i, bytes))
            Py_CLEAR(list);
    }
    return list;
}

/* packed([(name, code, offset, divisor, delta), ...][, flows]): a list of bytes, little-endian
 * (column_pack in export.h). `flows` must be in ascending order. The chosen rows are counted
 * first, because the sizes of the outputs must be known. */
PyObject *table_packed(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    struct column_pack packs[COLUMNS_MAX];
    uint8_t *places[COLUMNS_MAX];
    PyObject *fields, *chosen = Py_None, *list = NULL;
    struct flow_choice choice = {0};
    uint32_t *flows = NULL;
    if (!PyArg_ParseTuple(args, "O!|O", &PyList_Type, &fields, &chosen))
        return NULL;
    Py_ssize_t count = PyList_Size(fields);
    if (count > COLUMNS_MAX)
        return PyErr_Format(PyExc_ValueError, "too many columns");
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_pack(table, PyList_GetItem(fields, i), &packs[i]))
            return NULL;
    if (chosen != Py_None && !(flows = binding_flow_numbers(chosen, &choice.count)))
        return NULL;
    choice.flows = flows;
    list = pack_places(packs, count, column_pack_rows(table, &choice), places);
    if (list) {
        Py_BEGIN_ALLOW_THREADS column_pack(table, packs, (size_t)count, &choice, places);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(flows);
    return list;
}

/* Finds the columns of the names, which must be of integers from the place `first` on. */
static bool find_integers(const struct table *table, PyObject *names, Py_ssize_t first,
                          unsigned *columns) {
    for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
        int column = table_find_column(table, PyList_GetItem(names, i));
        if (column < 0)
            return false;
        if (i >= first && table->schema->columns[column].type != TYPE_INT) {
            PyErr_Format(PyExc_ValueError, "column %U is not of integers",
                         PyList_GetItem(names, i));
            return false;
        }
        columns[i] = (unsigned)column;
    }
    return true;
}

/* time_sums(start, width, [name, ...], base_ns, bin_ns, bins): bytes with `bins` doubles per name
 * (time_sums in export.h). */
PyObject *table_time_sums(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    unsigned columns[COLUMNS_MAX];
    struct time_sums sums = {.columns = columns};
    PyObject *start, *width, *names;
    long long base_ns, bin_ns;
    Py_ssize_t bins;
    if (!PyArg_ParseTuple(args, "UUO!LLn", &start, &width, &PyList_Type, &names, &base_ns, &bin_ns,
                          &bins))
        return NULL;
    int start_column = table_find_column(table, start), width_column;
    if (start_column < 0 || (width_column = table_find_column(table, width)) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(names);
    if (count > COLUMNS_MAX || bin_ns <= 0 || bins <= 0 || bins > TIME_BINS_MAX)
        return PyErr_Format(PyExc_ValueError, "too many columns, or bins out of range");
    if (!find_integers(table, names, 0, columns))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, count * bins * (Py_ssize_t)sizeof(double));
    if (!bytes)
        return NULL;
    sums.start = (unsigned)start_column, sums.width = (unsigned)width_column;
    sums.base_ns = base_ns, sums.bin_ns = bin_ns;
    sums.bins = (size_t)bins, sums.column_count = (size_t)count;
    sums.out = (double *)(void *)PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS time_sums(table, &sums);
    Py_END_ALLOW_THREADS return bytes;
}

/* Returns (flows, bins, values) of the entries; NULL without memory. */
static PyObject *flow_entries(const struct flow_sums *each) {
    Py_ssize_t numbers = (Py_ssize_t)(each->count * sizeof(uint32_t));
    Py_ssize_t column = (Py_ssize_t)(each->count * sizeof(double));
    PyObject *values =
        PyBytes_FromStringAndSize(NULL, column * (Py_ssize_t)each->sums.column_count);
    if (!values)
        return NULL;
    for (size_t i = 0; i < each->sums.column_count; i++)
        memcpy(PyBytes_AsString(values) + (Py_ssize_t)i * column, each->values + i * each->most,
               (size_t)column);
    return Py_BuildValue("y#y#N", (const char *)each->flows, numbers, (const char *)each->in_bins,
                         numbers, values);
}

/* Computes the entries in memory of its own. */
static PyObject *flow_sums_of(const struct table *table, struct flow_sums *each) {
    const struct time_sums *sums = &each->sums;
    each->sums.out = malloc(sums->column_count * sums->bins * sizeof(double));
    each->values = malloc(sums->column_count * each->most * sizeof(double));
    each->flows = malloc(each->most * sizeof(uint32_t));
    each->in_bins = malloc(each->most * sizeof(uint32_t));
    PyObject *entries = NULL;
    bool whole = false;
    if (each->sums.out && each->values && each->flows && each->in_bins) {
        Py_BEGIN_ALLOW_THREADS whole = flow_sums(table, each);
        Py_END_ALLOW_THREADS entries = whole ? flow_entries(each) : Py_NewRef(Py_None);
    } else {
        PyErr_NoMemory();
    }
    free(each->sums.out), free(each->values), free(each->flows), free(each->in_bins);
    return entries;
}

/* flow_sums([start, width, flow, name, ...], base_ns, bin_ns, bins, most): three bytes objects, the
 * flow and the bin of each entry, and its sums, a column after the other; None if there are more
 * entries than `most` (flow_sums in export.h). */
PyObject *table_flow_sums(PyObject *self, PyObject *args) {
    const struct table *table = table_of(self);
    unsigned columns[COLUMNS_MAX];
    PyObject *names;
    long long base_ns, bin_ns;
    Py_ssize_t bins, most;
    if (!PyArg_ParseTuple(args, "O!LLnn", &PyList_Type, &names, &base_ns, &bin_ns, &bins, &most))
        return NULL;
    Py_ssize_t count = PyList_Size(names);
    if (count <= NAMED || count > COLUMNS_MAX || bin_ns <= 0 || bins <= 0 || bins > TIME_BINS_MAX)
        return PyErr_Format(PyExc_ValueError, "too few or too many columns, or bins out of range");
    if (most <= 0 || most > FLOW_SUMS_MAX)
        return PyErr_Format(PyExc_ValueError, "entries out of range");
    if (!find_integers(table, names, NAMED - 1, columns))
        return NULL;
    struct flow_sums each = {
        .sums = {.start = columns[0], .width = columns[1], .base_ns = base_ns, .bin_ns = bin_ns},
        .flow = columns[2],
        .most = (size_t)most,
    };
    each.sums.bins = (size_t)bins, each.sums.columns = columns + NAMED;
    each.sums.column_count = (size_t)(count - NAMED);
    return flow_sums_of(table, &each);
}
