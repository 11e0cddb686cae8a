/* SPDX-License-Identifier: Apache-2.0 */
/* State into rows: one function for each table that has no better place. */
#ifndef WIRETALE_ROWS_H
#define WIRETALE_ROWS_H

#include "flow/reassembly.h"
#include "quic/quic.h"
#include "rows/row_sink.h"
#include "tcp/segment.h"

#define MAX_EVENTS          4000000u /* rows in all */
#define MAX_EVENTS_PER_FLOW 10000u
#define MAX_BLOCK_ROWS      4000000u /* in all */
#define MAX_EXCHANGE_ROWS   4000000u /* in all */

/* event_rows.c */
/* Keeps an event of a flow, or adds the row of one of the capture itself, without a flow. Returns
 * what is kept, NULL if a bound is reached; then the event is counted. */
struct flow_event *event_write(struct row_writer *writer, struct flow *flow, unsigned direction,
                               const struct packet_info *packet, const struct event *event);
/* Adds the rows of the events of a flow that is over. */
void event_rows_add(struct row_sink *sink, struct flow *flow);
/* Frees the events of a flow. */
void events_free(struct row_writer *writer, struct flow *flow);

/* How a flow ended. */
struct flow_end {
    enum word end;  /* flows.end */
    int64_t now_ns; /* the clock of the capture */
};

/* flow_rows.c */
/* Adds the rows of flows, directions and series of a flow that is over. `application` is WORD_NONE
 * if none was recognized; `directions` hold the columns of numbered units and are completed. */
void flow_rows_add(struct row_writer *writer, struct flow *flow, const struct flow_end *end,
                   enum word application, struct row directions[static 2]);
/* Adds a row of flows with the ends and paths alone. */
void flow_ends_add(struct row_sink *sink, const struct flow *flow);
/* Returns the word of an IP protocol; WORD_OTHER_IP if it is not decoded. */
enum word protocol_word(uint8_t number);

/* wait_rows.c */
/* Adds the longest waits of a flow that is over, of which these are the complete rows of both
 * directions and their slowest packets. */
void wait_rows_add(struct row_sink *sink, const struct flow *flow,
                   const struct row directions[static 2], const struct slowest slowest[static 2]);

/* time_rows.c */
/* Returns whether the time of the flow is accounted: packets of TCP passed in both directions. */
static inline bool is_time_known(const struct flow *flow) {
    return flow->key.protocol == IP_TCP && flow->timed && flow->directions[0].packets &&
           flow->directions[1].packets;
}
/* Sets what the sender of a direction that was answered waited for. */
void put_sender_times(struct row *row, const struct tcp_connection *connection,
                      const struct tcp_stream *stream);
/* Adds the spans of a flow that is over, if they are wanted. */
void time_rows_add(struct row_sink *sink, const struct flow *flow);

/* application_rows.c */
/* Sets a column to a frame, unless it is 0. */
static inline void put_frame(struct row *row, unsigned column, uint64_t frame) {
    row_set_if(row, column, frame, (int64_t)frame);
}
/* Adds the row of the handshake of a flow that is over. */
void application_rows_add(struct row_sink *sink, const struct flow *flow);

/* echo_rows.c */
/* Adds the row of an echo request that was answered or given up. `end_ns` is the time of the last
 * packet that an answer could have been, TIME_UNKNOWN if none came for long. */
void echo_row_add(const struct row_writer *writer, const struct flow *flow,
                  const struct echo_request *request, int64_t end_ns);

/* judged.c */
/* Counts a flow that is over, of which these are the complete rows of both directions.
 * `application` is as in flow_rows_add(). */
void judged_count(struct judged_sums *sums, const struct flow *flow, enum word application,
                  const struct row directions[static 2], bool has_handshake_rtt);

/* quic_rows.c */
/* Adds the row of a QUIC handshake. */
void quic_row_add(struct row_sink *sink, const struct flow *flow,
                  const struct quic_summary *summary);

/* datagram_rows.c */
/* Adds the row of a datagram that is over. */
void datagram_row_add(struct row_sink *sink, const struct datagram *datagram);

/* series_rows.c */
/* The series of one direction, stored as its bins: rates are computed when rows are read,
 * because most rows never are. */

/* Fields that all bins of a direction share. */
struct series_head {
    int64_t first;             /* number of the first bin on the grid */
    int64_t first_ns, last_ns; /* ns; of the direction's packets */
    uint16_t count;            /* number of bins */
    uint8_t doublings;
    bool number;        /* 0 or 1: the direction */
    bool tcp;           /* whether the protocol is TCP */
    bool payload_known; /* for each packet */
    bool small;         /* each is a struct small_bin; series_record_add() sets it */
};

/* Adds `head->count` bins of a direction as rows to the current group. Returns false without
 * memory. */
bool series_record_add(struct table *table, struct series_head *head, const struct time_bin *bins);

/* Adds the bins of a direction as rows to the group that is begun. */
void series_rows_add(struct row_sink *sink, const struct flow *flow, unsigned direction);

/* exchange_rows.c */
/* Adds the exchanges of a TCP flow that is over: its handshake, and its turns if it alternates
 * (flows.exchange). */
void exchange_rows_add(struct row_sink *sink, const struct flow *flow, const struct flow_end *end);
/* Adds the row of a question that was answered or given up. */
void query_row_add(const struct row_writer *writer, const struct flow *flow,
                   const struct dns_query *query, const struct flow_end *end);

#endif
