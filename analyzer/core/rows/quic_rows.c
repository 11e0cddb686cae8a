/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a QUIC handshake, and the names that its ClientHello has.
 *
 * The ClientHello is decrypted in Python after the pass (analyzer/quic.py). Until then the column
 * alpn of the row holds the flow's Initials as a text, because rows of a grouped table find their
 * place even if their flow is numbered anew. quic_names_collect() makes a list of them and the
 * columns null; quic_names_set() fills the columns. Flows and handshakes are amended by the number
 * of their row, which is that of the flow in the table of flows. */
#include <stdlib.h>

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
    if (summary->initial_bytes)
        row_set_stored(
            sink, &row, handshakes_alpn,
            string_table_add_bytes(&sink->texts, summary->initials, summary->initial_bytes));
    add_row(sink, TABLE_handshakes, &row);
}

static bool append(struct quic_names *names, const struct quic_name *name) {
    if (!list_grow(&names->list, &names->room, names->count + 1, sizeof *names->list))
        return false;
    names->list[names->count++] = *name;
    return true;
}

bool quic_names_collect(struct row_sink *sink) {
    struct table *table = &sink->tables[TABLE_handshakes];
    struct table_cursor cursor = {0};
    struct row row;
    bool done = true;
    while (done && table_next_of(table, &cursor, handshakes_alpn + 1, &row)) {
        if (row.value[handshakes_protocol] != WORD_QUIC || !row_known(&row, handshakes_alpn))
            continue;
        struct quic_name name = {.row = cursor.row - 1,
                                 .flow = (uint32_t)row.value[handshakes_flow],
                                 .initials = row.value[handshakes_alpn]};
        done = append(&sink->quic_names, &name) &&
               table_amend(table, name.row, 0, handshakes_alpn, false, 0);
    }
    table_settle(table);
    return done;
}

/* Amends a column to a text, which may be NULL. Returns false without memory. */
static bool amend_text(struct row_sink *sink, enum table_number number, uint64_t row,
                       unsigned column, const char *text) {
    int64_t stored = text && *text ? string_table_add(&sink->texts, text) : 0;
    return stored >= 0 &&
           (!text || !*text || table_amend(&sink->tables[number], row, 0, column, true, stored));
}

bool quic_names_set(struct row_sink *sink, size_t number, const char *server_name,
                    const char *alpn) {
    const struct quic_name *name = &sink->quic_names.list[number];
    return amend_text(sink, TABLE_handshakes, name->row, handshakes_server_name, server_name) &&
           amend_text(sink, TABLE_handshakes, name->row, handshakes_alpn, alpn) &&
           amend_text(sink, TABLE_flows, name->flow, flows_server_name, server_name);
}

void quic_names_settle(struct row_sink *sink) {
    table_settle(&sink->tables[TABLE_handshakes]);
    table_settle(&sink->tables[TABLE_flows]);
}
