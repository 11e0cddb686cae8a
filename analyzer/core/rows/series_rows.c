/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a direction as one record: a head, then its bins in the smaller of two forms (28 or
 * 64 bytes a bin), chosen once for all of them. A record is unpacked row by row when the
 * table is read; rates, which need a division each, are computed only then, and only if the reader
 * wants these columns. Bins without packets have no row. Records are unaligned, hence the packed
 * structs and memcpy(). */
#include <string.h>

#include "rows/rows.h"

_Static_assert(BINS_MOST <= UINT16_MAX, "the bins of a direction are counted in 16 bits");

static size_t bin_size(const struct series_head *head) {
    return head->small ? sizeof(struct small_bin) : sizeof(struct time_bin);
}

static struct time_bin bin_at(const uint8_t *place, const struct series_head *head) {
    struct time_bin bin;
    if (head->small)
        return BIN_AS(struct time_bin, (const struct small_bin *)place);
    memcpy(&bin, place, sizeof bin);
    return bin;
}

/* Columns of TCP streams are null for other protocols, or if the length of a payload is unknown. */
static void put_counts(struct row *row, const struct time_bin *bin,
                       const struct series_head *head) {
    bool stream = head->tcp && head->payload_known;
    row_set(row, series_packets, bin->packets);
    row_set(row, series_wire_bytes, bin->wire_bytes);
    row_set(row, series_bytes, bin->ip_bytes);
    row_set_if(row, series_payload_bytes, head->payload_known, bin->payload_bytes);
    row_set_if(row, series_unique_bytes, stream, bin->unique_bytes);
    row_set_if(row, series_retransmitted_bytes, stream, bin->retransmitted_bytes);
    row_set_if(row, series_lost, stream, bin->lost);
    row_set_if(row, series_rtt_ns, bin->rtt_us != BIN_RTT_NONE, (int64_t)bin->rtt_us * 1000);
    row_set_if(row, series_flight_bytes, bin->flight != BIN_BYTES_NONE, bin->flight);
    row_set_if(row, series_window_bytes, bin->window != BIN_BYTES_NONE, bin->window);
}

/* Rates of a bin are per its whole width, ns, even of the first and last, which packets fill only
 * in part; the cumulative one is from the first packet on. `so_far`: IP bytes up to the end of this
 * bin, which begins at `start`, ns. */
static void put_rates(struct row *row, const struct time_bin *bin, const struct series_head *head,
                      int64_t start, int64_t width, uint64_t so_far) {
    int64_t elapsed = min64(start + width, head->last_ns) - head->first_ns;
    row_set(row, series_throughput_bps, rate_bps(bin->ip_bytes, width));
    if (elapsed > 0)
        row_set(row, series_cumulative_throughput_bps, rate_bps(so_far, elapsed));
    row_set_if(row, series_goodput_bps, head->payload_known,
               rate_bps(head->tcp ? bin->unique_bytes : bin->payload_bytes, width));
}

/* A record_kind function: unpacks the row at the cursor, whose sum holds the IP bytes of the rows
 * before. Values must be 0 where they are null, as the contract of `next` demands. */
static const uint8_t *next_row(const uint8_t *record, struct table_cursor *cursor, size_t columns,
                               struct row *row) {
    struct series_head head;
    memcpy(&head, record, sizeof head);
    const uint8_t *place = record + sizeof head + cursor->of_record * bin_size(&head);
    const struct time_bin bin = bin_at(place, &head);
    struct time_bins shape = {.first = head.first, .doublings = head.doublings};
    int64_t width = time_bins_width_ns(&shape), start = time_bins_start_ns(&shape, bin.index);
    row_clear(row);
    memset(row->value, 0, series_column_count * sizeof *row->value);
    row_set(row, series_direction, head.number);
    row_set(row, series_start_ns, start);
    row_set(row, series_width_ns, width);
    put_counts(row, &bin, &head);
    cursor->sum += bin.ip_bytes;
    if (columns > series_throughput_bps)
        put_rates(row, &bin, &head, start, width, cursor->sum);
    return ++cursor->of_record == head.count ? place + bin_size(&head) : NULL;
}

static const struct record_kind series_records = {
    .room = sizeof(struct series_head) + BINS_MOST * sizeof(struct time_bin),
    .next = next_row,
};

bool series_record_add(struct table *table, struct series_head *head, const struct time_bin *bins) {
    uint64_t all = 0;
    if (!head->count)
        return true;
    for (size_t i = 0; i < head->count; i++)
        all |= bin_extent(&bins[i]);
    head->small = all <= UINT16_MAX;
    uint8_t *record = table_add_record(table, &series_records,
                                       sizeof *head + head->count * bin_size(head), head->count);
    if (!record)
        return false;
    struct small_bin *small = (struct small_bin *)(record + sizeof *head);
    memcpy(record, head, sizeof *head);
    if (!head->small)
        memcpy(small, bins, head->count * sizeof *bins);
    for (size_t i = 0; head->small && i < head->count; i++)
        small[i] = BIN_AS(struct small_bin, &bins[i]);
    return true;
}

void series_rows_add(struct row_sink *sink, const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    const struct time_bins *series = &direction->series;
    struct time_bin small[BINS_SMALL_MOST];
    struct series_head head = {
        .first = series->first,
        .first_ns = direction->first_ns,
        .last_ns = direction->last_ns,
        .count = (uint16_t)series->count,
        .doublings = series->doublings,
        .number = number,
        .tcp = flow->key.protocol == IP_TCP,
        .payload_known = !direction->payload_unknown,
    };
    if (!series_record_add(&sink->tables[TABLE_series], &head, time_bins_list(series, small)))
        sink->out_of_memory = true;
}
