/* SPDX-License-Identifier: Apache-2.0 */
/* Sums columns over time (time_sums in export.h), in one pass over the table. A row of the series
 * table holds for its own bin, whose width differs between flows: it is spread evenly over the bins
 * that it overlaps. Bins of one direction do not overlap, so that a table costs at most its rows
 * plus `bins` for each direction. */
#include "export/export.h"

#include <string.h>

/* The share of a row in each bin that it overlaps is added to every sum. */
static void spread(const struct time_sums *sums, const struct row *row, double from, double to) {
    double last = (double)sums->bins;
    from = from < 0 ? 0 : from;
    double end = to > last ? last : to;
    if (!(from < end))
        return;
    double whole = to - from;
    for (size_t bin = (size_t)from; bin < sums->bins && (double)bin < end; bin++) {
        double begin = (double)bin > from ? (double)bin : from;
        double stop = (double)(bin + 1) < end ? (double)(bin + 1) : end;
        for (size_t i = 0; i < sums->column_count; i++)
            if (row_known(row, sums->columns[i]))
                sums->out[i * sums->bins + bin] +=
                    (double)row->value[sums->columns[i]] * (stop - begin) / whole;
    }
}

void time_sums(const struct table *table, const struct time_sums *sums) {
    struct table_cursor cursor = {0};
    struct row row;
    unsigned columns = (sums->start > sums->width ? sums->start : sums->width) + 1;
    for (size_t i = 0; i < sums->column_count; i++)
        columns = sums->columns[i] >= columns ? sums->columns[i] + 1 : columns;
    memset(sums->out, 0, sums->bins * sums->column_count * sizeof *sums->out);
    while (table_next_of(table, &cursor, columns, &row)) {
        if (!row_known(&row, sums->start) || !row_known(&row, sums->width))
            continue;
        int64_t since_ns; /* exact: a double of a time since 1970 has steps of 256 ns */
        if (__builtin_sub_overflow(row.value[sums->start], sums->base_ns, &since_ns))
            continue;
        double from = (double)since_ns / (double)sums->bin_ns;
        double width = (double)row.value[sums->width] / (double)sums->bin_ns;
        if (width > 0)
            spread(sums, &row, from, from + width);
    }
}
