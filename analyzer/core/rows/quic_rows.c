/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a QUIC handshake. */
#include "rows/rows.h"

static void put_losses(struct row *row, const struct quic_loss loss[static 2]) {
    static const unsigned columns[2][5] = {
        {handshakes_client_sent, handshakes_client_missing, handshakes_client_lost,
         handshakes_client_lost_upstream, handshakes_client_lost_downstream},
        {handshakes_server_sent, handshakes_server_missing, handshakes_server_lost,
         handshakes_server_lost_upstream, handshakes_server_lost_downstream}};
    static const unsigned frames[2] = {handshakes_client_loss_frame, handshakes_server_loss_frame},
                          times[2] = {handshakes_client_loss_ns, handshakes_server_loss_ns};
    for (unsigned i = 0; i < 2; i++) {
        int64_t values[5] = {loss[i].sent, loss[i].missing, loss[i].whole, loss[i].upstream,
                             loss[i].downstream};
        for (unsigned k = 0; k < 5; k++)
            row_set_if(row, columns[i][k], values[k] >= 0, values[k]);
        bool shown = loss[i].first.frame && loss[i].whole + loss[i].missing > 0;
        row_set_if(row, frames[i], shown, (int64_t)loss[i].first.frame);
        row_set_if(row, times[i], shown && loss[i].first.time_ns >= 0, loss[i].first.time_ns);
    }
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
    put_losses(&row, summary->loss);
    put_frame(&row, handshakes_client_hello_frame, summary->frames[QUIC_BEGIN]);
    put_frame(&row, handshakes_server_hello_frame, summary->frames[QUIC_ANSWER]);
    put_frame(&row, handshakes_finished_frame, summary->frames[QUIC_END]);
    row_set_text(sink, &row, handshakes_server_name, flow->application->server_name);
    row_set_text(sink, &row, handshakes_alpn, tls->alpn);
    row_set_if(&row, handshakes_ech, tls->hello_read || tls->ech, tls->ech);
    add_row(sink, TABLE_handshakes, &row);
}
