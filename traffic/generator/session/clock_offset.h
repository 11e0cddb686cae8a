/* SPDX-License-Identifier: Apache-2.0 */
/* The offset between the clocks of both hosts, which one-way delays need. */
#ifndef WIRETALE_CLOCK_OFFSET_H
#define WIRETALE_CLOCK_OFFSET_H

#include "transfer/transfer.h"

/* Measures the offset of the clocks, as the initiator of a transfer over UDP: before the start, and
 * when a direction has ended. Each returns false if the peer did not take a line. */
bool clock_measure_begin(struct transfer *transfer);
bool clock_measure_end(struct transfer *transfer);
/* Without a second measurement: widens the error by the drift since the start. */
void clock_estimate_end(struct transfer *transfer);
/* Returns bounds of the offset over the time between two measurements. */
struct clock_offset clock_combine(const struct clock_offset *begin, const struct clock_offset *end,
                                  uint64_t elapsed_ns);
/* Replaces the offset at the begin by that over the whole transfer in the delays of a report. */
void clock_correct(const struct transfer *transfer, struct stream_report *report);

#endif
