/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a flow beside its data: pauses, packets that pass again and again, and the FIN and
 * RST that end it. Most packets change nothing here: callers compare one field and return. */
#ifndef WIRETALE_COURSE_H
#define WIRETALE_COURSE_H

#include "rows/row_sink.h"

/* Takes the first FIN and the first RST of a direction; must be called before the packet is
 * counted. */
void note_ending(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                 const struct packet_info *packet, struct pool *pool);

/* Takes new payload of a direction after the other end sent a FIN or RST. */
void note_late_data(struct flow *flow, unsigned direction, const struct packet_info *packet);

/* Takes a packet whose TTL is below the greatest of its direction. */
void note_pass(struct flow *flow, unsigned direction, const struct packet_info *packet,
               struct pool *pool);

/* Takes a packet after `silent_ns` without any of the flow, unless it repeats an earlier one. */
void note_silence(struct flow *flow, unsigned direction, const struct packet_info *packet,
                  int64_t silent_ns);

/* Adds the rows of endings and loops of a flow that is over. */
void course_rows_add(struct row_sink *sink, const struct flow *flow);

void course_free(struct flow *flow, struct pool *pool);

#endif
