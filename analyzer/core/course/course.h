/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a flow beside its data: pauses, packets that pass again and again, and the FIN and
 * RST that end it. Most packets change nothing here: callers compare one field and return. */
#ifndef WIRETALE_COURSE_H
#define WIRETALE_COURSE_H

#include "rows/row_sink.h"

/* Takes a packet after `silent_ns` without any of the flow, unless it repeats an earlier one. */
void note_silence(struct flow *flow, unsigned direction, const struct packet_info *packet,
                  int64_t silent_ns, struct pool *pool);

/* Adds the rows of endings and loops of a flow that is over. */
void course_rows_add(struct row_sink *sink, const struct flow *flow);

void course_free(struct flow *flow, struct pool *pool);

#endif
