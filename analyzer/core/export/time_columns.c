/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of time of flows (time_columns in export.h), in one pass over rows of packets, which are
 * handed over part by part, so that no packet is kept. Memory is about 220 bytes for each column
 * and 4 bytes per flow number up to the greatest; both are allocated at once.
 *
 * Bytes in flight are those between the last one sent and the last one acknowledged, as the page
 * computes them of packets (page/flow/series/panels.js). */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

#define NOT_LISTED UINT32_MAX
/* Bits of the greatest value that are kept: more than a panel has pixels, at any zoom at which a
 * column is narrow enough to matter. */
#define POSITION_BITS 16
#define LEVEL_BITS    10
#define IP_BITS       18
#define TIME_BITS     8
#define SACK_BLOCKS   ((packets_flags - packets_sack_start) / 2)

const char *const column_stream_names[COLUMN_STREAM_COUNT] = {
    "scale",         "filled", "column", "known", "flight_last", "ip0", "ip1",
#define X(name) #name "_least", #name "_size",
    COLUMN_RANGES(X)
#undef X
};

struct extent {
    int64_t least, most;
};

struct time_column {
    struct extent extents[RANGE_COUNT];
    int64_t flight_last;
    uint64_t ip[2];
    uint16_t known; /* bits of enum column_range */
    bool filled;
};

/* A flow, and what its packets so far left behind. */
struct drawn_flow {
    struct column_flow is;
    struct time_column *columns;
    bool begun; /* data was sent */
    int64_t sent, acked;
    int64_t so_far[2]; /* payload, or packets */
    int64_t last_ns[2];
    bool timed[2];
};

struct time_columns {
    struct drawn_flow *flows;
    size_t count;
    uint32_t *places; /* by flow number, the place in the list */
    uint32_t place_count;
    struct time_column *columns; /* of all flows */
};

/* How a range is packed. */
static const struct packed_range {
    uint8_t scale; /* enum column_scale; SCALE_COUNT: a time */
    bool follows;  /* it is predicted to begin where that of the column before ended */
} packed_ranges[RANGE_COUNT] = {
    [RANGE_data] = {SCALE_POSITION, true},   [RANGE_again] = {SCALE_POSITION, true},
    [RANGE_ack] = {SCALE_POSITION, true},    [RANGE_window] = {SCALE_POSITION, true},
    [RANGE_sack] = {SCALE_POSITION, true},   [RANGE_other] = {SCALE_POSITION, true},
    [RANGE_flight] = {SCALE_FLIGHT, false},  [RANGE_room] = {SCALE_ROOM, false},
    [RANGE_rtt0] = {SCALE_COUNT, false},     [RANGE_rtt1] = {SCALE_COUNT, false},
    [RANGE_spacing0] = {SCALE_COUNT, false}, [RANGE_spacing1] = {SCALE_COUNT, false},
};

struct time_columns *time_columns_open(const struct column_flow *flows, size_t count) {
    uint64_t columns = 0;
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        columns += flows[i].count;
        most = flows[i].flow >= most && flows[i].flow < NOT_LISTED ? flows[i].flow + 1 : most;
    }
    struct time_columns *open = columns <= TIME_COLUMNS_MOST ? calloc(1, sizeof *open) : NULL;
    if (!open)
        return NULL;
    open->flows = calloc(count + 1, sizeof *open->flows);
    open->columns = calloc(columns + 1, sizeof *open->columns);
    open->places = malloc(((size_t)most + 1) * sizeof *open->places);
    if (!open->flows || !open->columns || !open->places) {
        time_columns_close(open);
        return NULL;
    }
    memset(open->places, 0xFF, ((size_t)most + 1) * sizeof *open->places);
    open->count = count;
    open->place_count = most;
    struct time_column *next = open->columns;
    for (size_t i = 0; i < count; i++) {
        open->flows[i] = (struct drawn_flow){.is = flows[i], .columns = next};
        next += flows[i].count;
        if (flows[i].flow < most)
            open->places[flows[i].flow] = (uint32_t)i;
    }
    return open;
}

void time_columns_close(struct time_columns *columns) {
    if (!columns)
        return;
    free(columns->flows);
    free(columns->columns);
    free(columns->places);
    free(columns);
}

/* --- packets -------------------------------------------------------------------------------- */

static void widen(struct time_column *column, enum column_range range, int64_t least,
                  int64_t most) {
    struct extent *extent = &column->extents[range];
    if (!(column->known >> range & 1)) {
        column->known |= (uint16_t)(1u << range);
        *extent = (struct extent){least, most};
        return;
    }
    if (least < extent->least)
        extent->least = least;
    if (most > extent->most)
        extent->most = most;
}

/* Packets out of order may be before the first or after the last column. */
static struct time_column *column_at(const struct drawn_flow *flow, int64_t time_ns) {
    int64_t since_ns;
    if (__builtin_sub_overflow(time_ns, flow->is.begin_ns, &since_ns))
        since_ns = time_ns < 0 ? 0 : INT64_MAX;
    int64_t column = since_ns < 0 ? 0 : since_ns / flow->is.width_ns;
    return &flow->columns[column < flow->is.count ? column : flow->is.count - 1];
}

static void add_data(struct drawn_flow *flow, struct time_column *column, const struct row *row) {
    int64_t size = row->value[packets_payload_bytes], begin = row->value[packets_sequence];
    int64_t end = begin + size;
    bool repeats = row_known(row, packets_unique_bytes) && row->value[packets_unique_bytes] != size;
    widen(column, repeats ? RANGE_again : RANGE_data, begin, end);
    if (!flow->begun && begin > flow->acked)
        flow->acked = begin;
    flow->begun = true;
    if (end > flow->sent)
        flow->sent = end;
}

static void add_answer(struct drawn_flow *flow, struct time_column *column, const struct row *row) {
    const int64_t *value = row->value;
    int64_t acked = value[packets_acknowledged];
    bool has_window = row_known(row, packets_window);
    if (has_window)
        widen(column, RANGE_room, value[packets_window], value[packets_window]);
    if (!row_known(row, packets_acknowledged))
        return;
    widen(column, RANGE_ack, acked, acked);
    if (acked > flow->acked)
        flow->acked = acked;
    if (has_window)
        widen(column, RANGE_window, acked + value[packets_window], acked + value[packets_window]);
    for (unsigned i = 0; i < SACK_BLOCKS && row_known(row, packets_sack_start + 2 * i); i++)
        widen(column, RANGE_sack, value[packets_sack_start + 2 * i],
              value[packets_sack_end + 2 * i]);
}

static void add_segment(struct drawn_flow *flow, struct time_column *column,
                        const struct row *row) {
    bool sends = row->value[packets_direction] == flow->is.main;
    if (row_known(row, packets_rtt_ns)) {
        enum column_range rtt = row->value[packets_direction] ? RANGE_rtt0 : RANGE_rtt1;
        widen(column, rtt, row->value[packets_rtt_ns], row->value[packets_rtt_ns]);
    }
    if (sends && (!row_known(row, packets_sequence) || !row->value[packets_payload_bytes]))
        return;
    if (sends)
        add_data(flow, column, row);
    else
        add_answer(flow, column, row);
    if (!flow->begun)
        return;
    column->flight_last = flow->sent > flow->acked ? flow->sent - flow->acked : 0;
    widen(column, RANGE_flight, column->flight_last, column->flight_last);
}

static void add_datagram(struct drawn_flow *flow, struct time_column *column,
                         const struct row *row) {
    unsigned direction = (unsigned)row->value[packets_direction] & 1;
    int64_t now = row->value[packets_time_ns], since_ns;
    int64_t before = flow->so_far[direction];
    flow->so_far[direction] +=
        flow->is.kind == DRAWN_PACKETS ? 1 : row->value[packets_payload_bytes];
    widen(column, direction ? RANGE_other : RANGE_data, before, flow->so_far[direction]);
    if (flow->timed[direction] &&
        !__builtin_sub_overflow(now, flow->last_ns[direction], &since_ns) && since_ns >= 0)
        widen(column, direction ? RANGE_spacing1 : RANGE_spacing0, since_ns, since_ns);
    flow->timed[direction] = true;
    flow->last_ns[direction] = now;
}

void time_columns_add(struct time_columns *columns, const struct row *row) {
    uint64_t number = (uint64_t)row->value[packets_flow];
    uint32_t place = number < columns->place_count ? columns->places[number] : NOT_LISTED;
    if (place == NOT_LISTED || !row_known(row, packets_time_ns))
        return;
    struct drawn_flow *flow = &columns->flows[place];
    struct time_column *column = column_at(flow, row->value[packets_time_ns]);
    column->filled = true;
    column->ip[row->value[packets_direction] & 1] += (uint64_t)row->value[packets_ip_bytes];
    if (flow->is.kind == DRAWN_TCP)
        add_segment(flow, column, row);
    else
        add_datagram(flow, column, row);
}

/* --- packing -------------------------------------------------------------------------------- */

/* Returns a code of a time that keeps TIME_BITS significant bits, and grows with it; rounded up or
 * down. */
static int64_t time_code(int64_t ns, bool up) {
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
    unsigned shift = 0;
    while (value >> shift >> TIME_BITS)
        shift++;
    uint64_t kept = value >> shift;
    int64_t code = (int64_t)((uint64_t)shift << (TIME_BITS - 1)) + (int64_t)kept;
    return code + (up && kept << shift < value);
}

/* Returns a value without its lowest bits, rounded up or down. */
static int64_t scaled(int64_t value, unsigned shift, bool up) {
    uint64_t cut = (uint64_t)value & ((UINT64_C(1) << shift) - 1);
    return (value >> shift) + (up && cut);
}

static unsigned shift_of(uint64_t most, unsigned bits) {
    unsigned shift = 0;
    while (most >> shift >> bits)
        shift++;
    return shift;
}

static void find_scales(const struct drawn_flow *flow, unsigned scales[static SCALE_COUNT]) {
    static const enum column_range levels[] = {RANGE_data, RANGE_again, RANGE_other, RANGE_flight,
                                               RANGE_room};
    uint64_t most[SCALE_COUNT] = {0};
    static const unsigned bits[SCALE_COUNT] = {POSITION_BITS, LEVEL_BITS, LEVEL_BITS, IP_BITS,
                                               IP_BITS};
    for (uint32_t i = 0; i < flow->is.count; i++) {
        const struct time_column *column = &flow->columns[i];
        for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
            unsigned scale = packed_ranges[levels[k]].scale;
            int64_t value = column->extents[levels[k]].most;
            if (column->known >> levels[k] & 1 && value > 0 && (uint64_t)value > most[scale])
                most[scale] = (uint64_t)value;
        }
        most[SCALE_IP0] += column->ip[0];
        most[SCALE_IP1] += column->ip[1];
    }
    for (unsigned i = 0; i < SCALE_COUNT; i++)
        scales[i] = shift_of(most[i], bits[i]);
}

/* What the column before left behind: by range what its next least is predicted to be. */
struct packing {
    struct number_stream *out;
    unsigned scales[SCALE_COUNT];
    int64_t predicted[RANGE_COUNT];
    uint64_t ip[2];
};

static int64_t code_of(const struct packing *packing, enum column_range range, int64_t value,
                       bool up) {
    unsigned scale = packed_ranges[range].scale;
    return scale == SCALE_COUNT ? time_code(value, up) : scaled(value, packing->scales[scale], up);
}

static void pack_range(struct packing *packing, const struct time_column *column,
                       enum column_range range) {
    const struct extent *extent = &column->extents[range];
    int64_t least = code_of(packing, range, extent->least, false);
    int64_t most = code_of(packing, range, extent->most, true);
    struct number_stream *out = &packing->out[COLUMNS_data_least + 2 * range];
    number_stream_put(out, least - packing->predicted[range]);
    number_stream_put(out + 1, most - least);
    packing->predicted[range] = packed_ranges[range].follows ? most : least;
    if (range == RANGE_flight)
        number_stream_put(&packing->out[COLUMNS_flight_last],
                          code_of(packing, range, column->flight_last, false) - least);
}

static void pack_column(struct packing *packing, const struct time_column *column,
                        uint32_t skipped) {
    number_stream_put(&packing->out[COLUMNS_column], skipped);
    number_stream_put(&packing->out[COLUMNS_known], column->known);
    for (unsigned range = 0; range < RANGE_COUNT; range++)
        if (column->known >> range & 1)
            pack_range(packing, column, (enum column_range)range);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t before = packing->ip[i] >> packing->scales[SCALE_IP0 + i];
        packing->ip[i] += column->ip[i];
        number_stream_put(&packing->out[COLUMNS_ip0 + i],
                          (int64_t)((packing->ip[i] >> packing->scales[SCALE_IP0 + i]) - before));
    }
}

static bool pack_flow(const struct drawn_flow *flow, struct number_stream *out) {
    struct packing packing = {.out = out};
    uint32_t filled = 0, skipped = 0;
    for (unsigned i = 0; i < COLUMN_STREAM_COUNT; i++)
        if (!number_stream_reserve(&out[i], (size_t)flow->is.count + SCALE_COUNT))
            return false;
    find_scales(flow, packing.scales);
    for (unsigned i = 0; i < SCALE_COUNT; i++)
        number_stream_put(&out[COLUMNS_scale], packing.scales[i]);
    for (uint32_t i = 0; i < flow->is.count; i++)
        filled += flow->columns[i].filled;
    number_stream_put(&out[COLUMNS_filled], filled);
    for (uint32_t i = 0; i < flow->is.count; i++) {
        if (flow->columns[i].filled) {
            pack_column(&packing, &flow->columns[i], skipped);
            skipped = 0;
        } else
            skipped++;
    }
    return true;
}

bool time_columns_pack(const struct time_columns *columns,
                       struct number_stream out[static COLUMN_STREAM_COUNT]) {
    for (size_t i = 0; i < columns->count; i++)
        if (!pack_flow(&columns->flows[i], out))
            return false;
    return true;
}
