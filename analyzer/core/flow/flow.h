/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a live conversation. Its fixed part is small. Each list that grows has a bound of
 * its own, and all lists of all flows share the memory limit of the pool. */
#ifndef WIRETALE_FLOW_H
#define WIRETALE_FLOW_H

#include <stddef.h>
#include <string.h>

#include "application/application.h"
#include "decode/headers.h"
#include "flow/reply_sizes.h"
#include "flow/time_bins.h"
#include "sequence/echo.h"
#include "sequence/tracker.h"
#include "table/table.h"
#include "tcp/connection.h"

/* The two ends in a fixed order (the lesser address, then port, first), independent of the
 * sender. */
struct flow_key {
    uint8_t address[2][16]; /* IPv4 in the first 4 bytes */
    uint16_t port[2];       /* 0 if the protocol has none; see flow.ports_known */
    uint8_t protocol;
    uint8_t ip_version;
    uint16_t path; /* number of the encapsulations: equal addresses in two VLANs are two flows, but
                      for halves of one (struct flow) */
};

/* The key is hashed and compared as words. */
#define FLOW_KEY_WORDS 5
_Static_assert(sizeof(struct flow_key) == FLOW_KEY_WORDS * sizeof(uint64_t), "no padding");

/* Returns 8 bytes of the key, `number` < FLOW_KEY_WORDS; words 0 to 3 are the addresses, 4 the
 * rest. memcpy() because the members have other types. */
static inline uint64_t flow_key_word(const struct flow_key *key, unsigned number) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)key + number * sizeof word, sizeof word);
    return word;
}

/* Without a branch per word: most comparisons succeed, because the hashes were equal. */
static inline bool flow_key_equals(const struct flow_key *a, const struct flow_key *b) {
    uint64_t addresses = flow_key_word(a, 0) ^ flow_key_word(b, 0);
    addresses |= flow_key_word(a, 1) ^ flow_key_word(b, 1);
    addresses |= flow_key_word(a, 2) ^ flow_key_word(b, 2);
    addresses |= flow_key_word(a, 3) ^ flow_key_word(b, 3);
    return !(addresses | (flow_key_word(a, 4) ^ flow_key_word(b, 4)));
}

/* A gap in numbered packets; late packets may still fill it. */
struct gap_event {
    uint64_t frame;
    struct flow_event *event; /* NULL if it was not kept */
    uint64_t missing;
};
#define GAPS 8u

/* Fields that each packet changes come first and together, because memory is loaded in lines of
 * 64 bytes. */
struct direction {
    uint64_t packets, wire_bytes, ip_bytes, payload_bytes, data_packets;
    int64_t first_ns, last_ns, idle_ns_max;
    struct time_bins series;
    uint32_t segment_max;
    uint8_t ttl_min, ttl_max;
    uint8_t dscp : 6;         /* of the first packet */
    bool timed : 1;           /* first_ns and last_ns are known */
    bool payload_unknown : 1; /* of at least one packet */
    uint8_t last_dscp : 6;    /* of the last packet */
    bool right_data : 1;      /* the checksum of a packet with payload is right */
    uint32_t ecn_ce;
    uint32_t right_checksums; /* packets */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct direction) == 128, "two lines");

/* Of one direction. */
struct fragment_counts {
    uint32_t fragments;
    uint32_t fragmented_datagrams, incomplete_datagrams;
    uint64_t incomplete_bytes, overhead_bytes;
    uint64_t copied_bytes; /* of a TCP segment: fragments that came again, but not all of them */
    uint32_t payload_max;  /* of one fragment */
};

/* Packets of one direction with other checksums than right ones (flow/checksum.h). */
struct checksum_counts {
    uint32_t offloaded;
    uint32_t wrong, wrong_data; /* all, and those with payload */
    uint32_t delivered;         /* of these, those that the receiver acknowledged */
    uint64_t wrong_bytes;       /* their payload */
};

/* What one endpoint sends over UDP: numbered packets, and datagrams that are answered or not. */
struct udp_stream {
    struct sequence_track sequence;
    struct reply_sizes replies;
    struct gap_event gaps[GAPS]; /* of the latest events, a ring */
    uint8_t next_gap;
};

struct endings;  /* course/ending.h */
struct pass_log; /* course/pass.h */

/* The last time of PAUSE_LEAST_NS or more without a packet of the flow, and the longest before. */
#define PAUSE_LEAST_NS INT64_C(1000000000)
struct pause {
    int64_t ns, until_ns;
    int64_t before_ns;
    uint32_t frame, capture; /* the packet that ended it */
    uint8_t direction;       /* of that packet */
};

enum initiator_evidence { INITIATOR_FIRST_PACKET, INITIATOR_SYN, INITIATOR_SYN_ACK };

struct flow {
    struct direction directions[2]; /* 0 from the initiator; first, because they are aligned */
    struct flow_key key;
    uint32_t number; /* flows.flow */
    uint32_t hash;
    uint32_t next; /* in its expiry slot, or in the free list */
    uint32_t previous;
    uint32_t slot;
    uint32_t event_count; /* of the list */
    bool live;
    bool swapped;            /* the initiator is the key's second end */
    bool listed_packets : 1; /* its packets go into the packets table */
    bool drawn : 1;          /* it has rows in the other tables */
    bool with_blocks : 1; /* its streams may consist of blocks: one does, or the user gave a block
                             size */
    bool closed : 1;      /* by two FINs without anything unusual, which `endings` has no longer */
    bool ports_known : 1; /* the first packet had them, so that 0 is a port */
    bool ended : 1;       /* it has a FIN or RST */
    bool has_half : 1; /* direction `half_direction` has other encapsulations than the key: one */
    bool processes_differ : 1;  /* packets name several */
    uint8_t half_direction : 1; /* that began with the answer to a packet of the other direction */
    bool timed : 1;             /* first_ns and last_ns are times of its packets */
    uint8_t initiator_evidence : 2;
    uint16_t half_path;        /* number of those encapsulations */
    uint16_t icmp_error;       /* cause of the last ICMP error (events.cause) */
    struct flow_event *events; /* the newest first */
    int64_t first_ns, last_ns;
    uint64_t last_frame;
    /* Fields that few packets change. */
    uint64_t first_frame;
    uint32_t first_capture;
    uint32_t icmp_errors;
    struct application *application;   /* NULL until a payload is selected */
    struct fragment_counts *fragments; /* of both directions, NULL without a fragment */
    struct checksum_counts *checksums; /* of both directions, NULL if all are right */
    struct pass_log *passes;           /* of both directions, NULL if all have one TTL */
    struct endings *endings;           /* of TCP, NULL without one */
    struct pause *pause;               /* NULL without one */
    const struct process *process;     /* that packets name, NULL without one */
    union {
        struct tcp_connection tcp;
        struct udp_stream udp[2];
        struct echo_requests echo; /* of ICMP */
    };
};

/* Returns the counts of a direction for reading; never NULL. */
static inline const struct fragment_counts *fragments_of(const struct flow *flow, unsigned number) {
    static const struct fragment_counts none;
    return flow->fragments ? &flow->fragments[number] : &none;
}

static inline const struct checksum_counts *checksum_counts_of(const struct flow *flow,
                                                               unsigned number) {
    static const struct checksum_counts none;
    return flow->checksums ? &flow->checksums[number] : &none;
}

/* Returns the end of the key that sends in a direction. */
static inline unsigned flow_end(const struct flow *flow, unsigned direction) {
    return direction ^ flow->swapped;
}

/* Returns the number of the encapsulations of a direction. */
static inline uint16_t path_of(const struct flow *flow, unsigned direction) {
    bool other = flow->has_half && flow->half_direction == direction;
    return other ? flow->half_path : flow->key.path;
}

/* --- encapsulation.c ---------------------------------------------------------------------------
 */

/* Interned encapsulation stacks (VLAN, MPLS, PPPoE, tunnels): each distinct one is stored once
 * and has a number; 0 means no encapsulation. */

#define PATHS_MOST    65536u /* because numbers have 16 bits; later stacks share the last number */
#define PATH_TEXT_MAX 256

struct encapsulation_table;

/* Returns NULL without memory. */
struct encapsulation_table *encapsulation_table_open(void);
void encapsulation_table_close(struct encapsulation_table *table);
/* Returns the number of a stack of `depth` steps, which is added if it is new; 0 if `depth` is 0,
 * and the number of another stack if the table is full. One thread must add; the number is valid
 * until the table closes. */
uint32_t encapsulation_table_number(struct encapsulation_table *table,
                                    const struct path_step *steps, unsigned depth);

/* Finds the number of a stack while another thread may add. Returns false if that thread must. */
bool encapsulation_table_find(const struct encapsulation_table *table,
                              const struct path_step *steps, unsigned depth, uint32_t *number);

/* Writes the stack as in `vlan 10 / vxlan 7`; the empty one is "". */
void encapsulation_table_text(const struct encapsulation_table *table, uint32_t number,
                              char text[PATH_TEXT_MAX]);

#endif
