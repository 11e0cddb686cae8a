/* SPDX-License-Identifier: Apache-2.0 */
#include "series_record.h"

#include <string.h>

#include "analysis_state.h"

/* A bin without a byte count beyond 32 bits, as nearly all are. It may lie at any address. */
struct narrow_bin {
    uint32_t wire_bytes, ip_bytes, payload_bytes, unique_bytes, retransmitted_bytes;
    uint32_t index, packets, rtt_us, flight, window, lost;
} __attribute__((packed));

_Static_assert(BINS_MOST <= UINT16_MAX, "the bins of a direction are counted in 16 bits");
_Static_assert(sizeof(struct narrow_bin) <= sizeof(struct series_bin), "the room is for wide ones");

/* Whether a byte count takes more than 32 bits. */
static bool is_wide(const struct series_bin *bins, size_t count) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= bins[i].wire_bytes | bins[i].ip_bytes | bins[i].payload_bytes |
               bins[i].unique_bytes | bins[i].retransmitted_bytes;
    return all > UINT32_MAX;
}

static struct narrow_bin narrowed(const struct series_bin *bin) {
    return (struct narrow_bin){
        .wire_bytes = (uint32_t)bin->wire_bytes,
        .ip_bytes = (uint32_t)bin->ip_bytes,
        .payload_bytes = (uint32_t)bin->payload_bytes,
        .unique_bytes = (uint32_t)bin->unique_bytes,
        .retransmitted_bytes = (uint32_t)bin->retransmitted_bytes,
        .index = bin->index,
        .packets = bin->packets,
        .rtt_us = bin->rtt_us,
        .flight = bin->flight,
        .window = bin->window,
        .lost = bin->lost,
    };
}

static struct series_bin widened(const struct narrow_bin *bin) {
    return (struct series_bin){
        .wire_bytes = bin->wire_bytes,
        .ip_bytes = bin->ip_bytes,
        .payload_bytes = bin->payload_bytes,
        .unique_bytes = bin->unique_bytes,
        .retransmitted_bytes = bin->retransmitted_bytes,
        .index = bin->index,
        .packets = bin->packets,
        .rtt_us = bin->rtt_us,
        .flight = bin->flight,
        .window = bin->window,
        .lost = bin->lost,
    };
}

static size_t bin_size(const struct series_head *head) {
    return head->wide ? sizeof(struct series_bin) : sizeof(struct narrow_bin);
}

static struct series_bin bin_at(const uint8_t *place, const struct series_head *head) {
    struct series_bin bin;
    if (!head->wide)
        return widened((const struct narrow_bin *)place);
    memcpy(&bin, place, sizeof bin);
    return bin;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void put_counts(struct row *row, const struct series_bin *bin,
                       const struct series_head *head) {
    bool stream = head->tcp && head->payload_known;
    row_set(row, series_packets, bin->packets);
    row_set(row, series_wire_bytes, (int64_t)bin->wire_bytes);
    row_set(row, series_bytes, (int64_t)bin->ip_bytes);
    row_set_if(row, series_payload_bytes, head->payload_known, (int64_t)bin->payload_bytes);
    row_set_if(row, series_unique_bytes, stream, (int64_t)bin->unique_bytes);
    row_set_if(row, series_retransmitted_bytes, stream, (int64_t)bin->retransmitted_bytes);
    row_set_if(row, series_lost, stream, bin->lost);
    row_set_if(row, series_rtt_ns, bin->rtt_us != BIN_RTT_NONE, (int64_t)bin->rtt_us * 1000);
    row_set_if(row, series_flight_bytes, bin->flight != BIN_BYTES_NONE, bin->flight);
    row_set_if(row, series_window_bytes, bin->window != BIN_BYTES_NONE, bin->window);
}

/* `so_far`: IP bytes up to the end of this bin, which began at `start`. */
static void put_rates(struct row *row, const struct series_bin *bin, const struct series_head *head,
                      int64_t start, int64_t width, uint64_t so_far) {
    int64_t elapsed = least(start + width, head->last_ns) - head->first_ns;
    row_set(row, series_instant_bps, rate_bps(bin->ip_bytes, width));
    if (elapsed > 0)
        row_set(row, series_system_bps, rate_bps(so_far, elapsed));
    row_set_if(row, series_goodput_bps, head->payload_known,
               rate_bps(head->tcp ? bin->unique_bytes : bin->payload_bytes, width));
}

static const uint8_t *next_row(const uint8_t *record, struct table_cursor *cursor, size_t columns,
                               struct row *row) {
    struct series_head head;
    memcpy(&head, record, sizeof head);
    const uint8_t *place = record + sizeof head + cursor->of_record * bin_size(&head);
    const struct series_bin bin = bin_at(place, &head);
    struct series_bins shape = {.first = head.first, .doublings = head.doublings};
    int64_t width = series_bins_width_ns(&shape), start = series_bins_start_ns(&shape, bin.index);
    row_clear(row);
    memset(row->value, 0, series_column_count * sizeof *row->value);
    row_set(row, series_direction, head.number);
    row_set(row, series_start_ns, start);
    row_set(row, series_width_ns, width);
    put_counts(row, &bin, &head);
    cursor->sum += bin.ip_bytes;
    if (columns > series_instant_bps)
        put_rates(row, &bin, &head, start, width, cursor->sum);
    return ++cursor->of_record == head.count ? place + bin_size(&head) : NULL;
}

static const struct record_kind series_records = {
    .room = sizeof(struct series_head) + BINS_MOST * sizeof(struct series_bin),
    .next = next_row,
};

static uint8_t *put_bins(uint8_t *out, const struct series_head *head,
                         const struct series_bin *bins) {
    if (head->wide) {
        memcpy(out, bins, head->count * sizeof *bins);
        return out + head->count * sizeof *bins;
    }
    struct narrow_bin *narrow = (struct narrow_bin *)out;
    for (size_t i = 0; i < head->count; i++)
        narrow[i] = narrowed(&bins[i]);
    return out + head->count * sizeof *narrow;
}

bool series_record_add(struct table *table, struct series_head *head,
                       const struct series_bin *bins) {
    if (!head->count)
        return true;
    uint8_t *record = table_begin_record(table, &series_records);
    if (!record)
        return false;
    head->wide = is_wide(bins, head->count);
    memcpy(record, head, sizeof *head);
    table_add_record(table, put_bins(record + sizeof *head, head, bins), head->count);
    return true;
}
