/* SPDX-License-Identifier: Apache-2.0 */
/* State into rows: one function for each table that has no better place. */
#ifndef WIRETALE_ROWS_H
#define WIRETALE_ROWS_H

#include "flow/reassembly.h"
#include "rows/row_sink.h"
#include "tcp/segment.h"

#define MAX_EVENTS          4000000u /* rows in all */
#define MAX_EVENTS_PER_FLOW 10000u
#define MAX_BLOCK_ROWS      4000000u /* in all */

/* event_rows.c */
/* Writes an event; `flow` is NULL for one of the capture itself. Returns its row, EVENT_NONE if a
 * bound is reached; then the event is counted. */
uint64_t event_write(struct row_writer *writer, struct flow *flow, unsigned direction,
                     const struct packet_info *packet, const struct event *event);
/* Replaces kind, place and evidence of a row, and spurious if it is set. Does nothing to
 * EVENT_NONE. */
void event_amend(struct row_sink *sink, uint64_t row, const struct event *event);

/* flow_rows.c */
/* Adds the rows of flows, directions and series of a flow that is over. `application` is WORD_NONE
 * if none was recognised; `directions` hold the columns of numbered units and are completed. */
void flow_rows_add(struct row_writer *writer, struct flow *flow, enum word end,
                   enum word application, struct row directions[static 2]);

/* datagram_rows.c */
void datagram_row_add(struct row_sink *sink, const struct datagram *datagram);

/* series_rows.c */
/* Adds the bins of a direction as rows to the group that is begun. */
void series_rows_add(struct row_sink *sink, const struct flow *flow, unsigned direction);

#endif
