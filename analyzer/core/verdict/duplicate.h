/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates of packets, made by a mirror port or by the network: rules V8 of docs/verdicts.md. */
#ifndef WIRETALE_DUPLICATE_H
#define WIRETALE_DUPLICATE_H

#include "verdict/recent_verdicts.h"

/* Returns true if the segment duplicates one of the sender's last packets (rules V8.1, V8.2); then
 * it is counted, and the caller must ignore it. Else its fingerprint is stored. `old` must be set
 * if its sequence numbers bring nothing new: no other segment can be a duplicate. */
bool take_duplicate(struct segment_context *seg, bool old);

/* The same for data [start, end) that was seen before, if its fingerprint is gone or unlike (rule
 * V8.3). `first` is the first transmission, NULL if unknown. */
bool take_late_duplicate(struct segment_context *seg, const struct unacked_segment *first,
                         int64_t start, int64_t end);

#endif
