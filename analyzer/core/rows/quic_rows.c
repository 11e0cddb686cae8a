/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a QUIC handshake. */
#include <stdio.h>

#include "rows/rows.h"

#define CRYPTO_ERROR 0x100 /* and an alert of TLS (RFC 9000 section 20.1) */

static void error_text(uint64_t error, char text[static TLS_TEXT_MAX]) {
    static const char *const names[] = {"no_error",
                                        "internal_error",
                                        "connection_refused",
                                        "flow_control_error",
                                        "stream_limit_error",
                                        "stream_state_error",
                                        "final_size_error",
                                        "frame_encoding_error",
                                        "transport_parameter_error",
                                        "connection_id_limit_error",
                                        "protocol_violation",
                                        "invalid_token",
                                        "application_error",
                                        "crypto_buffer_exceeded"};
    if (error >> 8 == CRYPTO_ERROR >> 8)
        tls_alert_text(error & 0xFF, text);
    else if (error < sizeof names / sizeof *names)
        snprintf(text, TLS_TEXT_MAX, "%s", names[error]);
    else
        snprintf(text, TLS_TEXT_MAX, "error 0x%llx", (unsigned long long)error);
}

static void put_close(struct row_sink *sink, struct row *row, const struct quic_summary *summary) {
    char text[TLS_TEXT_MAX];
    if (!summary->close_frame)
        return;
    error_text(summary->error, text);
    row_set_text(sink, row, handshakes_alert, text);
    row_set(row, handshakes_alert_direction, !summary->client);
    row_set(row, handshakes_alert_frame, (int64_t)summary->close_frame);
    row_set(row, handshakes_alert_ns, summary->close_ns);
}

void quic_row_add(struct row_sink *sink, const struct flow *flow,
                  const struct quic_summary *summary) {
    char version[QUIC_VERSION_TEXT];
    const struct tls_handshake *tls = &flow->application->tls;
    struct row row;
    if (!begin_flow_group(sink, TABLE_handshakes, flow))
        return;
    row_clear(&row);
    row_set(&row, handshakes_flow, flow->number);
    row_set(&row, handshakes_protocol, WORD_QUIC);
    quic_version_text(summary->version, version);
    row_set_text(sink, &row, handshakes_version, version);
    row_set_if(&row, handshakes_duration_ns, summary->duration_ns >= 0, summary->duration_ns);
    row_set_if(&row, handshakes_round_trips, summary->duration_ns >= 0, summary->round_trips);
    row_set_if(&row, handshakes_server_rtt_ns, summary->server_ns >= 0, summary->server_ns);
    row_set_if(&row, handshakes_client_rtt_ns, summary->client_ns >= 0, summary->client_ns);
    row_set(&row, handshakes_spin_samples, (int64_t)summary->spin_samples);
    row_set_if(&row, handshakes_spin_rtt_ns, summary->spin_ns >= 0, summary->spin_ns);
    row_set(&row, handshakes_version_negotiation, summary->version_negotiation);
    row_set(&row, handshakes_retry, summary->retry);
    row_set(&row, handshakes_zero_rtt, summary->zero_rtt);
    row_set(&row, handshakes_client_direction, summary->client);
    put_frame(&row, handshakes_client_hello_frame, summary->frames[QUIC_BEGIN]);
    put_frame(&row, handshakes_server_hello_frame, summary->frames[QUIC_ANSWER]);
    put_frame(&row, handshakes_finished_frame, summary->frames[QUIC_END]);
    row_set_text(sink, &row, handshakes_server_name, flow->application->server_name);
    row_set_text(sink, &row, handshakes_alpn, tls->alpn);
    put_close(sink, &row, summary);
    row_set_if(&row, handshakes_ech, tls->hello_read || tls->ech, tls->ech);
    add_row(sink, TABLE_handshakes, &row);
}
