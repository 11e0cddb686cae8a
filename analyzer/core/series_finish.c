/* SPDX-License-Identifier: Apache-2.0 */
/* The bins of one direction as rows of series. */
#include "analysis_state.h"

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void put_bin(struct row *row, const struct series_bin *bin, bool tcp, bool payload_known) {
    bool stream = tcp && payload_known;
    row_set(row, series_packets, bin->packets);
    row_set(row, series_wire_bytes, (int64_t)bin->wire_bytes);
    row_set(row, series_bytes, (int64_t)bin->ip_bytes);
    row_set_if(row, series_payload_bytes, payload_known, (int64_t)bin->payload_bytes);
    row_set_if(row, series_unique_bytes, stream, (int64_t)bin->unique_bytes);
    row_set_if(row, series_retransmitted_bytes, stream, (int64_t)bin->retransmitted_bytes);
    row_set_if(row, series_lost, stream, bin->lost);
    row_set_if(row, series_rtt_ns, bin->rtt_us != BIN_RTT_NONE, (int64_t)bin->rtt_us * 1000);
    row_set_if(row, series_flight_bytes, bin->flight != BIN_BYTES_NONE, bin->flight);
    row_set_if(row, series_window_bytes, bin->window != BIN_BYTES_NONE, bin->window);
}

void series_finish(struct analysis *analysis, const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    const struct series_bins *series = &direction->series;
    int64_t width = series_bins_width_ns(series);
    bool tcp = flow->key.protocol == IP_TCP;
    uint64_t so_far = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        const struct series_bin *bin = &series->bins[i];
        int64_t start = series_bins_start_ns(series, bin->index);
        int64_t elapsed = least(start + width, direction->last_ns) - direction->first_ns;
        struct row row;
        so_far += bin->ip_bytes;
        row_clear(&row);
        row_set(&row, series_flow, flow->number);
        row_set(&row, series_direction, number);
        row_set(&row, series_start_ns, start);
        row_set(&row, series_width_ns, width);
        put_bin(&row, bin, tcp, !direction->payload_unknown);
        row_set(&row, series_instant_bps, rate_bps(bin->ip_bytes, width));
        if (elapsed > 0)
            row_set(&row, series_system_bps, rate_bps(so_far, elapsed));
        row_set_if(&row, series_goodput_bps, !direction->payload_unknown,
                   rate_bps(tcp ? bin->unique_bytes : bin->payload_bytes, width));
        add_row(analysis, TABLE_series, &row);
    }
}
