/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of a flow as rows. Round trips are taken off here, because the least sample of the
 * whole flow is nearest to the path without queues. A clock that steps back makes spans negative:
 * they are null. */
#include "rows/rows.h"
#include "tracker/turns.h"

#define ALERT_MOST        64u                /* bytes of a record with an alert */
#define ACK_DELAY_MOST_NS INT64_C(200000000) /* the timer of Windows and BSD; Linux has 40 ms */

/* Sets a span less `rtt_ns`, if both are known. */
static void put_less(struct row *row, unsigned column, int64_t span_ns, int64_t rtt_ns) {
    row_set_if(row, column, span_ns >= 0 && rtt_ns >= 0, max64(span_ns - rtt_ns, 0));
}

/* A stall before data that repeats lost data is not seen, or its begin is not. */
static void put_stalls(struct row *row, const struct turn *turn) {
    static const unsigned columns[TURN_PLACES] = {
        [STALL_CLIENT] = turns_retransmission_client_ns,
        [STALL_NETWORK] = turns_retransmission_network_ns,
        [STALL_SERVER] = turns_retransmission_server_ns,
    };
    for (unsigned i = 0; i < TURN_PLACES; i++) {
        bool unseen = (i == STALL_CLIENT && (turn->request_repeats || turn->unsure[0])) ||
                      (i == STALL_SERVER && (turn->response_repeats || turn->unsure[1]));
        row_set_if(row, columns[i], !unseen, (int64_t)turn->stall_us[i] * 1000);
    }
}

/* Returns the RTT between capture point and server in a turn: the least one of the flow,
 * `least_ns`, unless the ACK of the request came so much later that no delayed-ACK timer explains
 * it. */
static int64_t rtt_of(const struct turn *turn, int64_t least_ns) {
    int64_t acked_ns = (int64_t)turn->acked_us * 1000;
    return least_ns >= 0 && acked_ns > least_ns + ACK_DELAY_MOST_NS ? acked_ns : least_ns;
}

/* Sets the pauses within the request or response, which took `span_ns`, if they are known. */
static void put_pause(struct row *row, unsigned column, const struct turn *turn, unsigned response,
                      int64_t span_ns) {
    row_set_if(row, column, span_ns >= 0 && !turn->unsure[response],
               min64((int64_t)turn->paused_us[response] * 1000, span_ns));
}

static void put_times(struct row *row, const struct tcp_connection *connection,
                      const struct turn_log *log, const struct turn *turn) {
    int64_t server_rtt = rtt_of(turn, turn_rtt(connection, log->requester));
    int64_t client_rtt = turn_rtt(connection, !log->requester);
    bool answered = turn->answer_ns >= 0;
    row_set(row, turns_start_ns, turn->start_ns);
    row_set_if(row, turns_request_ns, turn->request_ns >= 0, turn->request_ns);
    row_set_if(row, turns_network_ns, answered && server_rtt >= 0,
               min64(server_rtt, turn->answer_ns));
    put_less(row, turns_server_ns, turn->response_repeats ? -1 : turn->answer_ns, server_rtt);
    row_set_if(row, turns_response_ns, answered && turn->response_ns >= 0, turn->response_ns);
    put_less(row, turns_pause_ns, turn->request_repeats ? -1 : turn->pause_ns, client_rtt);
    put_pause(row, turns_request_pause_ns, turn, 0, turn->request_ns);
    put_pause(row, turns_response_pause_ns, turn, 1, answered ? turn->response_ns : -1);
    row_set_if(row, turns_client_network_ns, turn->pause_ns >= 0 && client_rtt >= 0,
               min64(client_rtt, turn->pause_ns));
    put_stalls(row, turn);
}

/* Returns the time, us, for which a TLS server had nothing to send before the alert that closes the
 * connection (RFC 8446 section 6.1): the last bytes before its FIN. It is no part of a response. */
static uint32_t closing_pause_us(const struct flow *flow, const struct turn_log *log) {
    const struct tcp_stream *responder = &flow->tcp.streams[!log->requester];
    bool closes = responder->fin_seen && responder->last_payload <= ALERT_MOST &&
                  log->last_pause_frame == responder->last_data_frame;
    bool is_tls = flow->application && flow->application->protocol == WORD_TLS;
    return closes && is_tls ? log->last_pause_us : 0;
}

static void add_turn(struct row_sink *sink, const struct flow *flow, uint32_t number) {
    const struct turn_log *log = flow->tcp.turns;
    struct turn *turn = &log->turns[number];
    if (number + 1 == log->count && turn->response_ns >= 0) {
        int64_t us = min64(closing_pause_us(flow, log), turn->paused_us[1]);
        turn->paused_us[1] -= (uint32_t)us;
        turn->response_ns = max64(turn->response_ns - us * 1000, 0);
    }
    struct row row;
    row_clear(&row);
    row_set(&row, turns_flow, flow->number);
    row_set(&row, turns_direction, log->requester);
    row_set(&row, turns_turn, number);
    row_set_if(&row, turns_first_frame, turn->first_frame, turn->first_frame);
    row_set_if(&row, turns_last_frame, turn->last_frame, turn->last_frame);
    row_set(&row, turns_request_bytes, (int64_t)turn->request_bytes);
    row_set_if(&row, turns_response_bytes, turn->answer_ns >= 0, (int64_t)turn->response_bytes);
    if (!log->untimed)
        put_times(&row, &flow->tcp, log, turn);
    add_row(sink, TABLE_turns, &row);
}

void turn_rows_add(struct row_sink *sink, const struct flow *flow) {
    const struct turn_log *log = flow->key.protocol == IP_TCP ? flow->tcp.turns : NULL;
    if (!log || exchange_of(&flow->tcp) != WORD_TURNS)
        return;
    sink->turns_dropped += log->dropped;
    for (uint32_t i = 0; i < log->count; i++) {
        if (row_sink_rows(sink, TABLE_turns) < MAX_TURN_ROWS)
            add_turn(sink, flow, i);
        else
            sink->turns_dropped++;
    }
}
