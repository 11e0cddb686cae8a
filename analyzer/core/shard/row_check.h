/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an analysis could have written a row, whose bytes may come from another machine. Readers
 * of tables rely on these rules, so that a row which breaks them must not enter a table. */
#ifndef WIRETALE_ROW_CHECK_H
#define WIRETALE_ROW_CHECK_H

#include "table/table.h"

/* What a row of one table must have: columns that are never null, and the range of each number. */
struct row_rules {
    enum table_number number;
    uint64_t known[(COLUMNS_MAX + 63) / 64];
    int64_t least[COLUMNS_MAX], most[COLUMNS_MAX];
};

/* `interface_count` is the number of input interfaces. */
void row_rules_make(struct row_rules *rules, enum table_number number, uint32_t interface_count);
bool row_is_valid(const struct row_rules *rules, const struct row *row);

#endif
