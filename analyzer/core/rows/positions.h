/* SPDX-License-Identifier: Apache-2.0 */
/* Where a row of a shard belongs among the rows of all shards: the packet that was processed when
 * it was written, or the end of its flow. Only shards of `wiretale split` have a log; `wiretale
 * gather` sorts by it. Packets of a shard are processed in file order, by one worker. */
#ifndef WIRETALE_POSITIONS_H
#define WIRETALE_POSITIONS_H

#include "flow/reassembly.h"
#include "table/schema.h"

/* Tables whose rows have positions, in this order; of flows, it is that of the first packet. */
#define POSITION_TABLES 3u

enum position_kind {
    POSITION_PACKET,  /* while this packet was processed */
    POSITION_EXPIRED, /* when a flow had been silent for too long; `frame` is its number */
    POSITION_ENDED,   /* at the end of the capture; `frame` is the number of the flow */
    POSITION_DATAGRAM /* at the end of a datagram that began with this packet */
};

struct position {
    int64_t time_ns; /* that counts for the packet */
    uint64_t frame;
    uint32_t capture;
    uint32_t kind; /* enum position_kind */
};

struct position_list {
    struct position *list;
    size_t count, room;
};

/* Greatest numbers at once, of which the limits are those of the whole capture. */
enum peak { PEAK_FLOWS, PEAK_DATAGRAMS, PEAK_FIRST_BYTES, PEAK_MEMORY, PEAKS };

struct position_log {
    struct position_list lists[POSITION_TABLES];
    const struct packet_info *packet; /* NULL if none is processed */
    const struct datagram *datagram;  /* that is at its end */
    bool ended;                       /* the capture is over */
    bool out_of_memory;
    uint64_t
        uncertain; /* packets of flows that the whole capture may have ended: flow_check_late() */
    uint64_t peaks[PEAKS]; /* by enum peak */
};

/* Returns the list of a table, POSITION_TABLES if its rows have no positions. */
unsigned position_list_of(enum table_number number);

/* Notes the position of the row that was added last; `log` may be NULL, as below. `flow` is the
 * number of the flow that ends, if one does. */
void position_note(struct position_log *log, enum table_number number, uint32_t flow);

/* Rows are of this packet from now on, or of none. */
static inline void position_begin_packet(struct position_log *log,
                                         const struct packet_info *packet) {
    if (log)
        log->packet = packet;
}

/* The capture is over. */
static inline void position_log_end(struct position_log *log) {
    if (log)
        log->ended = true;
}

/* Rows are of this datagram from now on, or of none, unless a packet is processed. */
static inline void position_begin_datagram(struct position_log *log,
                                           const struct datagram *datagram) {
    if (log)
        log->datagram = datagram;
}

#endif
