/* SPDX-License-Identifier: Apache-2.0 */
/* Packets into the state of their flows: the state of a shard, the worker that processes it, the
 * packet as the reader hands it on, and one function for each step.
 *
 *   dispatch -> fragments -> flow_lookup -> flow_update -> tracker/, sequence_update -> rows/
 *
 * A packet is decoded into a struct decoded_packet, of two cache lines, and processed later by the
 * worker that has its shard (flow/shard.h). Shards share nothing that changes, so that nothing is
 * locked, and each processes its packets in file order, at least those of one flow. Which worker
 * processes a shard does not matter: it owns the rows that it writes.
 */
#ifndef WIRETALE_UPDATE_H
#define WIRETALE_UPDATE_H

#include <stdatomic.h>

#include "flow/flow_table.h"
#include "identity/identity.h"
#include "rows/rows.h"
#include "update/capture_ports.h"
#include "update/pair_choice.h"

struct packet_extras;
struct updater;

/* The packet that began a flow, in a shard of a cluster. */
struct flow_begin {
    int64_t time_ns;
    uint64_t frame;
    bool late; /* between two packets, because its datagram ended */
};

/* Flows that belong together, and their datagrams. */
struct shard {
    struct flow_table *flows;
    struct reassembly *datagrams;            /* NULL before the first fragment */
    struct table_groups groups[TABLE_COUNT]; /* rows of flows by their number in the shard */
    uint64_t *firsts;                        /* row_sink.at when a flow began, by number */
    struct flow_begin *begins;               /* likewise, if they are wanted */
    uint32_t *begun;                         /* numbers of the flows that have no final one yet */
    uint32_t *spare;                         /* numbers that flows had whose rows were taken */
    size_t first_room, begin_room, final_room, spare_room, spare_count;
    size_t begun_room, begun_count;
    struct pool pool;    /* of the lists of its flows and datagrams */
    uint32_t flow_count; /* the next number that no flow had yet */
    uint32_t number;     /* of the shard */
};

struct worker {
    struct row_writer rows;
    struct row_sink sink;
    struct event_sink events;
    struct updater *updater;
    struct shard *shard;                /* at hand */
    struct flow *found;                 /* of the packet before; NULL if it may have ended */
    const struct packet_extras *extras; /* of the batch at hand */
    const uint8_t *selected;            /* the selected bytes of the batch at hand */
    struct allowance allowance;         /* for the pools of the shards that it processes */
    struct pool ending;                 /* memory of flows at the end of the capture */
    struct pool nothing;                /* an empty pool, for flows whose packets are not counted */
    struct tcp_recovery_state spare;    /* absorbs counts if memory has run out */
    int64_t now_ns;                     /* of the sweep */
    uint64_t sweep;     /* row_sink.at between two packets; 0 while one is processed */
    bool at_end;        /* the sweep ends all datagrams */
    uint64_t *mirrored; /* by interface: duplicates made by the capture */
    size_t mirrored_room;
    struct port_pairs *pairs; /* NULL without one */
    /* What identifies the packets of the batch at hand, and the position and number of the first.
     */
    const struct packet_identity *identities;
    uint64_t batch_at, batch_packets;
    /* Flows that hold first bytes: begun less ended by this worker, and the sum of the others
     * before the batch at hand; see FIRST_BYTES_FLOWS. */
    int64_t holding_first_bytes, holding_elsewhere;
};

/* A flow that may be evicted. */
struct eviction_candidate {
    int64_t due_ns;
    uint64_t first; /* flow_first() */
    struct flow *flow;
    uint32_t number; /* of the flow: its memory may have been used again */
};

/* The live flows by the time at which they are due, a heap. */
struct eviction {
    struct eviction_candidate *heap;
    size_t count, room;
    bool current; /* it has all live flows */
};

struct updater {
    struct shard_key seeds;
    struct flow_numbers numbers;
    struct shard *shards;         /* 1 << numbers.shard_bits */
    struct shard *owners[SHARDS]; /* the shard of a hash, by shard_of_flow() */
    struct flow_memory *memory;
    struct encapsulation_table *encapsulations; /* packet_complete() adds to it */
    struct worker *workers;
    unsigned worker_count;
    struct pool_memory pool_memory; /* of the lists of all flows */
    bool ending; /* several workers may process flows of one shard: each uses a pool of its own */
    uint32_t max_flows;
    bool serial;        /* the first worker alone processes packets, in the order of the file */
    bool packets_all;   /* every flow's packets are wanted as rows */
    bool identified;    /* with what identifies them, and with the ends of flows */
    bool time_spans;    /* of the flows whose packets are wanted */
    bool begins;        /* the packet that begins each flow is noted */
    int64_t block_size; /* of TCP streams without block headers, bytes; 0 for none */
    uint64_t packet_rows_most, packet_rows_dropped;
    uint8_t *packet_flows;       /* a bit for each flow whose packets are wanted */
    uint32_t packet_flow_count;  /* bits */
    struct pair_choice *choice;  /* of their pairs; NULL: all packets are processed */
    struct capture_ports *ports; /* names of ports; packet_complete() changes it */
    struct selection *selection; /* of first bytes; likewise */
    struct eviction eviction;    /* while `serial` */
    uint64_t evicted_flows, evicted_datagrams;
};

/* Returns the position at which a flow began. */
static inline uint64_t flow_first(const struct updater *updater, const struct flow *flow) {
    unsigned bits = updater->numbers.shard_bits;
    return updater->shards[flow->number & ((1u << bits) - 1)].firsts[flow->number >> bits];
}

#define TCP_FIXED_BYTES offsetof(struct tcp_header, mss)
/* The parts of a packet that few packets have. */
struct packet_extras {
    char tcp[sizeof(struct tcp_header) - TCP_FIXED_BYTES]; /* the end of a struct tcp_header */
    struct sequence_payload payload;
    struct selected selected;
    uint32_t selected_at; /* where the batch keeps the selected bytes */
    int64_t step_back_ns; /* how far its time is before that of the packet before */
    const struct headers *headers;
    const struct process *process;
    uint32_t quoted_hash; /* of the flow that an ICMP error quotes */
};

enum packet_extra {
    EXTRA_TCP = 1,     /* MSS, SACK blocks or multipath options */
    EXTRA_PAYLOAD = 2, /* of UDP, and of TCP if a block begins there */
    EXTRA_HEADERS = 4, /* of a fragment or an ICMP error */
    EXTRA_STEP_BACK = 8,
    EXTRA_APPLICATION = 16, /* selected first bytes */
    /* Of an ICMP error in a shard of a cluster (enum origin_flag). */
    EXTRA_QUOTE_ONLY = 32,
    EXTRA_NOT_QUOTED = 64,
    EXTRA_PROCESS = 128,
};

#define NO_EXTRAS UINT32_MAX
/* A packet on its way from the reader to a worker, in two cache lines. */
struct decoded_packet {
    struct packet_info info;
    struct flow_key key;
    uint32_t hash;
    bool keyed;                /* it is an IP packet: key, hash and swapped are set */
    bool swapped;              /* the sender is the key's second end */
    bool is_tcp;               /* it has a TCP header: `tcp` is set */
    uint8_t extra_kinds;       /* bits of enum packet_extra: the parts that are set */
    uint32_t extras;           /* index of its extras in the batch, or NO_EXTRAS */
    char tcp[TCP_FIXED_BYTES]; /* a struct tcp_header up to TCP_FIXED_BYTES */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct decoded_packet) == 128, "two lines");

/* Of an ICMP packet, in place of the TCP header. */
struct echo_message {
    enum { ECHO_NONE, ECHO_REQUEST, ECHO_REPLY } kind;
    uint16_t identifier, sequence;
};

/* Returns whether a packet is an ICMP error that concerns the flow whose packet it quotes. */
static inline bool quotes_packet(const struct decoded_packet *decoded) {
    return (decoded->extra_kinds & (EXTRA_HEADERS | EXTRA_NOT_QUOTED)) == EXTRA_HEADERS &&
           !decoded->info.fragment;
}

/* Returns the TCP header, NULL if the packet has none. */
static inline const struct tcp_header *headers_tcp(const struct headers *headers) {
    bool tcp = headers->protocol == IP_TCP && headers->layer == LAYER_TRANSPORT;
    return tcp ? &headers->tcp : NULL;
}

/* dispatch.c */
/* Decodes a packet into `headers`, to which extras may point. Several threads
 * may do so. Returns whether packet_complete() must be called with the same arguments. */
bool packet_decode(const struct updater *updater, struct decoded_packet *decoded,
                   struct packet_extras *extras, struct headers *headers,
                   const struct packet *packet, int64_t time_ns);
/* Completes a packet by what depends on the packets before it. Packets must be given in file order.
 */
void packet_complete(struct updater *updater, struct decoded_packet *decoded,
                     struct packet_extras *extras, const struct headers *headers,
                     const struct packet *packet);
/* Returns whether packet_complete() must be called because of the packets before, although
 * packet_decode() did not see why: first bytes of a stream may follow. */
static inline bool packet_may_continue(const struct updater *updater,
                                       const struct decoded_packet *decoded) {
    const struct packet_info *info = &decoded->info;
    bool has_payload = decoded->is_tcp & ((info->payload_bytes | info->reset_bytes) != 0);
    uint32_t hash = decoded->hash & -(uint32_t)has_payload; /* a branch would be unpredictable */
    return selection_is_open(updater->selection, hash, decoded->swapped) & has_payload;
}
/* Returns whether the payload begins with a block whose pattern is wrong. */
bool payload_is_corrupt(const struct headers *headers);
/* Processes a packet of the worker's shard; sink.at must be set. */
void packet_dispatch(struct worker *worker, const struct decoded_packet *decoded);

/* flow_lookup.c */
/* `*swapped`: the sender is the key's second end. */
struct flow_key flow_key_of(const struct headers *headers, uint32_t path, bool *swapped);
/* Finds the packet's flow or begins it; ends one that is over. Returns NULL without memory. */
struct flow *flow_lookup(struct worker *worker, uint32_t hash, const struct flow_key *key,
                         bool swapped, const struct tcp_header *tcp,
                         const struct packet_info *packet, unsigned *direction);
/* flow_end.c */
#define TCP_ENDED_NS INT64_C(60000000000) /* the shortest silence after which a flow is over */
/* Returns when a flow is over if no packet comes. */
int64_t flow_due_ns(const struct flow *flow);
/* The worker processes this shard from now on. */
void worker_enter(struct worker *worker, struct shard *shard);
/* Writes the rows of a flow of the worker's shard and frees it; the pointer is invalid afterwards.
 */
void flow_end_now(struct worker *worker, struct flow *flow, enum word end);
/* Returns the shard whose oldest datagram that is complete, or is not, is the oldest of all; NULL
 * without one. Only those count whose time has passed at `*now_ns`, unless it is NULL. */
struct shard *oldest_datagram(struct shard *shards, size_t count, bool complete,
                              const int64_t *now_ns);
/* Ends such datagrams of some shards in the order of their packets. */
void end_datagrams(struct worker *worker, struct shard *shards, size_t count, bool complete,
                   const int64_t *now_ns);
/* Ends the flows and datagrams of some shards that are over at `now_ns`. `at` is the position of
 * the packet before. */
void shards_expire(struct worker *worker, struct shard *shards, size_t count, int64_t now_ns,
                   uint64_t at);

/* limits.c: what all shards share, while `serial` */
/* Returns the live flows, and the datagrams that are kept. */
uint32_t live_flows(const struct updater *updater);
uint32_t kept_datagrams(const struct updater *updater);
/* Makes room for a flow if there are too many. */
void make_room_for_flow(struct worker *worker);
/* Notes a flow that began. */
void eviction_note(struct updater *updater, struct flow *flow);
/* A reassembly_room function; the context is the worker that has the shard. */
void make_room_for_datagram(void *worker);

/* flow_update.c */
/* Returns the sink of the TCP rules, which writes the worker's rows. */
struct event_sink worker_events(struct worker *worker);
/* Adds a packet to its flow. `tcp` is NULL for other protocols, and if the header was cut. */
void flow_update(struct worker *worker, struct flow *flow, unsigned direction,
                 const struct tcp_header *tcp, const struct packet_info *packet,
                 const struct sequence_payload *payload);
/* Adds a fragment, and the segment or the numbered datagram that it completes. `datagram` must be
 * its own. */
void flow_update_fragment(struct worker *worker, struct flow *flow, unsigned direction,
                          const struct datagram *datagram, const struct packet_info *packet);
/* Adds the rows of a flow that is over and frees its lists. */
void flow_finish(struct worker *worker, struct flow *flow, enum word end);
/* Adds to the duplicates of an interface, modulo the range. */
void count_mirrored(struct worker *worker, uint32_t interface, uint64_t copies);
/* Frees its lists alone. */
void flow_release(struct worker *worker, struct flow *flow);

/* flow_numbers.c */
/* Gives the flows that began since the last call their final numbers. Returns false without memory.
 */
bool flow_numbers_add(struct updater *updater);
/* Gives the joined rows the order of the final numbers, when all of them are added. Returns false
 * without memory. */
bool flow_numbers_order(struct row_sink *sink, struct updater *updater);
/* Begins the numbers anew, whose bits of the shard are set. Returns false without memory. */
bool flow_numbers_open(struct flow_numbers *numbers);
void flow_numbers_free(struct flow_numbers *numbers);

/* sequence_update.c: numbered datagrams, and blocks in TCP streams. */
/* `datagram` is NULL unless the packet is a fragment that completes it. */
void sequence_update_datagram(struct worker *worker, struct flow *flow, unsigned direction,
                              const struct packet_info *packet,
                              const struct sequence_payload *payload,
                              const struct datagram *datagram);
/* `payload` may be NULL. */
void sequence_update_segment(struct worker *worker, struct flow *flow, unsigned direction,
                             const struct packet_info *packet,
                             const struct sequence_payload *payload,
                             const struct segment_effect *effect);
/* Ends the numbering of a direction, sets its columns in a row of directions, and `*slowest` if it
 * has such a packet. */
void sequence_finish(struct worker *worker, struct flow *flow, unsigned direction, struct row *row,
                     struct slowest *slowest);
/* Returns WORD_NONE if no format was recognized. */
enum word sequence_application(const struct flow *flow);

/* application_update.c */
/* Takes the selected payload of a packet of the flow. */
void application_update(struct worker *worker, struct flow *flow, unsigned direction,
                        const struct packet_info *packet, const struct packet_extras *extras);
/* Takes a packet of a flow that may be QUIC, if it has a short header. */
void application_short_header(struct worker *worker, struct flow *flow, unsigned direction,
                              const struct packet_info *packet,
                              const struct sequence_payload *payload);
/* Takes a packet of a flow of ICMP, which may be an echo request or reply. */
void echo_update(struct worker *worker, struct flow *flow, unsigned direction,
                 const struct packet_info *packet, const struct decoded_packet *decoded);
/* Takes an ICMP error that quotes a packet of the flow; `direction` is that of the packet. */
void echo_error(struct worker *worker, struct flow *flow, unsigned direction,
                const struct packet_info *packet, const struct icmp_header *icmp,
                const char *meaning);
/* Adds the rows of the requests without an answer of a flow that is over. */
void echo_end(struct worker *worker, struct flow *flow, const struct flow_end *end);
/* Reads the names that still wait for bytes, of a flow that is over. */
void application_settle(struct worker *worker, struct flow *flow);
/* Adds its rows. */
void application_finish(struct worker *worker, struct flow *flow, const struct flow_end *end);
/* Frees the state of a flow. */
void application_release(struct worker *worker, struct flow *flow);

/* fragments.c */
void fragment_update(struct worker *worker, const struct decoded_packet *decoded,
                     const struct packet_extras *extras);

/* icmp_errors.c */
/* Returns the key of the flow whose packet an ICMP error quotes, in the encapsulations `path`. */
struct flow_key quoted_flow_key(const struct headers *headers, uint32_t path, bool *swapped);
/* Counts an ICMP error for the flow whose packet it quotes, in whose shard the worker is. */
void icmp_error_update(struct worker *worker, const struct decoded_packet *decoded,
                       const struct packet_extras *extras);

#endif
