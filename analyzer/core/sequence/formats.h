/* SPDX-License-Identifier: Apache-2.0 */
/* The sequenced formats (rule V12.1): wiretale's blocks (common/block.h), iperf2, iperf3 and RTP
 * (RFC 3550). A layout reads a payload as a packet of its format and returns false if the payload
 * cannot be one. A match proves nothing alone; detect.h compares several packets. */
#ifndef WIRETALE_SEQUENCE_LAYOUT_H
#define WIRETALE_SEQUENCE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vocabulary.h"

#define SEQUENCE_BYTES_MOST                                                                        \
    32u /* bytes of the payload that a layout reads, except a block's pattern */

/* The beginning of a payload, from which numbers are read. */
struct sequence_payload {
    uint8_t bytes[SEQUENCE_BYTES_MOST];
    uint8_t captured; /* number of them in the capture */
    bool corrupt;     /* it is a block whose captured pattern is wrong */
    uint16_t length;  /* UDP: bytes of payload of the whole datagram */
};

/* One packet of one direction of a flow. */
struct sequence_packet {
    int64_t time_ns; /* since the epoch */
    uint64_t frame;
    struct sequence_payload payload;
    uint32_t capture; /* interface */
    bool time_known;
};

/* A packet as one layout reads it. */
struct sequence_item {
    uint64_t key;         /* identifies the source; each source has its own numbers */
    uint64_t sequence;    /* before unwrapping */
    int64_t sent;         /* ns of the sender's clock, whose epoch is arbitrary, or ticks */
    uint32_t tick_rate;   /* Hz, 0 if the packet does not determine it */
    uint8_t payload_kind; /* must stay the same until the format is accepted */
    uint16_t length;      /* bytes of payload */
    uint32_t print;       /* hash of the payload that a copy must have, too */
    bool resumes;         /* RTP's marker: the first packet after a silence of an audio sender */
    bool is_noise;        /* RTP: comfort noise in place of speech */
    bool first;           /* flag of the sender */
    bool corrupt;
    bool is_end;     /* end marker without data */
    bool may_be_end; /* end marker if `sequence` is far from the others */
    bool time_known;
    uint32_t capture; /* interface */
    int64_t time_ns;
    uint64_t frame;
};

struct sequence_layout {
    enum word application;
    uint8_t bits; /* of the sequence number, before it wraps */
    bool ticks;   /* `sent` is 32 bits of an RTP timestamp; a large forward step is a restart, not
                     loss (RFC 3550 A.1) */
    int64_t ahead_most; /* a larger forward step must be confirmed by a second packet that continues
                           from it */
    int64_t behind_most;   /* so must a larger backward step, if no sent time decides */
    int64_t follow_most;   /* largest forward step of the confirming packet */
    int64_t believed_step; /* largest step before the format is accepted */
    bool (*read)(const struct sequence_layout *, struct sequence_item *,
                 const struct sequence_payload *);
};

#define SEQUENCE_LAYOUTS 6u
extern const struct sequence_layout
    sequence_layouts[SEQUENCE_LAYOUTS]; /* the most specific first */

/* Fills `item`. Returns false if the packet cannot be of the layout's format. */
bool sequence_read(const struct sequence_layout *layout, struct sequence_item *item,
                   const struct sequence_packet *packet);

/* Returns the difference of two sequence numbers, modulo the counter's size, as the shorter way. */
static inline int64_t sequence_step(const struct sequence_layout *layout, uint64_t from,
                                    uint64_t to) {
    unsigned spare = 64u - layout->bits;
    return (int64_t)((to - from) << spare) >> spare;
}

/* Returns the sequence number on the wire of an unwrapped position. */
static inline uint64_t sequence_on_wire(const struct sequence_layout *layout, int64_t position) {
    return (uint64_t)position << (64u - layout->bits) >> (64u - layout->bits);
}

/* Returns whether the payload is STUN, DTLS or RTCP, which share a flow with RTP (RFC 7983, RFC
 * 5761) and should not count against it. False if fewer than 8 bytes were captured. */
bool sequence_is_beside_rtp(const struct sequence_payload *payload);

#endif
