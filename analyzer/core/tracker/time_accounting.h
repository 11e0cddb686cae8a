/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks a direction's time down by limiting factor (columns limit_*_ns of `directions`). */
#ifndef WIRETALE_TIME_ACCOUNTING_H
#define WIRETALE_TIME_ACCOUNTING_H

#include "tcp/segment.h"

#define ACCOUNTING_MIN_PACKETS 8u /* a shorter direction has no shares, and costs no memory */

/* Must be called for each segment once its verdicts are known. Accounts the time since the last
 * segment, in both directions, after the segment was processed and left `flight` bytes of its
 * direction in flight (-1 if unknown: it is not accounted). */
void account_segment(const struct segment_context *seg, int64_t flight);

#endif
