/* SPDX-License-Identifier: Apache-2.0 */
/* A column as a little-endian typed array, as JavaScript's and Python's array types read it. */
#ifndef WIRETALE_COLUMN_PACK_H
#define WIRETALE_COLUMN_PACK_H

#include "table.h"

/* Each value becomes (value - offset) / divisor (rounded towards 0 for an integer code, and bounded
 * by what that holds). Null is NaN, or the greatest number of an integer code. */
struct column_pack {
    char code;  /* b int8, B uint8, H uint16, i int32, I uint32, f float32, d float64 */
    bool delta; /* integer codes: the difference, wrapping, to the value before (the first: to 0) */
    int64_t offset;
    int64_t divisor;       /* not 0 */
    const uint32_t *flows; /* only rows of these flows, ascending; NULL for all rows */
    size_t flow_count;
};

/* Bytes of one value, 0 for an unknown code. */
size_t column_pack_size(char code);
/* Writes the values of a column that is INT, REAL, BOOL or WORD and returns their number: that of
 * the rows, without a choice of flows. With `out` NULL it only counts. */
size_t column_pack(const struct table *table, unsigned column, const struct column_pack *pack,
                   uint8_t *out);

#endif
