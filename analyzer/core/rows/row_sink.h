/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that an analysis fills, shared by its workers.
 *
 * Packets of a batch may be processed flow by flow instead of in file order, so that the state of a
 * flow is fetched from memory once for all of them; and flows that end at once end in the order in
 * which they are in memory. Output that depends on the order of packets (numbers of flows, rows of
 * events and blocks) is buffered then, and row_sink_end_batch() emits it as if every packet had
 * been processed in file order. Both ways must give the same rows.
 *
 * Workers hold the lock while they add or amend a row, number a flow, or count what is not their
 * own.
 */
#ifndef WIRETALE_ROW_SINK_H
#define WIRETALE_ROW_SINK_H

#include <pthread.h>

#include "flow/flow.h"
#include "table/table.h"

#define PENDING_COLUMNS 16         /* of a table whose rows are buffered */
#define MAX_PENDING     (1u << 18) /* rows of flows that end at once */

struct pending_row {
    uint32_t batch_index;           /* of the packet, or of the flow, that it belongs to */
    uint32_t known;                 /* bit i: value[i] is not null */
    int64_t value[PENDING_COLUMNS]; /* as in struct row */
};

struct pending_rows {
    struct pending_row *rows;
    size_t count, room;
};

/* A flow that the batch began. */
struct new_flow {
    uint32_t batch_index; /* of its first packet */
    struct flow *flow;    /* NULL if it is over */
};

/* Why traffic was not judged: name, and the measures that it concerns. */
#define JUDGED_REASONS(X)                                                                          \
    X(ONE_WAY, "one_way", "loss rtt limits")                                                       \
    X(HEADERS_CUT, "headers_cut", "loss rtt limits")                                               \
    X(NO_TIMES, "no_times", "rtt limits")                                                          \
    X(NO_ROUND_TRIP, "no_round_trip", "rtt")                                                       \
    X(SHORT, "short", "limits")                                                                    \
    X(NO_ACKNOWLEDGMENTS, "no_acknowledgments", "rtt limits")                                      \
    X(DNS, "dns", "loss rtt limits")                                                               \
    X(QUIC, "quic", "loss rtt limits")                                                             \
    X(UDP, "udp", "loss rtt limits")

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
    struct traffic_sum unjudged[UNJUDGED_COUNT]; /* by reason */
    struct traffic_sum protocols[256];           /* of flows of other protocols, by IP protocol */
};

/* Initials of a flow whose ClientHello is still to be decrypted; see quic_rows.c. */
struct quic_name {
    uint64_t row; /* of handshakes */
    uint32_t flow;
    int64_t initials; /* number of a stored text */
};

struct quic_names {
    struct quic_name *list;
    size_t count, room;
};

struct row_sink {
    struct judged_sums judged;
    struct table tables[TABLE_COUNT];
    struct string_table texts;
    struct encapsulation_table *encapsulations; /* read only, for flows.path */
    pthread_mutex_t lock;                       /* recursive: a flow may end while it is held, and
                                                   then writes its last events */
    bool packets_only;                          /* no table but packets is wanted */
    bool out_of_memory;
    uint64_t events_dropped, blocks_dropped, queries_dropped,
        turns_dropped;   /* rows above a bound */
    bool buffered;       /* between begin_batch and end_batch */
    uint32_t first_flow; /* number of the first flow that the batch began */
    struct new_flow *new_flows;
    size_t new_flow_count, new_flow_room;
    struct quic_names quic_names; /* once all rows are added */
    struct pending_rows events, blocks, queries;
};

/* A worker's way to the rows. */
struct row_writer {
    struct row_sink *sink;
    /* Of the packet at hand in its batch; of a flow that is over, its number. */
    uint32_t batch_index;
    struct pool pool; /* memory of the flows that the worker processes */
};

/* Opens the empty tables; `packets_only` drops all events. row_sink_free() must be called once. */
void row_sink_open(struct row_sink *sink, bool packets_only);
void row_sink_free(struct row_sink *sink);
/* Frees the buffers, which nothing needs once all rows are added. */
void row_sink_free_buffers(struct row_sink *sink);

static inline void row_sink_lock(struct row_sink *sink) {
    pthread_mutex_lock(&sink->lock);
}

static inline void row_sink_unlock(struct row_sink *sink) {
    pthread_mutex_unlock(&sink->lock);
}

/* Until row_sink_end_batch() packets may come in any order, from several workers, each of which
 * sets its batch_index. `first_flow` is the number of the next flow. */
void row_sink_begin_batch(struct row_sink *sink, uint32_t first_flow);
void row_sink_end_batch(struct row_sink *sink);

/* Sets the batch index to that of a flow that is over. If many flows end at once and much is
 * buffered, emits it first. `next_flow` is as in row_sink_begin_batch(). */
void row_writer_begin_flow(struct row_writer *writer, const struct flow *flow, uint32_t next_flow);

/* Notes that a flow was numbered, or that it is over. */
void row_sink_note_new_flow(const struct row_writer *writer, struct flow *flow);
void row_sink_note_end(struct row_sink *sink, const struct flow *flow);

/* Adds a row to events, blocks or queries; returns its number, by which it can be amended. */
uint64_t row_sink_add(const struct row_writer *writer, enum table_number number,
                      const struct row *row);
/* Returns the rows of events, blocks or queries, buffered ones included. */
uint64_t row_sink_rows(const struct row_sink *sink, enum table_number number);

/* Adds a row to another table at once. */
static inline void add_row(struct row_sink *sink, enum table_number number, const struct row *row) {
    if (!table_add(&sink->tables[number], row))
        sink->out_of_memory = true;
}

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

static inline void row_set_path(struct row_sink *sink, struct row *row, unsigned column,
                                const char *path) {
    row_set_stored(sink, row, column, string_table_add_path(&sink->texts, path));
}

#endif
