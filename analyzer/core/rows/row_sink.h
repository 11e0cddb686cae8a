/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a worker writes. Each worker has a sink of its own, without a lock, and
 * row_sink_join() makes the tables of the analysis of them.
 *
 * Packets are processed shard by shard and flow by flow, so that rows are written in any order.
 * Those of flows are put into groups of the flow's shard; rows of events, blocks, exchanges
 * and datagrams carry their position: the packet that wrote them, or the time between two packets.
 */
#ifndef WIRETALE_ROW_SINK_H
#define WIRETALE_ROW_SINK_H

#include <string.h>

#include "flow/flow.h"
#include "table/table.h"

/* row_sink.at: the number of a packet, then what was done there. Phases come after the packet. */
#define ORDER_BITS     20u
#define ORDER_QUOTED   (UINT64_C(1) << 17)   /* an ICMP error, for the flow that it quotes */
#define ORDER_PHASE(n) ((uint64_t)(n) << 18) /* 1 and 2: datagrams end; 3: flows end */

/* The measures for which traffic is judged, as bits. */
enum measure { MEASURE_LOSS = 1, MEASURE_RTT = 2, MEASURE_LIMITS = 4, MEASURES_ALL = 7 };

/* Why traffic was not judged: name, and the measures that it concerns at most. A flow that has some
 * of them nevertheless, as the round trip of QUIC's handshake, is counted for the others. */
#define JUDGED_REASONS(X)                                                                          \
    X(ONE_WAY, "one_way", MEASURES_ALL)                                                            \
    X(HEADERS_CUT, "headers_cut", MEASURES_ALL)                                                    \
    X(NO_TIMES, "no_times", MEASURE_RTT | MEASURE_LIMITS)                                          \
    X(NO_ROUND_TRIP, "no_round_trip", MEASURE_RTT)                                                 \
    X(SHORT, "short", MEASURE_LIMITS)                                                              \
    X(NO_ACKNOWLEDGMENTS, "no_acknowledgments", MEASURE_RTT | MEASURE_LIMITS)                      \
    X(ECHO, "echo", MEASURE_RTT | MEASURE_LIMITS)                                                  \
    X(DNS, "dns", MEASURES_ALL)                                                                    \
    X(QUIC, "quic", MEASURES_ALL)                                                                  \
    X(UDP, "udp", MEASURES_ALL)

enum judged_reason {
#define X(name, text, measures) UNJUDGED_##name,
    JUDGED_REASONS(X)
#undef X
        UNJUDGED_COUNT
};

struct traffic_sum {
    uint64_t packets, wire_bytes;
};

/* Traffic of all flows that are over, and the part that was not judged. */
struct judged_sums {
    struct traffic_sum whole;
    struct traffic_sum unjudged[UNJUDGED_COUNT][MEASURES_ALL + 1]; /* by reason and the measures
                                                                      that were not judged */
    struct traffic_sum protocols[256]; /* of flows of other protocols, by IP protocol */
};

void judged_add(struct judged_sums *sums, const struct judged_sums *other);

struct row_sink {
    struct judged_sums judged;
    struct table tables[TABLE_COUNT];
    struct string_table texts;
    const struct encapsulation_table *encapsulations; /* for flows.path */
    const struct flow_numbers *numbers;
    uint64_t at, minor; /* position of the rows that are written now */
    bool packets_only;  /* no table but packets is wanted */
    bool out_of_memory;
    uint64_t events_dropped, blocks_dropped, exchanges_dropped; /* rows above a bound */
    uint64_t elsewhere[TABLE_COUNT]; /* rows of the other sinks, before the batch at hand */
    /* Events of open flows: begun less ended by this worker, modulo the range. */
    uint64_t events_kept;
    uint64_t events_at,
        events_here; /* the position of the last event, and events before it there */
};

/* A worker's way to the rows. */
struct row_writer {
    struct row_sink *sink;
    struct pool *pool; /* memory of the flows at hand */
};

/* Opens the empty tables as part `part`; `packets_only` drops all events. row_sink_free() must be
 * called once. */
void row_sink_open(struct row_sink *sink, unsigned part, bool packets_only);
void row_sink_free(struct row_sink *sink);

/* Keeps rows that are added from now on in memory. */
void row_sink_stay(struct row_sink *sink);

/* Rows of flows go into these groups, one list for each table, from now on. */
void row_sink_use_groups(struct row_sink *sink, struct table_groups groups[static TABLE_COUNT]);

/* Moves the rows of another sink, which is empty then. Returns false without memory. */
bool row_sink_join(struct row_sink *sink, struct row_sink *other);

/* Puts the groups of a grouped table, by the numbers of flows in their shards, into the order of
 * the final numbers. Returns false without memory. */
bool row_sink_order_groups(struct row_sink *sink, enum table_number number,
                           struct table_groups *const shards[]);

/* Sorts the rows, once all are added. */
void row_sink_settle(struct row_sink *sink);

/* Begins the rows of a flow in a grouped table. Returns false without memory. */
static inline bool begin_flow_group(struct row_sink *sink, enum table_number number,
                                    const struct flow *flow) {
    bool begun =
        table_begin_group(&sink->tables[number], flow->number >> sink->numbers->shard_bits);
    sink->out_of_memory |= !begun;
    return begun;
}

/* Returns the rows of a table that is bounded, with those that are still events of a flow. */
static inline uint64_t row_sink_own(const struct row_sink *sink, enum table_number number) {
    uint64_t kept = number == TABLE_events ? sink->events_kept : 0;
    return sink->tables[number].row_count + kept;
}

/* The same of all sinks. */
static inline uint64_t row_sink_rows(const struct row_sink *sink, enum table_number number) {
    return row_sink_own(sink, number) + sink->elsewhere[number];
}

/* Adds a row to events, blocks, exchanges or datagrams. */
void row_sink_add(struct row_sink *sink, enum table_number number, const struct row *row);
/* The same at a position. */
void row_sink_add_at(struct row_sink *sink, enum table_number number, const struct row *row,
                     const struct row_order *order);

/* Adds a row to another table at once. */
static inline void add_row(struct row_sink *sink, enum table_number number, const struct row *row) {
    if (!table_add(&sink->tables[number], row))
        sink->out_of_memory = true;
}

/* Sorts the tables whose rows are written when something ends, which depends on the packets around
 * it: they are in the order of their beginnings instead. Returns false without memory. */
bool row_sink_sort(struct row_sink *sink);

/* Returns bit/s; `span_ns` > 0. */
static inline int64_t rate_bps(uint64_t bytes, int64_t span_ns) {
    __extension__ unsigned __int128 bits = (unsigned __int128)bytes * 8u * 1000000000u;
    bits /= (uint64_t)span_ns;
    return bits < INT64_MAX ? (int64_t)bits : INT64_MAX;
}

/* Returns the number of an address for a row. */
static inline int64_t add_address(struct row_sink *sink, unsigned version, const uint8_t *address) {
    int64_t number = string_table_add_address(&sink->texts, version, address);
    sink->out_of_memory |= number < 0;
    return number < 0 ? 0 : number;
}

/* Sets a column to the number of a stored text; a negative one means that memory ran out. */
static inline void row_set_stored(struct row_sink *sink, struct row *row, unsigned column,
                                  int64_t number) {
    sink->out_of_memory |= number < 0;
    if (number >= 0)
        row_set(row, column, number);
}

/* Stores a text. The column stays null if it is NULL or empty. */
static inline void row_set_text(struct row_sink *sink, struct row *row, unsigned column,
                                const char *text) {
    if (text && *text)
        row_set_stored(sink, row, column, string_table_add(&sink->texts, text));
}

/* Sets a column to a MAC address as text. */
void row_set_mac(struct row_sink *sink, struct row *row, unsigned column, const uint8_t mac[6]);

static inline void row_set_path(struct row_sink *sink, struct row *row, unsigned column,
                                const char *path) {
    row_set_stored(sink, row, column, string_table_add_bytes(&sink->texts, path, strlen(path)));
}

#endif
