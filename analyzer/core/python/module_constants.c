/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the module that need no capture: the schemas of the tables, their words, formats of
 * other programs, and the versions of the libraries. */
#include <lz4.h>
#include <pcap.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include "base/vocabulary.h"
#include "format/capture_file.h"
#include "python/binding.h"

/* schemas(): [(table, meaning, [(column, type, unit, meaning, nullable), ...]), ...], in the order
 * of TABLES. */
PyObject *module_schemas(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < TABLE_COUNT; i++)
        if (!binding_append(list, Py_BuildValue("(ssN)", schemas[i].name, schemas[i].meaning,
                                                table_columns_of(&schemas[i]))))
            Py_CLEAR(list);
    return list;
}

PyObject *module_libraries(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    char lz4[16];
    int number = LZ4_versionNumber();
    snprintf(lz4, sizeof lz4, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return Py_BuildValue("{ssssssss}", "libpcap", pcap_lib_version(), "zlib", zlibVersion(), "zstd",
                         ZSTD_versionString(), "lz4", lz4);
}

/* foreign_format(first bytes): (name, command) of a known format that must be converted first. */
PyObject *module_foreign_format(PyObject *Py_UNUSED(module), PyObject *argument) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(argument, &bytes, &size))
        return NULL;
    const struct foreign_format *foreign = foreign_format_of((const uint8_t *)bytes, (size_t)size);
    if (!foreign)
        Py_RETURN_NONE;
    return Py_BuildValue("(ss)", foreign->name, foreign->command);
}

/* vocabulary(): index i is the word of number i. */
PyObject *module_vocabulary(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < WORD_COUNT; i++)
        if (!binding_append(list, PyUnicode_InternFromString(word_text((enum word)i))))
            Py_CLEAR(list);
    return list;
}
