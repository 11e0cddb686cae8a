/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a QUIC handshake. */
#include "rows/rows.h"

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
    row_set_if(&row, handshakes_ech, tls->hello_read || tls->ech, tls->ech);
    add_row(sink, TABLE_handshakes, &row);
}
