/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of decoded packets: the unit that the reader hands to the workers.
 *
 * The reader's thread fills it and must not touch it between reader_next() and reader_done(), while
 * workers read it without a lock. Marks record the clock and the progress at intervals, because
 * the reader is far ahead when the packets are processed. Lists have a fixed size and are mapped
 * once, so that filling a batch allocates nothing. */
#ifndef WIRETALE_BATCH_H
#define WIRETALE_BATCH_H

#include "update/update.h"

/* Packets of a batch: many enough that a flow has several in it; fewer if there are so many
 * flows that they need the memory. */
#define BATCH         196608u
#define BATCH_FIRST   16384u /* of the first batch; each of the next holds twice as many */
#define BATCH_SMALL   32768u
#define FLOWS_MANY    65536u
#define MARK_PACKETS  128u /* packets between two marks */
#define BATCH_HEADERS 1024u
/* Selected bytes of a batch, and those that the packets of one mark may need. */
#define BATCH_SELECTED (8u << 20)
#define MARK_SELECTED  (MARK_PACKETS * STREAM_BYTES)

/* The state of the reader after some packets of a batch. */
struct mark {
    uint32_t count;      /* packets of the batch up to here */
    uint64_t bytes_read; /* bytes read of the files so far */
    int64_t now_ns;      /* ns; the latest time that two successive packets reached */
    bool timed;          /* now_ns is known */
};

/* A packet of a batch, by the hash of its flow. An ICMP error has a second entry, by the hash of
 * the flow that it quotes. */
struct batch_entry {
    uint32_t hash;
    uint32_t packet; /* index in the batch */
};
#define ENTRY_QUOTED  (1u << 31) /* in `packet` */
#define BATCH_ENTRIES (BATCH + BATCH_HEADERS)

/* The last lists are those of which most batches use little, so that few huge pages are used in
 * part. */
struct batch {
    struct decoded_packet decoded[BATCH];
    struct batch_entry in_order[BATCH_ENTRIES]; /* packets in file order */
    struct batch_entry by_flow[BATCH_ENTRIES];  /* packets sorted by shard, then perhaps by flow */
    /* Where each shard begins in by_flow, and where the last one ends. */
    uint32_t parts[SHARDS + 1];
    struct mark marks[BATCH / MARK_PACKETS + 1];
    struct packet_extras *next_extras;       /* the next unused */
    struct headers *next_headers;            /* the next unused */
    uint32_t selected_bytes, selected_count; /* used bytes; packets that have some */
    size_t mark_count;
    size_t most;      /* capacity */
    size_t count;     /* packets to process */
    size_t entries;   /* of in_order */
    uint64_t packets; /* packets read, skipped ones included */
    bool out_of_memory;
    struct headers headers[BATCH_HEADERS]; /* of packets that keep theirs, in order */
    struct packet_extras extras[BATCH];    /* of packets that have extras, in order */
    uint8_t selected[BATCH_SELECTED];      /* first bytes, of packets in order */
};

/* Empties the batch and sets its capacity. */
void batch_begin(struct batch *batch, size_t most);

/* Fills `by_flow` and `parts` from `in_order`. Packets of a shard are sorted by flow if `by_flow`,
 * else they stay in file order. */
void batch_sort(struct batch *batch, bool by_flow);

#endif
