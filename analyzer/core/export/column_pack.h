/* SPDX-License-Identifier: Apache-2.0 */
/* A column as a little-endian typed array, as JavaScript's and Python's array types read it. */
#ifndef WIRETALE_COLUMN_PACK_H
#define WIRETALE_COLUMN_PACK_H

#include "table/table.h"

/* Each value becomes (value - offset) / divisor (rounded towards 0 for an integer code, and bounded
 * by what that holds). Null is NaN, or the greatest number of an integer code. */
struct column_pack {
    unsigned column; /* one that is INT, REAL, BOOL or WORD */
    char code;       /* b int8, B uint8, H uint16, i int32, I uint32, f float32, d float64 */
    bool delta; /* integer codes: the difference, wrapping, to the value before (the first: to 0) */
    int64_t offset;
    int64_t divisor; /* not 0 */
};

/* The rows of some flows, ascending; with NULL all rows. */
struct flow_choice {
    const uint32_t *flows;
    size_t count;
};

/* Bytes of one value, 0 for an unknown code. */
size_t column_pack_size(char code);
/* How many rows of the table are chosen. */
size_t column_pack_rows(const struct table *table, const struct flow_choice *choice);
/* Writes the values of `count` (at most COLUMNS_MAX) columns of these rows, each to its place, in
 * one pass over the table. */
void column_pack(const struct table *table, const struct column_pack *packs, size_t count,
                 const struct flow_choice *choice, uint8_t *const *out);

#endif
