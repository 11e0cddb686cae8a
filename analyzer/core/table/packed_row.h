/* SPDX-License-Identifier: Apache-2.0 */
/* A packed row: its length in 16 bits, so that columns that a reader does not want cost nothing,
 * one bit per column that is known, one bit per known column that is not 0, then the differences of
 * those values from the table's origins as zigzag varints. The first byte of a varint gives its
 * length, so that it is written and read at once: 7 bits per byte, and as many 0 bits below the
 * lowest 1 as bytes follow; 8 if there is no 1. A row begins a new chunk if the largest row would
 * not fit, so that a reader finds it by the same rule.
 *
 * Words of 8 bytes may be written and read past the end of a value, but never past ROW_BYTES_MAX
 * from the beginning of the row, which is reserved in one chunk. */
#ifndef WIRETALE_PACKED_ROW_H
#define WIRETALE_PACKED_ROW_H

#include "table/schema.h"

#define MASK_WORDS    (COLUMNS_MAX / 64)
#define MASK_BYTES    (MASK_WORDS * sizeof(uint64_t))
#define VARINT_MAX    10
#define LENGTH_BYTES  sizeof(uint16_t)
#define ROW_BYTES_MAX (LENGTH_BYTES + 2 * MASK_BYTES + COLUMNS_MAX * VARINT_MAX)
_Static_assert(ROW_BYTES_MAX <= UINT16_MAX, "a row's length has 16 bits");

#endif
