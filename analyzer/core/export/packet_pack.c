/* SPDX-License-Identifier: Apache-2.0 */
/* Packs packets for the report's page (format: PACKET_STREAMS in export.h). One pass over the
 * packets table; memory is the streams, 80 bytes per listed flow, 4 bytes per flow number up to the
 * greatest in the list, and 3 MiB for the segments that an ACK may complete. A stream doubles its
 * room; each packet adds at most SACK_BLOCKS numbers to a stream. */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

/* columns sack_start, sack_end and those of further blocks, which end before flags */
#define SACK_BLOCKS ((packets_flags - packets_sack_start) / 2)
#define NOT_LISTED  UINT32_MAX
#define SENT_PLACES (1u << 17)

const char *const packet_stream_names[STREAM_COUNT] = {
#define X(name) #name,
    PACKET_STREAMS(X)
#undef X
};

/* The previous packet of one direction of a flow. */
struct before {
    int64_t size, header, end, ack, window, flags, flight, opposite;
};

/* A segment of a side, by its end: the one sent last of those with this place. */
struct sent {
    int64_t end, time_ns;
    uint32_t who;
};

struct packing {
    struct packet_streams *out;
    struct before *before; /* two per flow */
    struct sent *sent;     /* SENT_PLACES of them */
    uint32_t *places;      /* by flow number, the place in the list */
    uint32_t place_count;
    int64_t time_ns, frame;
    bool flights;
};

/* make_rooms() has reserved the space. */
static void put(struct packing *packing, enum packet_stream stream, int64_t value) {
    number_stream_put(&packing->out->streams[stream], value);
}

static bool make_rooms(struct packet_streams *out) {
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        if (!number_stream_reserve(&out->streams[i], SACK_BLOCKS))
            return false;
    return true;
}

/* Wrapping difference; the page's values never wrap, because stream positions stay below 2^53. */
static int64_t less(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t change(int64_t value, int64_t *before) {
    int64_t difference = less(value, *before);
    *before = value;
    return difference;
}

/* The column whose value decides about each bit of enum packet_known, from the lowest. */
static const unsigned known_columns[] = {
    packets_sequence,        packets_acknowledged,
    packets_window,          packets_flags,
    packets_unique_bytes,    packets_rtt_ns,
    packets_fragment_offset, packets_sack_start,
    packets_flight_bytes,    packets_opposite_flight_bytes,
};

/* Most segments are new, so that unique_bytes is written only if it differs from the payload. */
static unsigned known_of(const struct row *row) {
    unsigned known = 0;
    for (unsigned i = 0; i < sizeof known_columns / sizeof *known_columns; i++)
        known |= (unsigned)row_known(row, known_columns[i]) << i;
    if (row->value[packets_unique_bytes] == row->value[packets_payload_bytes])
        known &= ~(unsigned)PACKET_REPEATED;
    return known & PACKET_ACK ? known : known & ~(unsigned)PACKET_SACK;
}

/* Also in page/numbers.js. */
static struct sent *sent_place(struct packing *packing, uint32_t who, int64_t end) {
    uint32_t mixed = (uint32_t)end * 0x9E3779B1u + who * 0x85EBCA6Bu;
    return &packing->sent[mixed >> 15];
}

/* The RTT of the segment that ends at the acknowledged byte; 0 if it is not at its place. */
static int64_t expected_rtt(struct packing *packing, const struct row *row, uint32_t who) {
    int64_t end = row->value[packets_acknowledged];
    const struct sent *sent = sent_place(packing, who ^ 1, end);
    bool is_it = sent->end == end && sent->who == (who ^ 1);
    return is_it ? less(row->value[packets_time_ns], sent->time_ns) : 0;
}

static void put_sack(struct packing *packing, const struct row *row) {
    int64_t before = row->value[packets_acknowledged];
    unsigned count = 1;
    while (count < SACK_BLOCKS && row_known(row, packets_sack_start + 2 * count))
        count++;
    put(packing, STREAM_sacks, count);
    for (unsigned i = 0; i < count; i++) {
        int64_t start = row->value[packets_sack_start + 2 * i];
        put(packing, STREAM_sack, change(start, &before));
        put(packing, STREAM_sacked, less(row->value[packets_sack_end + 2 * i], start));
    }
}

static void put_known(struct packing *packing, uint32_t who, const struct row *row,
                      unsigned known) {
    struct before *before = &packing->before[who];
    const int64_t *value = row->value;
    if (known & PACKET_SEQUENCE) {
        put(packing, STREAM_sequence, less(value[packets_sequence], before->end));
        before->end = value[packets_sequence] + value[packets_payload_bytes];
        if (value[packets_payload_bytes] && !(known & PACKET_REPEATED))
            *sent_place(packing, who, before->end) =
                (struct sent){before->end, value[packets_time_ns], who};
    }
    if (known & PACKET_ACK)
        put(packing, STREAM_ack, change(value[packets_acknowledged], &before->ack));
    if (known & PACKET_WINDOW)
        put(packing, STREAM_window, change(value[packets_window], &before->window));
    if (known & PACKET_FLAGS)
        put(packing, STREAM_flags, change(value[packets_flags], &before->flags));
    if (known & PACKET_RTT)
        put(packing, STREAM_rtt,
            less(value[packets_rtt_ns], known & PACKET_ACK ? expected_rtt(packing, row, who) : 0));
    if (known & PACKET_REPEATED)
        put(packing, STREAM_unique, value[packets_unique_bytes]);
    if (known & PACKET_FRAGMENT)
        put(packing, STREAM_offset, value[packets_fragment_offset]);
    if (known & PACKET_SACK)
        put_sack(packing, row);
    if (known & PACKET_FLIGHT)
        put(packing, STREAM_flight, change(value[packets_flight_bytes], &before->flight));
    if (known & PACKET_OPPOSITE)
        put(packing, STREAM_opposite,
            change(value[packets_opposite_flight_bytes], &before->opposite));
}

static void pack_row(struct packing *packing, const struct row *row, uint32_t place) {
    const int64_t *value = row->value;
    uint32_t who = 2 * place + (uint32_t)value[packets_direction];
    struct before *before = &packing->before[who];
    unsigned known =
        known_of(row) & (packing->flights ? ~0u : ~(unsigned)(PACKET_FLIGHT | PACKET_OPPOSITE));
    put(packing, STREAM_who, who);
    put(packing, STREAM_time, change(value[packets_time_ns], &packing->time_ns));
    put(packing, STREAM_frame, change(value[packets_frame], &packing->frame));
    put(packing, STREAM_capture, value[packets_capture]);
    put(packing, STREAM_known, known);
    put(packing, STREAM_size, change(value[packets_payload_bytes], &before->size));
    int64_t header = less(value[packets_ip_bytes], value[packets_payload_bytes]);
    put(packing, STREAM_header, change(header, &before->header));
    put_known(packing, who, row, known);
    packing->out->packets++;
}

/* Maps flow numbers to places in the list. If a flow is listed twice, its last place counts. */
static bool list_places(struct packing *packing, const uint32_t *flows, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = flows[i] >= most && flows[i] < NOT_LISTED ? flows[i] + 1 : most;
    packing->places = malloc(((size_t)most + 1) * sizeof *packing->places);
    packing->before = calloc(2 * count + 1, sizeof *packing->before);
    packing->sent = malloc(SENT_PLACES * sizeof *packing->sent);
    if (!packing->places || !packing->before || !packing->sent)
        return false;
    memset(packing->places, 0xFF, ((size_t)most + 1) * sizeof *packing->places);
    memset(packing->sent, 0xFF, SENT_PLACES * sizeof *packing->sent); /* of nobody */
    packing->place_count = most;
    for (size_t i = 0; i < count; i++)
        if (flows[i] < most)
            packing->places[flows[i]] = (uint32_t)i;
    return true;
}

static bool pack_rows(struct packing *packing, const struct table *packets) {
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(packets, &cursor, &row)) {
        uint64_t flow = (uint64_t)row.value[packets_flow];
        uint32_t place = flow < packing->place_count ? packing->places[flow] : NOT_LISTED;
        if (place == NOT_LISTED || !row_known(&row, packets_time_ns))
            continue;
        if (!make_rooms(packing->out))
            return false;
        pack_row(packing, &row, place);
    }
    return true;
}

bool packet_pack(const struct table *packets, const uint32_t *flows, size_t count, int64_t base_ns,
                 bool flights, struct packet_streams *out) {
    struct packing packing = {.out = out, .time_ns = base_ns, .flights = flights};
    memset(out, 0, sizeof *out);
    bool packed = list_places(&packing, flows, count) && pack_rows(&packing, packets);
    free(packing.places);
    free(packing.before);
    free(packing.sent);
    return packed;
}

void packet_streams_free(struct packet_streams *streams) {
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        free(streams->streams[i].bytes);
}
