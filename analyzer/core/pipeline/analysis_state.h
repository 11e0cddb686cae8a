/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of the pass share. Data goes one way: capture_count and packet_dispatch see each
 * packet, flow_finish and datagram_finish write rows when something is over. */
#ifndef WIRETALE_ANALYSIS_STATE_H
#define WIRETALE_ANALYSIS_STATE_H

#include <pthread.h>

#include "base/vocabulary.h"
#include "decode/headers.h"
#include "flow/encapsulation.h"
#include "flow/flow_table.h"
#include "flow/reassembly.h"
#include "pipeline/analysis.h"
#include "pipeline/bpf_filter.h"
#include "format/merged_input.h"
#include "rows/batch_order.h"
#include "sequence/tracker.h"
#include "tcp/segment.h"

#define EVENTS_MOST        4000000u /* rows in all */
#define EVENTS_A_FLOW_MOST 10000u   /* rows of one flow */
#define BLOCK_ROWS_MOST    4000000u /* rows in all */

/* What was counted of an input interface while reading. */
struct capture_count {
    uint64_t packets, time_unknown, bytes, filtered, captured_bytes;
    int64_t first_ns, last_ns, backward_ns_max, previous_ns;
    uint64_t truncated;
    uint64_t backward_steps, backward_frame, super_segments, super_segment_frame, malformed_frame;
    uint64_t reasons[REASON_COUNT];
};

struct packet_extras;
struct reader;

/* What a thread that takes packets into their flows has for itself. */
#define WORKERS 2u
struct worker {
    struct analysis *analysis;
    struct flow *found;                 /* of the packet before, NULL when it may be no more */
    const struct packet_extras *extras; /* of the batch at hand */
    uint32_t turn; /* the one at hand: of a packet its number in the batch, of a flow that is
                      over its number */
    struct pool pool;
    struct pool nothing;             /* of a flow that is only told apart from others */
    struct tcp_recovery_state spare; /* counts nothing: for when there is no memory */
};

struct analysis {
    struct analysis_options options;
    struct merged_input *captures;
    struct bpf_filter *filter; /* NULL for none */
    struct flow_table *flows;
    struct reassembly *datagrams;
    struct encapsulation_table *paths;
    bool packets_only;              /* no table but packets is wanted */
    struct worker workers[WORKERS]; /* the first does alone what is not parted */
    atomic_size_t memory_left;      /* of all of theirs */
    pthread_mutex_t lock; /* recursive; workers hold it when they add or amend a row, count what
                             is not their own, and begin or end a flow */
    struct string_table texts;
    struct table tables[TABLE_COUNT];
    struct capture_count *counts; /* by interface */
    size_t count_room;
    uint64_t *mirrored; /* by interface: copies stored by the capture; the flows' thread counts */
    size_t mirrored_room;
    uint8_t *packet_flows;      /* a bit for each flow whose packets are wanted */
    uint32_t packet_flow_count; /* bits */
    uint32_t flow_count;        /* flows ever begun: the next one's number */
    int64_t now_ns;             /* the latest time that two packets in a row reached */
    bool timed;                 /* it is known */
    struct excluded_packets excluded;
    struct reader *ahead; /* while reading */
    struct batch_order order;
    struct analysis_totals totals;
    uint64_t bytes_read, bytes_total; /* of the files */
    bool small;                       /* the files: little memory will be used */
    bool out_of_memory;
};

static inline void analysis_lock(struct analysis *analysis) {
    pthread_mutex_lock(&analysis->lock);
}

static inline void analysis_unlock(struct analysis *analysis) {
    pthread_mutex_unlock(&analysis->lock);
}

/* capture_count.c */
struct capture_count *capture_count_of(struct analysis *analysis, uint32_t capture);
/* Returns by how much the packet's time lies before that of the one before it, ns. */
int64_t capture_count_packet(struct capture_count *count, const struct packet *packet,
                             int64_t time_ns);
void capture_count_headers(struct capture_count *count, const struct packet *packet,
                           const struct headers *headers);
/* `copies` more, or less, that a mirror port made. */
void capture_count_mirrored(struct analysis *analysis, uint32_t capture, int copies);
void capture_count_rows(struct analysis *analysis);

/* flow_lookup.c */
struct flow_key flow_key_of(const struct headers *headers, uint32_t path, bool *swapped);
/* By the ports that its first fragment told, 0 before. */
struct flow_key flow_key_of_datagram(const struct datagram *datagram, bool *swapped);
struct flow *flow_lookup(struct worker *worker, uint32_t hash, const struct flow_key *key,
                         bool swapped, const struct tcp_header *tcp, const struct packet_info *seen,
                         unsigned *direction);
int64_t flow_due_ns(const struct flow *flow);
void flow_expire(struct analysis *analysis);

/* The beginning of a payload, for those who read numbers from it. */
struct payload_start {
    uint8_t bytes[SEQUENCE_BYTES_MOST];
    uint8_t count;   /* of them */
    bool corrupt;    /* it is a block whose pattern, as far as captured, is wrong */
    uint16_t length; /* UDP: payload of the whole datagram */
};

/* packet_dispatch.c: one decoded packet into its flow. */
#define TCP_FIXED_BYTES offsetof(struct tcp_header, mss)
/* What only some packets bring with them. */
struct packet_extras {
    char tcp[sizeof(struct tcp_header) - TCP_FIXED_BYTES]; /* of a struct tcp_header */
    struct payload_start payload;
    int64_t step_back_ns; /* its time lies so much before that of the packet before it */
    const struct headers *headers;
};

enum packet_extra {
    EXTRA_TCP = 1,     /* a maximum segment size or SACK blocks */
    EXTRA_PAYLOAD = 2, /* of UDP, and of TCP where a block begins */
    EXTRA_HEADERS = 4, /* of a fragment and of an ICMP error */
    EXTRA_STEP_BACK = 8,
};

/* It is handed from thread to thread: two lines of a cache. */
struct decoded_packet {
    struct packet_info seen;
    struct flow_key key;
    uint32_t hash;
    bool keyed;                /* an IP packet: key, hash and swapped are set */
    bool swapped;              /* sent by the key's second end */
    bool is_tcp;               /* with its header: `tcp` is set */
    uint8_t parts;             /* enum packet_extra: what is set of its rest */
    uint32_t rest;             /* where that is in its batch */
    char tcp[TCP_FIXED_BYTES]; /* a struct tcp_header up to what is left to its rest */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct decoded_packet) == 128, "two lines");

/* The TCP header, NULL when there is none. */
static inline const struct tcp_header *headers_tcp(const struct headers *headers) {
    bool tcp = headers->protocol == IP_TCP && headers->layer == LAYER_TRANSPORT;
    return tcp ? &headers->tcp : NULL;
}

/* Decodes into `headers`, which must stay as long as the decoded if its rest comes to point there.
 */
void packet_prepare(struct analysis *analysis, struct decoded_packet *decoded,
                    struct packet_extras *rest, struct headers *headers,
                    const struct packet *packet, int64_t time_ns);
void packet_dispatch(struct worker *worker, const struct decoded_packet *decoded);

/* flow_update.c: `tcp` is NULL for other protocols and for later fragments of a segment; then
 * `sequence`, if not NULL, is where the fragment lies. */
void flow_update(struct worker *worker, struct flow *flow, unsigned direction,
                 const struct tcp_header *tcp, const uint32_t *sequence,
                 const struct packet_info *seen, const struct payload_start *payload);

/* block_account.c: numbered datagrams, and blocks in TCP streams. `payload` may be NULL. */
void sequence_update_datagram(struct worker *worker, struct flow *flow, unsigned direction,
                              const struct packet_info *seen, const struct payload_start *payload);
void sequence_update_segment(struct worker *worker, struct flow *flow, unsigned direction,
                             const struct packet_info *seen, const struct payload_start *payload,
                             const struct segment_effect *effect);
/* The columns of both tables that tell of them. */
void block_finish(struct worker *worker, struct flow *flow, unsigned direction, struct row *row);
enum word block_application(struct flow *flow);

/* fragment_update.c */
void fragment_update(struct worker *worker, const struct decoded_packet *decoded,
                     const struct packet_extras *rest);
void fragment_replay_waiting(struct worker *worker, struct datagram *datagram);

/* icmp_error_update.c: an ICMP error and the flow that it quotes. */
void icmp_error_update(struct worker *worker, const struct decoded_packet *decoded,
                       const struct packet_extras *rest);

/* event_log.c */
/* Returns the row, EVENT_NONE when it is over a bound. */
uint64_t event_log(struct worker *worker, struct flow *flow, unsigned direction,
                   const struct packet_info *seen, const struct event *event);
void event_amend(struct analysis *analysis, uint64_t row, const struct event *event);

/* series_finish.c */
void series_finish(struct analysis *analysis, const struct flow *flow, unsigned direction);

/* flow_finish.c */
/* Frees what a flow holds; flow_finish() does so last. */
void flow_release(struct worker *worker, struct flow *flow);
void flow_finish(struct worker *worker, struct flow *flow, enum word end);

/* datagram_finish.c: a datagram_finished function. */
void datagram_finish(void *context, struct datagram *datagram);

/* Adds a row or notes that memory ended. */
static inline void add_row(struct analysis *analysis, enum table_number number,
                           const struct row *row) {
    if (!table_add(&analysis->tables[number], row))
        analysis->out_of_memory = true;
}

/* bit/s; `span_ns` > 0. */
static inline int64_t rate_bps(uint64_t bytes, int64_t span_ns) {
    __extension__ unsigned __int128 bits = (unsigned __int128)bytes * 8u * 1000000000u;
    bits /= (uint64_t)span_ns;
    return bits < INT64_MAX ? (int64_t)bits : INT64_MAX;
}

/* The number of an address or a text for a row. */
static inline int64_t add_address(struct analysis *analysis, unsigned version,
                                  const uint8_t *address) {
    int64_t number = string_table_add_address(&analysis->texts, version, address);
    analysis->out_of_memory |= number < 0;
    return number < 0 ? 0 : number;
}

static inline void row_set_stored(struct analysis *analysis, struct row *row, unsigned column,
                                  int64_t number) {
    analysis->out_of_memory |= number < 0;
    if (number >= 0)
        row_set(row, column, number);
}

static inline void row_set_text(struct analysis *analysis, struct row *row, unsigned column,
                                const char *text) {
    if (text && *text)
        row_set_stored(analysis, row, column, string_table_add(&analysis->texts, text));
}

static inline void row_set_path(struct analysis *analysis, struct row *row, unsigned column,
                                const char *path) {
    row_set_stored(analysis, row, column, string_table_add_path(&analysis->texts, path));
}

#endif
