/* SPDX-License-Identifier: Apache-2.0 */
/* A packet inside the link, and the random draws that decide its fate.
 *
 * A copy that the link makes refers to its original, which is freed when both have left, because
 * its truth record counts the copies. The owner of a packet is the queue or the delay line that
 * holds it. */
#ifndef WIRETALE_LINK_PACKET_H
#define WIRETALE_LINK_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/block.h"
#include "packet/truth_record.h"

#define ETHERNET_BYTES 14u
#define MAX_FRAME      (ETHERNET_BYTES + 4u + 65535u) /* with one VLAN tag */

struct link_packet {
    struct link_packet *next;     /* in the queue, or among those held back */
    struct link_packet *original; /* itself, unless it is a copy */
    int64_t arrival_ns;           /* monotonic, as all times inside the link */
    int64_t out_ns;               /* when it must leave */
    uint64_t order;               /* among packets that leave at the same time */
    uint32_t size;                /* bytes of the frame */
    uint32_t ip_at;               /* offset of the IP header in the frame */
    uint32_t link_bytes;          /* IP packet and overhead */
    uint32_t references;          /* of an original: itself and its copies in the link */
    enum fate drop_fate;          /* of one that its queue dropped */
    uint32_t overtakers;          /* packets that must still pass one that is held back */
    struct truth_record truth;    /* of an original */
    uint8_t frame[];
};

/* Each copies the frame. Returns NULL if memory ran out. */
struct link_packet *link_packet_new(const uint8_t *frame, uint32_t size);
struct link_packet *link_packet_copy(struct link_packet *packet);

/* Gives up a packet. Returns the original if it was the last of its record, which is then complete;
 * the caller frees it. Otherwise returns NULL. */
struct link_packet *link_packet_release(struct link_packet *packet);

/* A draw is a function of seed, direction, purpose and packet number, so that a packet has the same
 * fate in every run, whatever its timing and whatever other settings are in use. */
enum draw_purpose {
    DRAW_LOSS,
    DRAW_GILBERT_STATE,
    DRAW_GILBERT_LOSS,
    DRAW_SPAN,
    DRAW_RED, /* and PIE */
    DRAW_REORDER,
    DRAW_DUPLICATE,
    DRAW_CORRUPT,
    DRAW_JITTER,
    DRAW_JITTER_SECOND,
    DRAW_BIT, /* and the numbers above it: one for each bit */
};

/* SplitMix64 over a counter: a generator with random access. */
static inline uint64_t random_draw(uint64_t seed, uint32_t purpose, uint64_t index) {
    return block_mix(block_mix(seed + purpose * UINT64_C(0x9e3779b97f4a7c15)) + index);
}

/* Returns a number in [0, 1) of 53 bits. */
static inline double random_share(uint64_t seed, uint32_t purpose, uint64_t index) {
    return (double)(random_draw(seed, purpose, index) >> 11) * 0x1p-53;
}

static inline bool is_drawn(uint64_t seed, enum draw_purpose purpose, uint64_t index,
                            double share) {
    return share > 0 && random_share(seed, purpose, index) < share;
}

#endif
