/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of series of one direction, kept as its bins: what they come to is computed when they
 * are read, which most are not. */
#ifndef WIRETALE_SERIES_RECORD_H
#define WIRETALE_SERIES_RECORD_H

#include "flow/time_bins.h"
#include "table/table.h"

/* How many bits bins are kept with: 16, 32, as they are. */
enum bin_form { BINS_SMALL, BINS_NARROW, BINS_WIDE };

/* What all bins of a direction share. */
struct series_head {
    int64_t first;             /* number of the first bin on the grid */
    int64_t first_ns, last_ns; /* of the direction's packets */
    uint16_t count;            /* of the bins */
    uint8_t doublings;
    bool number;        /* of the direction */
    bool tcp;           /* its protocol */
    bool payload_known; /* for every packet */
    uint8_t form;       /* enum bin_form, which series_record_add() chooses */
};

/* Adds the direction's bins, `head->count` of them, as rows to the group that is begun. False
 * without memory. */
bool series_record_add(struct table *table, struct series_head *head, const struct time_bin *bins);

#endif
