/* SPDX-License-Identifier: Apache-2.0 */
/* The series of one direction, stored as its bins: rates are computed when rows are read,
 * because most rows never are. */
#ifndef WIRETALE_SERIES_RECORD_H
#define WIRETALE_SERIES_RECORD_H

#include "flow/time_bins.h"
#include "table/table.h"

/* Bits per number: 16, 32, or as in struct time_bin. */
enum bin_form { BINS_SMALL, BINS_NARROW, BINS_WIDE };

/* Fields that all bins of a direction share. */
struct series_head {
    int64_t first;             /* number of the first bin on the grid */
    int64_t first_ns, last_ns; /* ns; of the direction's packets */
    uint16_t count;            /* number of bins */
    uint8_t doublings;
    bool number;        /* 0 or 1: the direction */
    bool tcp;           /* whether the protocol is TCP */
    bool payload_known; /* for each packet */
    uint8_t form;       /* enum bin_form, which series_record_add() sets */
};

/* Adds `head->count` bins of a direction as rows to the current group. Returns false without
 * memory. */
bool series_record_add(struct table *table, struct series_head *head, const struct time_bin *bins);

#endif
