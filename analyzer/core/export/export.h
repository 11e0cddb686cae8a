/* SPDX-License-Identifier: Apache-2.0 */
/* Tables out of the core: as Arrow streams, JSON, typed arrays, sums over time, and packets and
 * columns of time for the report. */
#ifndef WIRETALE_EXPORT_H
#define WIRETALE_EXPORT_H

#include "export/arrow_struct.h"
#include "table/table.h"

/* --- arrow_stream.c ------------------------------------------------------------------------ */

/* Exports a table as an Arrow C stream. */

/* Times are timestamp[ns, UTC] and durations duration[ns]; or some are int64, for consumers with a
 * coarser resolution. */
enum arrow_integers { INTEGERS_NONE, INTEGERS_DURATIONS, INTEGERS_TIMES_TOO };

/* Writes the schema into `out`: a struct with one child per column, and the number of the table if
 * they are `numbered`. Words are dictionaries. Returns 0, or ENOMEM with nothing to release. */
int arrow_schema_export(const struct schema *schema, enum arrow_integers integers, bool numbered,
                        struct ArrowSchema *out);

/* Writes a stream over a finished table into `out`. `owner` must outlive the stream: at its
 * release, `disown(owner)` is called from the releasing thread. Returns 0, or ENOMEM with nothing
 * to release. */
int arrow_stream_export(const struct table *table, enum arrow_integers integers,
                        struct ArrowArrayStream *out, void *owner, void (*disown)(void *owner));

/* Returns the next table, which must be valid until the call after; NULL at the end, or with an
 * error. */
typedef const struct table *arrow_further(void *owner, const char **error);
/* Makes a new stream over a table one over tables with the same columns, which are made while it is
 * read. */
void arrow_stream_follow(struct ArrowArrayStream *stream, arrow_further *further);

#define ARROW_TABLE_NUMBER "table_number"
/* The same for the rows of `count` tables of one schema, at least one, one after another, with the
 * number of the table as last column. Takes over `tables`, from malloc(), unless it fails. */
int arrow_stream_join(const struct table **tables, size_t count, enum arrow_integers integers,
                      struct ArrowArrayStream *out, void *owner, void (*disown)(void *owner));

/* --- table_json.c -------------------------------------------------------------------------- */

/* Writes a table as JSON (RFC 8259), in pieces: an array of row objects, or a line for each row. */

struct json_form {
    const bool *wanted; /* by column; NULL: all */
    bool lines;         /* a row is a line, without columns that are null in it */
};

/* Returns the largest possible size of a row in bytes; a piece must have at least that. */
size_t table_json_room(const struct schema *schema);

/* Writes rows from the cursor on, as many as certainly fit. Returns the bytes written, 0 at the
 * end. Of an array, the first piece begins with [ and commas separate rows; the caller must write
 * the closing ]. */
size_t table_json(const struct table *table, struct table_cursor *cursor,
                  const struct json_form *form, char *out, size_t room);

/* --- column_pack.c ------------------------------------------------------------------------- */

/* Packs columns as little-endian typed arrays for JavaScript and Python. */

/* The format of a packed column. Each value becomes (value - offset) / divisor, rounded towards 0
 * and clamped for an integer code. Null is NaN, or the maximum of an integer code. */
struct column_pack {
    unsigned column; /* index of a column of type INT, REAL, BOOL or WORD */
    char code;       /* b int8, B uint8, H uint16, i int32, I uint32, f float32, d float64 */
    bool delta; /* integer codes: wrapping difference to the previous value (the first: to 0) */
    int64_t offset;
    int64_t divisor; /* must not be 0 */
};

/* The rows of some flows, in ascending order; NULL chooses all rows. */
struct flow_choice {
    const uint32_t *flows;
    size_t count;
};

/* Returns the bytes per value, 0 if the code is unknown. */
size_t column_pack_size(char code);
/* Returns the number of chosen rows. If there is a choice, this is a pass over the table. */
size_t column_pack_rows(const struct table *table, const struct flow_choice *choice);
/* Writes the chosen rows of `count` columns (at most COLUMNS_MAX), each to its own output, in one
 * pass over the table. */
void column_pack(const struct table *table, const struct column_pack *packs, size_t count,
                 const struct flow_choice *choice, uint8_t *const *out);

/* --- time_sums.c --------------------------------------------------------------------------- */

/* Sums of columns over time. */
struct time_sums {
    unsigned start, width;   /* columns: the time and the duration of a row, which must be known */
    int64_t base_ns, bin_ns; /* start of the first bin, and the width of each, more than 0 */
    size_t bins;
    const unsigned *columns; /* of integers; null counts as 0 */
    size_t column_count;
    double *out; /* `bins` sums of each column */
};

/* Writes the sums. A row outside the bins counts for nothing, one across their ends in part. */
void time_sums(const struct table *table, const struct time_sums *sums);

/* Sums of each flow over time: an entry for each bin in which it has any. */
struct flow_sums {
    struct time_sums sums; /* `out` is room for one flow */
    unsigned flow;         /* column */
    size_t most, count;    /* entries */
    uint32_t *flows, *in_bins;
    double *values; /* `most` of each column */
};

/* Writes the entries, those of a flow in order of time. Returns false if there are more than
 * `most`. */
bool flow_sums(const struct table *table, struct flow_sums *each);

/* --- packet_pack.c ------------------------------------------------------------------------- */

/* Packs the packets table for the report's page: one stream of numbers per column.
 *
 * A number is a zigzag varint (as in Protocol Buffers). Values that the previous packet of the flow
 * and direction predicts are omitted, so that a steady transfer takes a few bytes per packet:
 *
 *   STREAM    A NUMBER FOR               IS
 *   who       each packet                2 * index of the flow in the given list + direction
 *   time      each packet                ns since the previous packet (the first: since `base_ns`)
 *   frame     each packet                frame number minus the previous one
 *   capture   each packet                interfaces row
 *   known     each packet                bits of enum packet_known: which of the following exist
 *   size      each packet                payload minus the previous one
 *   header    each packet                bytes of the IP packet without payload, minus the previous
 *   sequence  PACKET_SEQUENCE            position minus the end of the previous segment
 *   ack       PACKET_ACK                 position minus the previous one
 *   window    PACKET_WINDOW              bytes minus the previous ones
 *   flags     PACKET_FLAGS               minus the previous ones
 *   unique    PACKET_REPEATED            new bytes (if absent: all of the payload)
 *   rtt       PACKET_RTT                 ns minus the time since the segment that ends at the ACK,
 *                                        if it is the last one at its place in a table of segments
 *   offset    PACKET_FRAGMENT            bytes
 *   flight    PACKET_FLIGHT              bytes minus the previous ones
 *   opposite  PACKET_OPPOSITE            bytes of the other direction minus the previous ones
 *   sacks     PACKET_SACK                SACK blocks
 *   sack      each SACK block            start minus that of the block before (the first: the ACK)
 *   sacked    each SACK block            bytes
 *
 * "Previous" means the previous packet of the same flow and direction, except for time and frame; 0
 * if there is no such packet.
 */

/* clang-format off */
#define PACKET_STREAMS(X)                                                                          \
    X(who) X(time) X(frame) X(capture) X(known) X(size) X(sequence) X(ack) X(window) X(flags)      \
    X(unique) X(rtt) X(offset) X(sacks) X(sack) X(sacked) X(header) X(flight) X(opposite)
/* clang-format on */

enum packet_stream {
#define X(name) STREAM_##name,
    PACKET_STREAMS(X)
#undef X
        STREAM_COUNT
};

enum packet_known {
    PACKET_SEQUENCE = 1,
    PACKET_ACK = 2,
    PACKET_WINDOW = 4,
    PACKET_FLAGS = 8,
    PACKET_REPEATED = 16,
    PACKET_RTT = 32,
    PACKET_FRAGMENT = 64,
    PACKET_SACK = 128, /* requires PACKET_ACK */
    PACKET_FLIGHT = 256,
    PACKET_OPPOSITE = 512,
};

/* Zigzag varints, one after another. */
struct number_stream {
    uint8_t *bytes;
    size_t used, room;
};

#define VARINT_MAX 10 /* bytes */
/* Makes room for so many further numbers; returns false without memory. */
static inline bool number_stream_reserve(struct number_stream *stream, size_t numbers) {
    return list_grow(&stream->bytes, &stream->room, stream->used + numbers * VARINT_MAX, 1);
}

/* There must be room. */
static inline void number_stream_put(struct number_stream *stream, int64_t value) {
    uint64_t bits = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
    for (; bits >= 0x80; bits >>= 7)
        stream->bytes[stream->used++] = (uint8_t)bits | 0x80;
    stream->bytes[stream->used++] = (uint8_t)bits;
}

struct packet_streams {
    struct number_stream streams[STREAM_COUNT];
    uint64_t packets; /* packed packets: those with a time stamp, of a flow in the list */
};

extern const char *const packet_stream_names[STREAM_COUNT];

/* Packs the rows of `count` flows. Bytes in flight are left out unless `flights`: of all packets,
 * the page computes them. Returns false if memory is exhausted; the streams must be freed in either
 * case. */
bool packet_pack(const struct table *packets, const uint32_t *flows, size_t count, int64_t base_ns,
                 bool flights, struct packet_streams *out);
void packet_streams_free(struct packet_streams *streams);

/* --- time_columns.c ------------------------------------------------------------------------ */

/* The picture of flows whose packets are not in the page: for each of equal columns of time the
 * least and greatest of each series of the figure, and the bytes of IP. Of TCP one direction is
 * drawn, the main one.
 *
 *   STREAM         A NUMBER FOR                IS
 *   scale          each flow, each of          bits by which values of it are shifted to the right
 *                  enum column_scale
 *   filled         each flow                   columns with packets
 *   column         each of these               columns without packets before it
 *   known          each of these               bits of enum column_range: which of the following
 *   NAME_least     each known range            least, minus what column_ranges predicts
 *   NAME_size      each known range            greatest minus least
 *   flight_last    each known flight           the last value minus the least
 *   ip0, ip1       each column with packets    bytes of the direction until its end, minus those
 *                                              until the end of the one before
 *
 * The least is rounded down and the greatest up. Times are in ns, as time_code() makes them. */
/* clang-format off */
#define COLUMN_RANGES(X)                                                                           \
    X(data) X(again) X(ack) X(window) X(sack) X(flight) X(room) X(rtt0) X(rtt1) X(other)           \
    X(spacing0) X(spacing1)
/* clang-format on */

enum column_range {
#define X(name) RANGE_##name,
    COLUMN_RANGES(X)
#undef X
        RANGE_COUNT
};

enum column_scale { SCALE_POSITION, SCALE_FLIGHT, SCALE_ROOM, SCALE_IP0, SCALE_IP1, SCALE_COUNT };

enum column_stream {
    COLUMNS_scale,
    COLUMNS_filled,
    COLUMNS_column,
    COLUMNS_known,
    COLUMNS_flight_last,
    COLUMNS_ip0,
    COLUMNS_ip1,
#define X(name) COLUMNS_##name##_least, COLUMNS_##name##_size,
    COLUMN_RANGES(X)
#undef X
        COLUMN_STREAM_COUNT
};

extern const char *const column_stream_names[COLUMN_STREAM_COUNT];

/* What the sequence panel of a flow shows: stream positions, payload so far, or packets so far. */
enum drawn_kind { DRAWN_TCP, DRAWN_PAYLOAD, DRAWN_PACKETS };

#define TIME_COLUMNS_MOST (1u << 20) /* of all flows */

struct column_flow {
    uint32_t flow;
    int64_t begin_ns, width_ns; /* of a column, above 0 */
    uint32_t count;             /* columns, above 0 */
    uint8_t main;               /* direction whose data are drawn, of TCP */
    uint8_t kind;               /* enum drawn_kind */
};

struct time_columns;
/* Returns NULL without memory, or if there are more than TIME_COLUMNS_MOST columns. */
struct time_columns *time_columns_open(const struct column_flow *flows, size_t count);
/* Adds a row of packets, which must come in order; others than those of the flows are ignored. */
void time_columns_add(struct time_columns *columns, const struct row *row);
/* Packs all flows. Returns false without memory; the streams must be freed in either case. */
bool time_columns_pack(const struct time_columns *columns,
                       struct number_stream out[static COLUMN_STREAM_COUNT]);
void time_columns_close(struct time_columns *columns);

#endif
