/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of decoded packets, the unit that is processed at once, and its chunks, each of which one
 * thread reads and decodes:
 *
 *   chunk_read() -> chunk_decode() -> chunk_complete()
 *
 * Chunks are read one after another. They are decoded at the same time, by as many threads, because
 * their bytes are kept until they are complete. They are completed one after another in file order,
 * which decides the rest: counts of interfaces, names of ports, numbers of encapsulations, first
 * bytes. Chunks can be completed while further ones are read.
 *
 * From reader_next() to reader_done() workers read a batch without a lock. Marks record the clock
 * and the progress at intervals, because the reader is far ahead when the packets are processed.
 * Lists have a fixed size and are mapped once, so that filling a batch allocates nothing; their
 * pages exist from the first use on. */
#ifndef WIRETALE_BATCH_H
#define WIRETALE_BATCH_H

#include "base/packet.h"
#include "local/local.h"
#include "pipeline/bpf_filter.h"
#include "pipeline/interface_counts.h"
#include "update/update.h"

/* The packets that are analyzed: those within [start_ns, end_ns) that pass the filter. */
struct wanted_packets {
    struct bpf_filter *filter; /* NULL for none */
    int64_t start_ns, end_ns;  /* ns */
    struct excluded_packets excluded;
};

/* Sets the interval, without a filter. */
static inline void wanted_packets_begin(struct wanted_packets *wanted, int64_t start_ns,
                                        int64_t end_ns) {
    *wanted = (struct wanted_packets){.start_ns = start_ns,
                                      .end_ns = end_ns,
                                      .excluded = {.first_ns = INT64_MAX, .last_ns = INT64_MIN}};
}

void wanted_packets_exclude(struct excluded_packets *excluded, int64_t time_ns);

/* `time_ns` counts for a packet without a time. */
static inline bool is_wanted(struct wanted_packets *wanted, const struct packet *packet,
                             int64_t time_ns) {
    bool timed = packet_is_timed(packet);
    if (timed && (time_ns < wanted->start_ns || time_ns >= wanted->end_ns)) {
        wanted_packets_exclude(&wanted->excluded, time_ns);
        return false;
    }
    return !wanted->filter || bpf_filter_pass(wanted->filter, packet);
}

struct clock {
    int64_t previous_ns, now_ns; /* ns; time of the packet before, and the time that two successive
                                    packets reached */
    bool timed;
};

/* The input of the reader. Until reader_stop() `files`, `wanted` and `clock` belong to the thread
 * that reads a chunk; `counts`, `local`, and the updater's encapsulations, ports and selection, to
 * the one that completes a chunk. */
struct reader_input {
    struct merged_input *files;
    struct wanted_packets wanted;
    struct clock clock;
    struct interface_counts counts;
    struct host_id_table *host_ids;
    struct local_exchanges *local; /* NULL if they are not wanted */
    struct updater *updater;
    unsigned jobs; /* threads, with that of the caller, at most PARTS_MOST */
    bool small;    /* the files are small: little memory will be used */
    bool again;    /* they were read before: memory has the rows of that reading */
};

/* Packets of a batch: many enough that a flow has several in it; fewer if the rows of an earlier
 * reading, or so many flows, first bytes and headers that are kept, need the memory. */
#define BATCH        163840u
#define BATCH_FIRST  16384u /* of the first batch; each of the next holds twice as many */
#define BATCH_SMALL  32768u
#define FLOWS_MANY   65536u
#define MARK_PACKETS 128u /* packets between two marks */
#define MARKS        (BATCH / MARK_PACKETS + 1)
#define EXTRAS_BLOCK 8u /* extras that a chunk takes at once */
/* Selected bytes of a batch, and those that the packets of one mark may need. */
#define BATCH_SELECTED (128u << 20)
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
#define BATCH_ENTRIES (1u << 19) /* two for each packet, and to the end of a huge page */

/* The last lists are those of which most batches use little, so that few huge pages are used in
 * part. */
struct batch {
    struct decoded_packet decoded[BATCH];       /* of packets in file order */
    struct batch_entry in_order[BATCH_ENTRIES]; /* packets to process, in file order */
    struct batch_entry by_flow[BATCH_ENTRIES];  /* sorted by shard, then perhaps by flow */
    /* Where each shard begins in by_flow, and where the last one ends. */
    uint32_t parts[SHARDS + 1];
    struct mark marks[MARKS];
    size_t mark_count;
    size_t entries;                          /* of in_order */
    size_t most;                             /* capacity */
    size_t count;                            /* packets read, also those that are not processed */
    size_t selectable;                       /* the most bytes of them that can be selected */
    uint64_t chunks_end;                     /* number of the chunk behind its last one */
    uint32_t selected_bytes, selected_count; /* used bytes; packets that have some */
    uint32_t header_count;
    atomic_uint extras_used; /* without order */
    bool out_of_memory;
    struct packet_extras extras[BATCH + (MARKS + 1) * EXTRAS_BLOCK];
    struct headers headers[BATCH];    /* of packets that keep theirs, in order */
    uint8_t selected[BATCH_SELECTED]; /* first bytes, of packets in order */
    /* Of all packets, if they are wanted. */
    struct packet_identity identities[BATCH];
};

/* Empties the batch and sets its capacity. */
void batch_begin(struct batch *batch, size_t most);

/* Fills `by_flow` and `parts` from `in_order`. Packets of a shard are sorted by flow if `by_flow`,
 * else they stay in file order. */
void batch_sort(struct batch *batch, bool by_flow);

#define CHUNK_PACKETS 2048u

struct packet_chunk {
    struct batch *batch;
    uint32_t first, count;            /* its packets in the batch */
    uint32_t next_extras, end_extras; /* unused extras of the batch */
    uint32_t pending_count;
    bool decoded;
    bool kept;                 /* its packets do not point into the window */
    struct packet_bytes bytes; /* theirs */
    struct packet_chunk *next; /* in a list of the reader */
    struct packet packets[CHUNK_PACKETS];
    int64_t times_ns[CHUNK_PACKETS]; /* that count: struct packet_info */
    /* Indices of packets that packet_complete() must complete, and their headers. */
    uint32_t pending[CHUNK_PACKETS + 1];
    struct headers headers[CHUNK_PACKETS + 1];
};

/* Returns whether another chunk may be read into the batch. */
bool chunk_has_room(const struct batch *batch);
/* Reads up to `most` packets, at most CHUNK_PACKETS, into the batch. Without packets, the input has
 * ended or nothing can be read now. */
void chunk_read(struct packet_chunk *chunk, struct reader_input *input, struct batch *batch,
                size_t most);
/* Makes the bytes of the last chunk that was read valid until this memory is used for another one.
 * Returns false if they are good only up to the next chunk_read(). */
bool chunk_keep(struct packet_chunk *chunk, struct reader_input *input);
void chunk_decode(struct packet_chunk *chunk, const struct reader_input *input);
void chunk_complete(struct packet_chunk *chunk, struct reader_input *input);
/* Decodes and completes a chunk packet by packet, while none is before it. */
void chunk_decode_alone(struct packet_chunk *chunk, struct reader_input *input);

#endif
