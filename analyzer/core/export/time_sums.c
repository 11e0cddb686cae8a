/* SPDX-License-Identifier: Apache-2.0 */
/* Sums columns over time, of all flows together or of each (time_sums and flow_sums in export.h),
 * in one pass over the table. A row of the series table holds for its own bin, whose width differs
 * between flows: it is spread evenly over the bins that it overlaps. Bins of one direction do not
 * overlap, so that a table costs at most its rows plus `bins` for each direction. */
#include "export/export.h"

#include <stdbool.h>
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

/* Returns whether the row has a time; then its place in bins. */
static bool place_of(const struct time_sums *sums, const struct row *row, double *from,
                     double *to) {
    int64_t since_ns; /* exact: a double of a time since 1970 has steps of 256 ns */
    if (!row_known(row, sums->start) || !row_known(row, sums->width) ||
        __builtin_sub_overflow(row->value[sums->start], sums->base_ns, &since_ns))
        return false;
    *from = (double)since_ns / (double)sums->bin_ns;
    *to = *from + (double)row->value[sums->width] / (double)sums->bin_ns;
    return *to > *from;
}

/* Returns how many columns of the table must be read. */
static unsigned columns_read(const struct time_sums *sums) {
    unsigned columns = (sums->start > sums->width ? sums->start : sums->width) + 1;
    for (size_t i = 0; i < sums->column_count; i++)
        columns = sums->columns[i] >= columns ? sums->columns[i] + 1 : columns;
    return columns;
}

void time_sums(const struct table *table, const struct time_sums *sums) {
    struct table_cursor cursor = {0};
    struct row row;
    unsigned columns = columns_read(sums);
    double from, to;
    memset(sums->out, 0, sums->bins * sums->column_count * sizeof *sums->out);
    while (table_next_of(table, &cursor, columns, &row))
        if (place_of(sums, &row, &from, &to))
            spread(sums, &row, from, to);
}

/* Moves the sums of bins [low, high) to the entries of a flow. Returns whether there was room. */
static bool take_flow(struct flow_sums *each, uint32_t flow, size_t low, size_t high) {
    const struct time_sums *sums = &each->sums;
    for (size_t bin = low; bin < high; bin++) {
        bool empty = true;
        for (size_t i = 0; i < sums->column_count; i++)
            empty = empty && !(sums->out[i * sums->bins + bin] > 0);
        if (empty)
            continue;
        if (each->count >= each->most)
            return false;
        for (size_t i = 0; i < sums->column_count; i++) {
            double *sum = &sums->out[i * sums->bins + bin];
            each->values[i * each->most + each->count] = *sum;
            *sum = 0;
        }
        each->flows[each->count] = flow;
        each->in_bins[each->count++] = (uint32_t)bin;
    }
    return true;
}

bool flow_sums(const struct table *table, struct flow_sums *each) {
    const struct time_sums *sums = &each->sums;
    struct table_cursor cursor = {0};
    struct row row;
    unsigned columns = columns_read(sums);
    columns = each->flow >= columns ? each->flow + 1 : columns;
    size_t low = sums->bins, high = 0; /* that the flow has filled */
    int64_t flow = -1;
    double from, to;
    memset(sums->out, 0, sums->bins * sums->column_count * sizeof *sums->out);
    while (table_next_of(table, &cursor, columns, &row)) {
        if (!place_of(sums, &row, &from, &to) || to <= 0 || from >= (double)sums->bins)
            continue;
        if (row.value[each->flow] != flow) {
            if (!take_flow(each, (uint32_t)flow, low, high))
                return false;
            low = sums->bins, high = 0;
            flow = row.value[each->flow];
        }
        size_t first = from > 0 ? (size_t)from : 0;
        size_t end = to < (double)sums->bins ? (size_t)to + 1 : sums->bins;
        low = first < low ? first : low;
        high = end > high ? end : high;
        spread(sums, &row, from, to);
    }
    return take_flow(each, (uint32_t)flow, low, high);
}
