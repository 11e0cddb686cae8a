/* SPDX-License-Identifier: Apache-2.0 */
/* What the reading hands on at once. */
#ifndef WIRETALE_BATCH_H
#define WIRETALE_BATCH_H

#include "update/update.h"

/* Packets of a batch: enough that many of a flow's come together; fewer while there are so many
 * flows that these need the memory. */
#define BATCH         196608u
#define BATCH_FIRST   16384u /* of the first one; the next hold twice as many each */
#define BATCH_SMALL   65536u
#define FLOWS_MANY    65536u
#define MARK_PACKETS  128u /* between two marks */
#define BATCH_HEADERS 1024u

/* How far the reading had come after some packets of a batch. */
struct mark {
    uint32_t count;      /* of the batch's packets_decoded */
    uint64_t bytes_read; /* of the files, so far */
    int64_t now_ns;      /* the latest time that two packets in a row reached */
    bool timed;          /* it is known */
};

/* An decoded of a batch whose turn it is. */
struct turn {
    uint32_t hash;
    uint32_t packet; /* number in the batch */
};

struct batch {
    struct decoded_packet packets_decoded[BATCH];
    struct packet_extras extras[BATCH];    /* of some packets_decoded, from the first on */
    struct headers headers[BATCH_HEADERS]; /* that packets_decoded point to, from the first on */
    struct turn order[BATCH];              /* the packets_decoded' turns as they came */
    struct turn turns[BATCH];              /* those of a flow together, and so those of a part */
    uint32_t parts[FLOW_PARTS + 1];        /* where the turns of each begin, and where they end */
    struct mark marks[BATCH / MARK_PACKETS + 1];
    struct packet_extras *next_extras; /* not yet of an decoded */
    struct headers *next_headers;      /* not yet pointed to */
    size_t mark_count;
    size_t most;      /* packets_decoded that it may come to hold */
    size_t count;     /* of packets_decoded: packets that concern somebody */
    uint64_t packets; /* read, those left out included */
    bool out_of_memory;
};

/* Empties the batch, for `most` packets_decoded from now on. */
void batch_begin(struct batch *batch, size_t most);

/* The turns by flow, from those in order. */
void batch_set_turns(struct batch *batch);

#endif
