/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges as rows: handshakes of TCP, turns, questions of DNS.
 *
 * Round trips are taken off the times of turns here, because the least sample of the whole flow is
 * nearest to the path without queues. A clock that steps back makes spans negative: they are null.
 */
#include <stdio.h>

#include "rows/rows.h"
#include "tracker/turns.h"

#define ALERT_MOST        64u                 /* bytes of a record with an alert */
#define ACK_DELAY_MOST_NS INT64_C(200000000)  /* the timer of Windows and BSD; Linux has 40 ms */
#define DUE_NS            INT64_C(5000000000) /* after which an answer is missing */
#define ATTEMPTS_DUE      3u /* so many requests without an answer show that, too */
#define STATUS_FINAL      200u
#define STATUS_UNCHANGED  304u
#define STATUS_TEXT_MAX   8

/* Sets a span less `rtt_ns`, if both are known. */
static void put_less(struct row *row, unsigned column, int64_t span_ns, int64_t rtt_ns) {
    row_set_if(row, column, span_ns >= 0 && rtt_ns >= 0, max64(span_ns - rtt_ns, 0));
}

/* A stall before data that repeats lost data is not seen, or its begin is not. */
static void put_stalls(struct row *row, const struct turn *turn) {
    static const unsigned columns[TURN_PLACES] = {
        [STALL_CLIENT] = exchanges_retransmission_client_ns,
        [STALL_NETWORK] = exchanges_retransmission_network_ns,
        [STALL_SERVER] = exchanges_retransmission_server_ns,
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
    row_set(row, exchanges_asked_ns, turn->start_ns);
    row_set_if(row, exchanges_request_ns, turn->request_ns >= 0, turn->request_ns);
    row_set_if(row, exchanges_network_ns, answered && server_rtt >= 0,
               min64(server_rtt, turn->answer_ns));
    put_less(row, exchanges_server_ns, turn->response_repeats ? -1 : turn->answer_ns, server_rtt);
    row_set_if(row, exchanges_response_ns, answered && turn->response_ns >= 0, turn->response_ns);
    put_less(row, exchanges_pause_ns, turn->request_repeats ? -1 : turn->pause_ns, client_rtt);
    put_pause(row, exchanges_request_pause_ns, turn, 0, turn->request_ns);
    put_pause(row, exchanges_response_pause_ns, turn, 1, answered ? turn->response_ns : -1);
    row_set_if(row, exchanges_client_network_ns, turn->pause_ns >= 0 && client_rtt >= 0,
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

/* --- all kinds -------------------------------------------------------------------------------- */

/* Begins the row of an exchange that the sender of a direction began. */
static void begin_row(struct row_sink *sink, struct row *row, const struct flow *flow,
                      enum word kind, unsigned direction) {
    unsigned client = flow_end(flow, direction);
    row_clear(row);
    row_set(row, exchanges_flow, flow->number);
    row_set(row, exchanges_direction, direction);
    row_set(row, exchanges_kind, kind);
    row_set(row, exchanges_capture, flow->first_capture);
    row_set(row, exchanges_client,
            add_address(sink, flow->key.ip_version, flow->key.address[client]));
    row_set(row, exchanges_server,
            add_address(sink, flow->key.ip_version, flow->key.address[!client]));
    row_set(row, exchanges_attempts, 1);
}

static void add_exchange(struct row_sink *sink, const struct row *row) {
    if (row_sink_rows(sink, TABLE_exchanges) < MAX_EXCHANGE_ROWS)
        row_sink_add(sink, TABLE_exchanges, row);
    else
        sink->exchanges_dropped++;
}

/* Returns what came of a request without an answer, if neither end closed the connection. */
static enum word outcome_of_silence(const struct flow_end *end, int64_t asked_ns, bool timed,
                                    uint64_t attempts) {
    if (attempts >= ATTEMPTS_DUE || !end || end->end == WORD_IDLE || end->end == WORD_PORTS_REUSED)
        return WORD_UNANSWERED;
    bool due = timed && end->end == WORD_END_OF_CAPTURE && end->now_ns - asked_ns >= DUE_NS;
    return due ? WORD_UNANSWERED : WORD_CUT_OFF;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Whether the client said its last words: it had received the FIN of the server, or closed right
 * behind them. Its first words are none if the server closed first: that was the answer. */
static bool is_farewell(const struct flow *flow, const struct turn *turn, bool client_first) {
    unsigned client = flow->tcp.turns->requester;
    const struct tcp_stream *requester = &flow->tcp.streams[client];
    const struct tcp_stream *responder = &flow->tcp.streams[!client];
    int64_t closed_ns = client_first ? flow->tcp.time.fin_ns : flow->directions[client].last_ns;
    bool refused = turn == flow->tcp.turns->turns && !client_first && responder->fin_seen;
    bool closed = (requester->fin_seen || requester->resets) && !responder->resets && !refused;
    return turn->after_fin ||
           (closed && flow->timed && closed_ns - requester->last_data_ns <= FAREWELL_NS);
}

/* Returns what came of a turn without a response. Who closed first decides. */
static enum word outcome_of_turn(const struct flow *flow, const struct turn *turn,
                                 const struct flow_end *end) {
    unsigned client = flow->tcp.turns->requester;
    const struct tcp_stream *requester = &flow->tcp.streams[client];
    const struct tcp_stream *responder = &flow->tcp.streams[!client];
    bool client_first = requester->fin_seen && flow->tcp.fin_by == client && !flow->tcp.reset_first;
    if (is_farewell(flow, turn, client_first))
        return WORD_FAREWELL;
    if (client_first)
        return WORD_ABANDONED;
    if (responder->fin_seen || responder->resets)
        return responder->resets ? WORD_RESET : WORD_CLOSED;
    if (requester->resets || requester->fin_seen)
        return WORD_ABANDONED;
    return outcome_of_silence(end, requester->last_data_ns, flow->timed, 1);
}

/* Whether the packet of a message is of this turn, and not of the next one. */
static bool has_packet(const struct turn_log *log, uint32_t number, uint64_t frame) {
    const struct turn *turn = &log->turns[number];
    return frame && frame >= turn->first_frame &&
           (number + 1 == log->count || frame < log->turns[number + 1].first_frame);
}

static void put_status(struct row_sink *sink, struct row *row, unsigned status) {
    char text[STATUS_TEXT_MAX];
    snprintf(text, sizeof text, "%u", status);
    row_set_text(sink, row, exchanges_code, text);
    row_set(row, exchanges_outcome, status < STATUS_ERROR ? WORD_ANSWERED : WORD_ERROR);
}

/* Whether the length that a response announces is that of its body (RFC 9110 section 8.6). */
static bool has_content(const struct http_request *http) {
    return *http->method && strcmp(http->method, "HEAD") != 0 && http->status != STATUS_UNCHANGED;
}

/* The status line is an answer even if ACKs do not show that it follows the request. */
static void put_http(struct row_sink *sink, struct row *row, const struct http_request *http) {
    int64_t answered_ns = http->answered.time_ns;
    bool timed = answered_ns != TIME_UNKNOWN && row_known(row, exchanges_asked_ns);
    row_set(row, exchanges_kind, WORD_HTTP);
    row_set_text(sink, row, exchanges_type, http->method);
    row_set_text(sink, row, exchanges_name, http->host);
    row_set_if(row, exchanges_expects_continue, http->requested.frame, http->expects);
    row_set_if(row, exchanges_upgrade_header, http->requested.frame && http->keyed, http->upgrades);
    row_set_if(row, exchanges_announced_bytes, http->announced, (int64_t)http->announced);
    if (!http->status)
        return;
    put_status(sink, row, http->status);
    row_set_if(row, exchanges_response_announced_bytes, http->answer_announced && has_content(http),
               (int64_t)http->answer_announced);
    if (row_known(row, exchanges_answered_frame))
        return;
    put_frame(row, exchanges_answered_frame, http->answered.frame);
    row_set_if(row, exchanges_answered_ns, timed, answered_ns);
    if (timed)
        row_set(row, exchanges_waited_ns, answered_ns - row->value[exchanges_asked_ns]);
}

static void put_tls(struct row_sink *sink, struct row *row, const struct flow *flow) {
    const struct tls_handshake *tls = &flow->application->tls;
    char alert[TLS_TEXT_MAX];
    row_set(row, exchanges_kind, WORD_TLS);
    row_set_text(sink, row, exchanges_name, flow->application->server_name);
    if (!tls->alerted)
        return;
    tls_alert_text(tls->alert, alert);
    row_set_text(sink, row, exchanges_code, tls->alert_hidden ? "encrypted" : alert);
    row_set(row, exchanges_outcome, WORD_ERROR);
}

/* Names the turn that has the messages that were read. */
static void put_application(struct row_sink *sink, struct row *row, const struct flow *flow,
                            uint32_t number) {
    const struct application *application = flow->application;
    const struct turn_log *log = flow->tcp.turns;
    if (!application)
        return;
    const struct http_request *http = &application->http;
    const struct tls_handshake *tls = &application->tls;
    if (application->protocol == WORD_HTTP &&
        has_packet(log, number,
                   http->requested.frame ? http->requested.frame : http->answered.frame))
        put_http(sink, row, http);
    if (application->protocol == WORD_TLS &&
        has_packet(log, number, tls->hello.frame ? tls->hello.frame : tls->answer.frame))
        put_tls(sink, row, flow);
}

/* Returns when the wait for an answer that never came ended; -1 if the connection stayed open. */
static int64_t until_of(const struct flow *flow, const struct turn *turn,
                        const struct flow_end *end) {
    int64_t closed_ns = flow->tcp.time.fin_ns;
    if (closed_ns >= turn->start_ns)
        return closed_ns;
    bool open = end->end == WORD_END_OF_CAPTURE && !flow->tcp.reset && !closed_ns;
    return open ? -1 : flow->last_ns;
}

/* Whether the response to a request may have content: not to HEAD and CONNECT. That of the first
 * turn is known only if it was read. */
static bool may_have_content(const struct flow *flow, const struct turn *turn) {
    const struct application *application = flow->application;
    if (turn != flow->tcp.turns->turns)
        return !turn->asks_header;
    if (!application || application->protocol != WORD_HTTP)
        return false;
    const char *method = application->http.method;
    return method[0] && strcmp(method, "HEAD") != 0 && strcmp(method, "CONNECT") != 0;
}

/* What the headers of both messages say about their lengths. */
static void put_lengths(struct row *row, const struct flow *flow, const struct turn *turn) {
    bool until_close = turn->response_length == HTTP_UNTIL_CLOSE;
    bool known = turn->answer_ns >= 0 && turn->response_length && may_have_content(flow, turn);
    row_set_if(row, exchanges_announced_bytes, turn->request_length, turn->request_length);
    row_set_if(row, exchanges_response_announced_bytes, known && !until_close,
               turn->response_length);
    row_set_if(row, exchanges_response_until_close, known, until_close);
}

/* How the connection closed behind the last response: not by a RST, which `endings` has. */
static void put_close(struct row *row, const struct flow *flow, const struct turn *turn) {
    const struct tcp_connection *connection = &flow->tcp;
    const struct tcp_stream *responder = &connection->streams[!connection->turns->requester];
    bool closed = connection->streams[0].fin_seen || connection->streams[1].fin_seen;
    if (turn->answer_ns < 0 || !closed || connection->reset_first)
        return;
    int64_t after_ns = connection->time.fin_ns - responder->last_data_ns;
    row_set(row, exchanges_closed_by, connection->fin_by);
    row_set_if(row, exchanges_closed_ns,
               flow->timed && !connection->turns->untimed && after_ns >= 0, after_ns);
}

static void put_turn(struct row *row, const struct flow *flow, const struct turn *turn,
                     const struct flow_end *end) {
    bool answered = turn->answer_ns >= 0, timed = flow->timed && !flow->tcp.turns->untimed;
    row_set_if(row, exchanges_asked_frame, turn->first_frame, turn->first_frame);
    row_set_if(row, exchanges_last_frame, turn->last_frame, turn->last_frame);
    row_set_if(row, exchanges_answered_frame, answered && turn->answer_frame, turn->answer_frame);
    row_set(row, exchanges_request_bytes, (int64_t)turn->request_bytes);
    row_set_if(row, exchanges_response_bytes, answered, (int64_t)turn->response_bytes);
    put_lengths(row, flow, turn);
    if (!timed)
        return;
    put_times(row, &flow->tcp, flow->tcp.turns, turn);
    row_set_if(row, exchanges_answered_ns, answered, turn->answered_ns);
    int64_t until_ns = answered ? turn->answered_ns : until_of(flow, turn, end);
    row_set_if(row, exchanges_waited_ns, until_ns >= turn->start_ns, until_ns - turn->start_ns);
}

/* The first row of a flow has the numbers of its addresses, which the others share. */
static void add_turn(struct row_sink *sink, const struct flow *flow, uint32_t number,
                     struct row *first, const struct flow_end *end) {
    const struct turn_log *log = flow->tcp.turns;
    struct turn *turn = &log->turns[number];
    if (number + 1 == log->count && turn->response_ns >= 0) {
        int64_t us = min64(closing_pause_us(flow, log), turn->paused_us[1]);
        turn->paused_us[1] -= (uint32_t)us;
        turn->response_ns = max64(turn->response_ns - us * 1000, 0);
    }
    struct row row = *first;
    row_set(&row, exchanges_turn, number);
    row_set(&row, exchanges_outcome,
            turn->answer_ns >= 0 ? WORD_ANSWERED : outcome_of_turn(flow, turn, end));
    put_turn(&row, flow, turn, end);
    put_application(sink, &row, flow, number);
    if (number + 1 == log->count)
        put_close(&row, flow, turn);
    if (turn->status >= STATUS_FINAL && !row_known(&row, exchanges_code))
        put_status(sink, &row, turn->status);
    add_exchange(sink, &row);
}

static void add_turns(struct row_sink *sink, const struct flow *flow, const struct flow_end *end) {
    const struct turn_log *log = flow->tcp.turns;
    struct row first;
    begin_row(sink, &first, flow, WORD_TURN, log->requester);
    sink->exchanges_dropped += log->dropped;
    for (uint32_t i = 0; i < log->count; i++)
        add_turn(sink, flow, i, &first, end);
}

/* Whether the client sent alone, and closed first and right behind its data. */
static bool only_said_farewell(const struct flow *flow, unsigned client) {
    const struct tcp_stream *requester = &flow->tcp.streams[client];
    return requester->fin_seen && flow->tcp.fin_by == client && !flow->tcp.reset_first &&
           !flow->tcp.streams[!client].unique_bytes && flow->timed &&
           flow->tcp.time.fin_ns - requester->last_data_ns <= FAREWELL_NS;
}

/* An HTTP request of a flow without turns: of its times, those of the messages are known. */
static void add_request(struct row_sink *sink, const struct flow *flow) {
    const struct http_request *http = &flow->application->http;
    const struct moment *asked = &http->requested;
    struct row row;
    if (!http->method[0] && !http->status)
        return;
    begin_row(sink, &row, flow, WORD_HTTP, http->client);
    row_set(&row, exchanges_outcome,
            only_said_farewell(flow, http->client) ? WORD_FAREWELL : WORD_CUT_OFF);
    put_frame(&row, exchanges_asked_frame, asked->frame);
    row_set_if(&row, exchanges_asked_ns, asked->frame && asked->time_ns != TIME_UNKNOWN,
               asked->time_ns);
    put_http(sink, &row, http);
    add_exchange(sink, &row);
}

/* --- connections ------------------------------------------------------------------------------ */

/* Whether the handshake came about. An initiator that acknowledged something was answered by
 * packets that were not captured. */
static bool is_connected(const struct tcp_connection *connection) {
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    bool unseen = !connection->syn_ack_seen && (to->base_known || to->snd_una_known);
    return connection->handshake_ack_seen || from->unique_bytes || to->unique_bytes ||
           (unseen && !to->resets);
}

/* Returns what came of a SYN. */
static enum word outcome_of_syn(const struct flow *flow, int64_t asked_ns,
                                const struct flow_end *end) {
    const struct tcp_connection *connection = &flow->tcp;
    const struct tcp_stream *from = &connection->streams[0], *to = &connection->streams[1];
    if (connection->refused)
        return WORD_REFUSED;
    if (is_connected(connection))
        return WORD_ANSWERED;
    if (from->resets || from->fin_seen)
        return WORD_ABANDONED;
    if (to->resets)
        return WORD_RESET;
    if (!connection->syn_ack_seen && flow->icmp_error != WORD_NONE)
        return WORD_ERROR;
    enum word silence = outcome_of_silence(end, asked_ns, flow->timed, from->syns);
    return connection->syn_ack_seen && silence == WORD_UNANSWERED ? WORD_ABANDONED : silence;
}

/* Writes `fast_open ecn`; nothing without an option. */
static void put_syn_options(struct row_sink *sink, struct row *row, unsigned column,
                            unsigned options) {
    static const char *const names[] = {"fast_open", "mptcp", "signature", "ecn"};
    char text[32] = "";
    size_t used = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (options >> i & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                                     names[i]);
    if (used)
        row_set_text(sink, row, column, text);
}

static void add_connect(struct row_sink *sink, const struct flow *flow,
                        const struct flow_end *end) {
    const struct tcp_connection *connection = &flow->tcp;
    const struct direction *from = &flow->directions[0], *to = &flow->directions[1];
    bool first = from->timed && (!to->timed || from->first_ns <= to->first_ns);
    struct row row;
    begin_row(sink, &row, flow, WORD_CONNECT, 0);
    enum word outcome = outcome_of_syn(flow, from->first_ns, end);
    bool completed = connection->handshake_ack_seen && is_time_known(flow);
    int64_t waited_ns = completed ? part_ns(&connection->time, PART_CONNECTING)
                                  : max64(from->last_ns, to->last_ns) - from->first_ns;
    row_set(&row, exchanges_outcome, outcome);
    row_set(&row, exchanges_attempts, connection->streams[0].syns);
    put_syn_options(sink, &row, exchanges_syn_options, connection->streams[0].syn_options);
    put_syn_options(sink, &row, exchanges_last_syn_options,
                    connection->streams[0].last_syn_options);
    if (outcome == WORD_ERROR)
        row_set_text(sink, &row, exchanges_code, word_text((enum word)flow->icmp_error));
    row_set_if(&row, exchanges_asked_frame, first, (int64_t)flow->first_frame);
    row_set_if(&row, exchanges_asked_ns, from->timed, from->first_ns);
    row_set_if(&row, exchanges_answered_ns, completed, from->first_ns + waited_ns);
    row_set_if(&row, exchanges_waited_ns, from->timed && (completed || outcome != WORD_ANSWERED),
               waited_ns);
    add_exchange(sink, &row);
}

void exchange_rows_add(struct row_sink *sink, const struct flow *flow, const struct flow_end *end) {
    const struct application *application = flow->application;
    if (flow->key.protocol != IP_TCP)
        return;
    if (flow->tcp.streams[0].syn_seen)
        add_connect(sink, flow, end);
    if (flow->tcp.turns && exchange_of(&flow->tcp) == WORD_TURNS)
        add_turns(sink, flow, end);
    else if (application && application->protocol == WORD_HTTP)
        add_request(sink, flow);
}

/* --- DNS -------------------------------------------------------------------------------------- */

void query_row_add(const struct row_writer *writer, const struct flow *flow,
                   const struct dns_query *query, const struct flow_end *end) {
    struct row_sink *sink = writer->sink;
    int64_t first_ns = query->first.time_ns, answer_ns = query->answer.time_ns;
    bool timed = first_ns != TIME_UNKNOWN, answered = query->answer.frame;
    char text[DNS_TEXT_MAX];
    struct row row;
    begin_row(sink, &row, flow, WORD_DNS, query->direction);
    row_set(&row, exchanges_id, query->id);
    row_set_text(sink, &row, exchanges_name, query->name);
    dns_type_text(query->type, text);
    row_set_text(sink, &row, exchanges_type, text);
    row_set_if(&row, exchanges_asked_ns, timed, first_ns);
    row_set(&row, exchanges_asked_frame, (int64_t)query->first.frame);
    row_set(&row, exchanges_attempts, query->sent);
    if (answered) {
        if (timed && answer_ns != TIME_UNKNOWN) {
            row_set(&row, exchanges_answered_ns, answer_ns);
            row_set(&row, exchanges_waited_ns, answer_ns - first_ns);
        }
        row_set(&row, exchanges_answered_frame, (int64_t)query->answer.frame);
        row_set(&row, exchanges_truncated, query->truncated);
        dns_code_text(query->code, text);
        row_set_text(sink, &row, exchanges_code, text);
        if (query->addresses && query->addresses[0])
            row_set_text(sink, &row, exchanges_addresses, query->addresses);
    } else if (timed && query->last_ns >= first_ns) {
        row_set(&row, exchanges_waited_ns, query->last_ns - first_ns);
    }
    bool failed = dns_code_is_failure(query->code);
    row_set(&row, exchanges_outcome,
            !answered ? outcome_of_silence(end, first_ns, timed, query->sent)
            : failed  ? WORD_ERROR
                      : WORD_ANSWERED);
    add_exchange(sink, &row);
}
