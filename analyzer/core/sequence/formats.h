/* SPDX-License-Identifier: Apache-2.0 */
/* What a payload says when it is taken for a packet of one of the sequenced formats. */
#ifndef WIRETALE_SEQUENCE_LAYOUT_H
#define WIRETALE_SEQUENCE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_BYTES_MOST 32u /* of the payload that a layout reads, beside a block's pattern */

enum sequence_format {
    SEQUENCE_UNKNOWN, /* not yet */
    SEQUENCE_BLOCKS,
    SEQUENCE_IPERF2,
    SEQUENCE_IPERF3,
    SEQUENCE_RTP,
    SEQUENCE_NONE, /* given up */
};

/* A packet of one direction of a flow. */
struct sequence_packet {
    const uint8_t *payload; /* `captured` bytes */
    uint32_t captured;      /* bytes of the payload in the capture, at most `length` */
    uint32_t length;        /* bytes of the payload on the wire */
    int64_t time_ns;        /* since the epoch */
    uint64_t frame;
    bool time_known;
    bool corrupt; /* the pattern of the block, beyond these bytes, is wrong */
};

enum sequence_clock {
    SEQUENCE_CLOCK_NS,   /* `sent` is the sender's clock in ns, of an epoch of its own */
    SEQUENCE_CLOCK_TICKS /* `sent` is 32 bits of an RTP timestamp */
};

struct sequence_reading {
    uint64_t key;         /* of the source: packets of one are counted together */
    uint64_t sequence;    /* as on the wire */
    int64_t sent;         /* ns or ticks */
    uint32_t tick_rate;   /* Hz, 0 when it cannot be told from the packet */
    uint8_t payload_kind; /* has to stay the same until a format is believed */
    bool first, last;     /* the sender says so */
    bool corrupt;
    bool is_end;      /* an end marker, no data */
    bool may_be_end;  /* an end marker if `sequence` is far from the others */
    uint64_t ends[2]; /* the sequence number that it means, by version of the sender */
};

struct sequence_layout {
    enum sequence_format format;
    uint8_t bits; /* of the sequence number before it wraps */
    enum sequence_clock clock;
    int64_t ahead_most;    /* a step further ahead needs a second packet that goes on from there */
    int64_t behind_most;   /* and so does one further behind, where no time tells */
    int64_t follow_most;   /* how far ahead of the first this second packet may be */
    int64_t believed_step; /* largest step, before the format is believed */
    bool jump_is_restart;  /* a jump ahead is another beginning, no loss (RFC 3550 A.1) */
    bool has_magic;
    bool (*read)(struct sequence_reading *, const uint8_t *payload, uint32_t captured,
                 uint32_t length);
};

#define SEQUENCE_LAYOUTS 6u
extern const struct sequence_layout sequence_layouts[SEQUENCE_LAYOUTS]; /* the surest first */

/* From one sequence number of the layout to another: modulo its size, the short way. */
static inline int64_t sequence_step(const struct sequence_layout *layout, uint64_t from,
                                    uint64_t to) {
    unsigned spare = 64u - layout->bits;
    return (int64_t)((to - from) << spare) >> spare;
}

/* A position that may have wrapped, as it is on the wire. */
static inline uint64_t sequence_on_wire(const struct sequence_layout *layout, int64_t position) {
    return (uint64_t)position << (64u - layout->bits) >> (64u - layout->bits);
}

/* STUN, DTLS and RTCP share a flow with RTP (RFC 7983, RFC 5761): they say nothing against it. */
bool sequence_is_beside_rtp(const uint8_t *payload, uint32_t captured);

#endif
