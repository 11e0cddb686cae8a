/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of TLS of a flow as a row. */
#include "rows/rows.h"

static bool begin_row(struct row_sink *sink, struct row *row, enum table_number number,
                      const struct flow *flow) {
    row_clear(row);
    row_set(row, 0, flow->number);
    return begin_flow_group(sink, number, flow);
}

/* Sets the time that an end took to answer: the sum of the waits for it, each without the least RTT
 * between the capture point and this end. `sender` is the stream of the other end's data. */
static void put_wait(struct row *row, unsigned column, const struct tls_handshake *tls,
                     unsigned direction, const struct tcp_stream *sender) {
    int64_t rtt_ns = min_rtt(sender);
    if (rtt_ns == RTT_UNKNOWN || !tls->turns[direction] || tls->untimed)
        return;
    int64_t wait_ns = max64(tls->wait_ns[direction], 0) - tls->turns[direction] * rtt_ns;
    row_set(row, column, max64(wait_ns, 0));
}

static void put_times(struct row *row, const struct flow *flow, const struct tls_handshake *tls) {
    unsigned client = tls->client;
    bool ended = tls->hello.frame && tls->end.frame && !tls->alerted;
    bool timed = tls->hello.time_ns != TIME_UNKNOWN && tls->end.time_ns != TIME_UNKNOWN;
    row_set_if(row, handshakes_duration_ns, ended && timed, tls->end.time_ns - tls->hello.time_ns);
    row_set_if(row, handshakes_round_trips, ended, tls->turns[!client]);
    if (!ended)
        return;
    put_wait(row, handshakes_server_ns, tls, !client, &flow->tcp.streams[client]);
    if (flow->application->streams[!client].seen < STREAM_BYTES) /* its last message was read */
        put_wait(row, handshakes_client_ns, tls, client, &flow->tcp.streams[!client]);
}

static void add_handshake(struct row_sink *sink, const struct flow *flow) {
    const struct tls_handshake *tls = &flow->application->tls;
    bool resumed = tls->version == TLS_1_3 ? tls->psk : tls->echoed;
    bool comparable = tls->version == TLS_1_3 || tls->hello.frame;
    char text[TLS_TEXT_MAX];
    struct row row;
    if (!begin_row(sink, &row, TABLE_handshakes, flow))
        return;
    row_set(&row, handshakes_protocol, WORD_TLS);
    if (tls->version) {
        tls_version_text(tls->version, text);
        row_set_text(sink, &row, handshakes_version, text);
    }
    row_set_text(sink, &row, handshakes_server_name, flow->application->server_name);
    row_set_text(sink, &row, handshakes_alpn, tls->alpn);
    row_set_if(&row, handshakes_resumed, tls->answer.frame && comparable, resumed);
    row_set_if(&row, handshakes_ech, tls->hello_read || tls->ech, tls->ech);
    if (tls->alerted) {
        tls_alert_text(tls->alert, text);
        row_set_text(sink, &row, handshakes_alert, tls->alert_hidden ? "encrypted" : text);
        row_set(&row, handshakes_alert_direction, tls->alert_direction);
        row_set(&row, handshakes_alert_frame, (int64_t)tls->end.frame);
        row_set_if(&row, handshakes_alert_ns, tls->end.time_ns != TIME_UNKNOWN, tls->end.time_ns);
    }
    put_times(&row, flow, tls);
    put_frame(&row, handshakes_client_hello_frame, tls->hello.frame);
    put_frame(&row, handshakes_server_hello_frame, tls->answer.frame);
    put_frame(&row, handshakes_finished_frame, tls->alerted ? 0 : tls->end.frame);
    add_row(sink, TABLE_handshakes, &row);
}

void application_rows_add(struct row_sink *sink, const struct flow *flow) {
    const struct application *application = flow->application;
    const struct tls_handshake *tls = &application->tls;
    if (application->protocol == WORD_TLS &&
        (tls->hello.frame || tls->answer.frame || tls->alerted))
        add_handshake(sink, flow);
}
