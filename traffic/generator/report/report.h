/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs read of a test. docs/traffic.md says how each figure is computed. */
#ifndef WIRETALE_REPORT_H
#define WIRETALE_REPORT_H

#include <stdbool.h>

#include "transfer/transfer.h"

struct report_style {
    const char *role; /* "send" or "receive" */
    const char *host; /* as it was given; NULL: none */
    bool json, quiet;
    char format; /* letter of -f; 0: Mbit/s and KB/s */
    FILE *out;
};

/* False, and it says so, when it could not be written. A reader that went away is none of that: it
 * has what it wanted. */
bool report_transfer(const struct transfer *transfer, const struct report_style *style);
void report_interval(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                     const struct report_style *style);

void report_json(const struct transfer *transfer, const struct report_style *style);
void report_table(const struct transfer *transfer, const struct report_style *style);

#endif
