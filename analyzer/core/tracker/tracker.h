/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the TCP analysis: processes segments in capture order. The caller fills the context
 * (tcp/segment.h), and counts the packet in seg->sender->packets and segment_max, before. */
#ifndef WIRETALE_TRACKER_H
#define WIRETALE_TRACKER_H

#include "tcp/segment.h"

/* Processes a segment's header and data. Returns the bytes of its direction in flight then, -1 if
 * unknown. */
int64_t track_segment(struct segment_context *seg);

#endif
