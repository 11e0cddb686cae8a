/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a live conversation. Its fixed part is small; what grows is bounded each for
 * itself and, over all flows, by the allowance. */
#ifndef WIRETALE_FLOW_H
#define WIRETALE_FLOW_H

#include <stddef.h>
#include <string.h>

#include "flow/time_bins.h"
#include "sequence/tracker.h"
#include "tcp/stream.h"

/* The two ends in a fixed order (the lesser address, then port, first), whoever sends. */
struct flow_key {
    uint8_t address[2][16]; /* IPv4 in the first 4 bytes */
    uint16_t port[2];       /* 0 where the protocol has none */
    uint8_t protocol;
    uint8_t ip_version;
    uint16_t path; /* number in the path table: equal addresses in two VLANs are two flows */
};

/* The key is hashed and compared as words. */
#define FLOW_KEY_WORDS 5
_Static_assert(sizeof(struct flow_key) == FLOW_KEY_WORDS * sizeof(uint64_t), "no padding");

static inline uint64_t flow_key_word(const struct flow_key *key, unsigned number) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)key + number * sizeof word, sizeof word);
    return word;
}

static inline bool flow_key_equals(const struct flow_key *a, const struct flow_key *b) {
    uint64_t addresses = flow_key_word(a, 0) ^ flow_key_word(b, 0);
    addresses |= flow_key_word(a, 1) ^ flow_key_word(b, 1);
    addresses |= flow_key_word(a, 2) ^ flow_key_word(b, 2);
    addresses |= flow_key_word(a, 3) ^ flow_key_word(b, 3);
    return !(addresses | (flow_key_word(a, 4) ^ flow_key_word(b, 4)));
}

/* One packet of a direction, as far as counting needs it. A fragment that waited for its datagram's
 * first one is counted from this alone. */
struct sighting {
    int64_t time_ns; /* of the packet before where the file has none */
    uint64_t frame;
    uint32_t capture; /* index of the input interface */
    uint32_t wire_bytes;
    uint32_t ip_bytes;
    uint32_t payload_bytes; /* transport payload in this packet */
    uint32_t reset_bytes;   /* text in a RST: no part of the stream (RFC 9293 section 3.5.3) */
    uint32_t fragment_offset;
    bool fragment : 1, more_fragments : 1;
    bool time_known;
    bool payload_known; /* payload_bytes is: the headers before it were read */
    uint8_t ttl;
    uint8_t port; /* 6 bits of the link addresses and the interface: where the capture took it */
    uint8_t traffic_class;
    uint16_t ip_id; /* IPv4 identification; 0 tells nothing */
};

/* Numbers that were missing when a packet came; late ones may still take that back. */
struct gap_event {
    uint64_t frame, event; /* row of events */
    uint64_t missing;
};
#define GAPS 8u

/* What every packet changes lies together, in front: memory is fetched in lines of 64 bytes. */
struct direction {
    uint64_t packets, wire_bytes, ip_bytes, payload_bytes, data_packets;
    int64_t first_ns, last_ns, idle_ns_max;
    struct series_bins series;
    uint32_t segment_max;
    uint8_t ttl_min, ttl_max, dscp;
    bool timed : 1;           /* first_ns and last_ns are known */
    bool payload_unknown : 1; /* of a packet at least */
    union {
        struct tcp_stream tcp;
        struct { /* UDP */
            struct sequence_track sequence;
            struct gap_event gaps[GAPS]; /* the last ones told, a ring */
            uint8_t next_gap;
        };
    };
    /* What few packets change. */
    uint32_t ecn_ce, fragments, fragmented_datagrams, incomplete_datagrams;
    uint64_t incomplete_bytes;
    uint64_t fragment_overhead_bytes;
} __attribute__((aligned(64)));

#define DIRECTION_HOT_BYTES (offsetof(struct direction, tcp) + offsetof(struct tcp_stream, cold))

enum initiator_evidence { INITIATOR_FIRST_PACKET, INITIATOR_SYN, INITIATOR_SYN_ACK };

struct flow {
    struct flow_key key;
    uint32_t number; /* flows.flow */
    uint32_t hash;
    uint32_t next; /* in its expiry slot, or in the free list */
    uint32_t previous;
    uint32_t slot;
    uint32_t event_count; /* events written for it */
    bool live;
    bool swapped;            /* the initiator is the key's second end */
    bool listed_packets : 1; /* its packets go into the packets table */
    bool drawn : 1;          /* they go into the others: not only packets are wanted */
    bool with_blocks : 1;    /* its streams may be of blocks: one is, or the user told so */
    bool refused, reset;
    bool timed; /* first_ns and last_ns are times of its packets */
    bool syn_ack_seen, handshake_ack_seen, handshake_doubtful;
    bool copied;          /* a copy of a packet was seen: pure ACKs have their copies too */
    uint32_t copy_gap_ns; /* how long after its packet the last one came */
    uint8_t initiator_evidence;
    int64_t first_ns, last_ns;
    uint64_t last_frame;
    /* What few packets change. */
    int64_t syn_ns;
    int64_t handshake_rtt_ns; /* -1 while not known */
    uint64_t first_frame;
    uint32_t first_capture;
    uint64_t icmp_errors;
    struct direction directions[2]; /* 0 from the initiator */
};

/* (Not &flow->directions[number]: that is computed anew wherever it is used.) */
static inline struct direction *flow_direction(struct flow *flow, unsigned number) {
    return flow->directions + number;
}

static inline struct direction *flow_across(struct flow *flow, unsigned number) {
    return flow->directions + 1 - number;
}

/* The direction that the stream is of. */
static inline struct direction *direction_of(struct tcp_stream *stream) {
    return (struct direction *)((char *)stream - offsetof(struct direction, tcp));
}

/* The key's end that sends in a direction. */
static inline unsigned flow_end(const struct flow *flow, unsigned direction) {
    return direction ^ flow->swapped;
}

#endif
