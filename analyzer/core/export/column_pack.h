/* SPDX-License-Identifier: Apache-2.0 */
/* Packs columns as little-endian typed arrays for JavaScript and Python. */
#ifndef WIRETALE_COLUMN_PACK_H
#define WIRETALE_COLUMN_PACK_H

#include "table/table.h"

/* The format of a packed column. Each value becomes (value - offset) / divisor, rounded towards 0
 * and clamped for an integer code. Null is NaN, or the maximum of an integer code. */
struct column_pack {
    unsigned column; /* index of a column of type INT, REAL, BOOL or WORD */
    char code;       /* b int8, B uint8, H uint16, i int32, I uint32, f float32, d float64 */
    bool delta; /* integer codes: wrapping difference to the previous value (the first: to 0) */
    int64_t offset;
    int64_t divisor; /* must not be 0 */
};

/* The rows of some flows, in ascending order; NULL chooses all rows. */
struct flow_choice {
    const uint32_t *flows;
    size_t count;
};

/* Returns the bytes per value, 0 if the code is unknown. */
size_t column_pack_size(char code);
/* Returns the number of chosen rows. */
size_t column_pack_rows(const struct table *table, const struct flow_choice *choice);
/* Writes the chosen rows of `count` columns (at most COLUMNS_MAX), each to its own output, in one
 * pass over the table. */
void column_pack(const struct table *table, const struct column_pack *packs, size_t count,
                 const struct flow_choice *choice, uint8_t *const *out);

#endif
