/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas as data, for the code that writes tables. */
#include "table/schema.h"

#define X(name, type, unit, meaning) {#name, unit, meaning, TYPE_##type},
static const struct column interfaces_columns[] = {INTERFACES_COLUMNS(X)};
static const struct column flows_columns[] = {FLOWS_COLUMNS(X)};
static const struct column directions_columns[] = {DIRECTIONS_COLUMNS(X)};
static const struct column events_columns[] = {EVENTS_COLUMNS(X)};
static const struct column series_columns[] = {SERIES_COLUMNS(X)};
static const struct column datagrams_columns[] = {DATAGRAMS_COLUMNS(X)};
static const struct column blocks_columns[] = {BLOCKS_COLUMNS(X)};
static const struct column packets_columns[] = {PACKETS_COLUMNS(X)};
static const struct column findings_columns[] = {FINDINGS_COLUMNS(X)};
#undef X

const struct schema schemas[TABLE_COUNT] = {
#define X(name, columns, meaning)                                                                  \
    {#name, meaning, name##_columns, sizeof name##_columns / sizeof *name##_columns},
    TABLES(X)
#undef X
};

#define X(name, columns, meaning)                                                                  \
    _Static_assert(sizeof name##_columns / sizeof *name##_columns <= COLUMNS_MAX, #name);
TABLES(X)
#undef X
