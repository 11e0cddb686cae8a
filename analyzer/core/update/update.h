/* SPDX-License-Identifier: Apache-2.0 */
/* Packets into the state of their flows: the state that the workers share, the packet as the reader
 * hands it on, and one function for each step.
 *
 *   dispatch -> fragments -> flow_lookup -> flow_update -> tracker/, sequence_update -> rows/
 *
 * A packet is decoded by the reader's thread into a struct decoded_packet, of two cache lines, and
 * processed later by the worker that has its flow's shard. A worker owns a flow while it processes
 * it. The first worker alone does everything that concerns several flows: fragments, ICMP errors,
 * expiry.
 */
#ifndef WIRETALE_UPDATE_H
#define WIRETALE_UPDATE_H

#include <stdatomic.h>

#include "flow/flow_table.h"
#include "rows/rows.h"
#include "update/capture_ports.h"

struct packet_extras;
struct updater;

#define WORKERS 2u
struct worker {
    struct row_writer rows;
    struct updater *updater;
    struct flow *found;                 /* of the packet before; NULL if it may have ended */
    const struct packet_extras *extras; /* of the batch at hand */
    const uint8_t *selected;            /* the selected bytes of the batch at hand */
    struct pool nothing;                /* an empty pool, for flows whose packets are not counted */
    struct tcp_recovery_state spare;    /* absorbs counts if memory has run out */
};

struct updater {
    struct row_sink sink;
    struct flow_table *flows;
    struct reassembly *datagrams;
    struct encapsulation_table *encapsulations; /* the reader's thread adds to it */
    struct worker workers[WORKERS];
    atomic_size_t memory_left; /* bytes that all pools may still take */
    bool packets_all;          /* every flow's packets are wanted as rows */
    int64_t block_size;        /* of TCP streams without block headers, bytes; 0 for none */
    uint64_t packet_rows_most, packet_rows_dropped;
    uint8_t *packet_flows;      /* a bit for each flow whose packets are wanted */
    uint32_t packet_flow_count; /* bits */
    uint64_t *mirrored;         /* by interface: duplicates made by the capture, under the lock */
    size_t mirrored_room;
    struct capture_ports *ports;
    struct selection *selection;     /* of first bytes; the reader's thread alone uses it */
    atomic_uint holding_first_bytes; /* flows; see FIRST_BYTES_FLOWS */
    atomic_uint initial_flows;       /* flows whose Initials are kept */
    uint32_t flow_count;             /* number of the next flow */
    uint64_t evicted_flows;
    int64_t now_ns; /* ns; the latest time that two successive packets reached */
    bool timed;     /* now_ns is known */
};

#define TCP_FIXED_BYTES offsetof(struct tcp_header, mss)
/* The parts of a packet that few packets have. */
struct packet_extras {
    char tcp[sizeof(struct tcp_header) - TCP_FIXED_BYTES]; /* the end of a struct tcp_header */
    struct sequence_payload payload;
    struct selected selected;
    uint32_t selected_at; /* where the batch keeps the selected bytes */
    int64_t step_back_ns; /* how far its time is before that of the packet before */
    const struct headers *headers;
};

enum packet_extra {
    EXTRA_TCP = 1,     /* MSS or SACK blocks */
    EXTRA_PAYLOAD = 2, /* of UDP, and of TCP if a block begins there */
    EXTRA_HEADERS = 4, /* of a fragment or an ICMP error */
    EXTRA_STEP_BACK = 8,
    EXTRA_APPLICATION = 16, /* selected first bytes */
};

/* A packet on its way from the reader to a worker, in two cache lines. */
struct decoded_packet {
    struct packet_info info;
    struct flow_key key;
    uint32_t hash;
    bool keyed;                /* it is an IP packet: key, hash and swapped are set */
    bool swapped;              /* the sender is the key's second end */
    bool is_tcp;               /* it has a TCP header: `tcp` is set */
    uint8_t extra_kinds;       /* bits of enum packet_extra: the parts that are set */
    uint32_t extras;           /* index of its extras in the batch */
    char tcp[TCP_FIXED_BYTES]; /* a struct tcp_header up to TCP_FIXED_BYTES */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct decoded_packet) == 128, "two lines");

/* Returns the TCP header, NULL if the packet has none. */
static inline const struct tcp_header *headers_tcp(const struct headers *headers) {
    bool tcp = headers->protocol == IP_TCP && headers->layer == LAYER_TRANSPORT;
    return tcp ? &headers->tcp : NULL;
}

/* dispatch.c */
/* Decodes a packet into `headers`, which must live as long as the packet if extras point to it. */
void packet_prepare(struct updater *updater, struct decoded_packet *decoded,
                    struct packet_extras *extras, struct headers *headers,
                    const struct packet *packet, int64_t time_ns);
/* Processes a packet. worker->rows.batch_index must be set. */
void packet_dispatch(struct worker *worker, const struct decoded_packet *decoded);

/* flow_lookup.c */
/* `*swapped`: the sender is the key's second end. */
struct flow_key flow_key_of(const struct headers *headers, uint32_t path, bool *swapped);
/* Finds the packet's flow or begins it; ends one that is over. Returns NULL without memory. */
struct flow *flow_lookup(struct worker *worker, uint32_t hash, const struct flow_key *key,
                         bool swapped, const struct tcp_header *tcp,
                         const struct packet_info *packet, unsigned *direction);
/* Returns when a flow is over if no packet comes. */
int64_t flow_due_ns(const struct flow *flow);
/* Ends the flows and datagrams that are over at updater->now_ns. */
void flow_expire(struct updater *updater);

/* flow_update.c */
/* Adds a packet to its flow. `tcp` is NULL for other protocols and for later fragments of a
 * segment; then `sequence`, if not NULL, is the sequence number of the fragment's first byte. */
void flow_update(struct worker *worker, struct flow *flow, unsigned direction,
                 const struct tcp_header *tcp, const uint32_t *sequence,
                 const struct packet_info *packet, const struct sequence_payload *payload);
/* Adds the rows of a flow that is over and frees its lists. */
void flow_finish(struct worker *worker, struct flow *flow, enum word end);
/* Frees its lists alone. */
void flow_release(struct worker *worker, struct flow *flow);

/* sequence_update.c: numbered datagrams, and blocks in TCP streams. */
void sequence_update_datagram(struct worker *worker, struct flow *flow, unsigned direction,
                              const struct packet_info *packet,
                              const struct sequence_payload *payload);
/* `payload` may be NULL. */
void sequence_update_segment(struct worker *worker, struct flow *flow, unsigned direction,
                             const struct packet_info *packet,
                             const struct sequence_payload *payload,
                             const struct segment_effect *effect);
/* Ends the numbering of a direction and sets its columns in a row of directions. */
void sequence_finish(struct worker *worker, struct flow *flow, unsigned direction, struct row *row);
/* Returns WORD_NONE if no format was recognised. */
enum word sequence_application(const struct flow *flow);

/* application_update.c */
/* Takes the selected payload of a packet of the flow. */
void application_update(struct worker *worker, struct flow *flow, unsigned direction,
                        const struct packet_info *packet, const struct packet_extras *extras);
/* Takes a packet of a flow that may be QUIC, if it has a short header. */
void application_short_header(struct worker *worker, struct flow *flow, unsigned direction,
                              const struct packet_info *packet,
                              const struct sequence_payload *payload);
/* Adds the rows of a flow that is over. */
void application_finish(struct worker *worker, struct flow *flow);
/* Frees the state of a flow. */
void application_release(struct worker *worker, struct flow *flow);

/* fragments.c */
void fragment_update(struct worker *worker, const struct decoded_packet *decoded,
                     const struct packet_extras *extras);
/* A datagram_finished function; the context is the first worker. */
void datagram_finish(void *worker, struct datagram *datagram);

/* icmp_errors.c */
/* Counts an ICMP error for the flow whose packet it quotes. */
void icmp_error_update(struct worker *worker, const struct decoded_packet *decoded,
                       const struct packet_extras *extras);

#endif
