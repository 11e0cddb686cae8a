/* SPDX-License-Identifier: Apache-2.0 */
/* A packet inside the link. A copy that the link made refers to its original, which lives as long
 * as any of both. */
#ifndef WIRETALE_LINK_PACKET_H
#define WIRETALE_LINK_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "truth_record.h"

#define ETHERNET_BYTES 14u
#define FRAME_MOST     (ETHERNET_BYTES + 4u + 65535u)

struct link_packet {
    struct link_packet *next;     /* in the queue */
    struct link_packet *original; /* itself, unless it is a copy */
    int64_t arrival_ns;           /* monotonic, as all times inside the link */
    int64_t out_ns;               /* when it is to leave */
    uint64_t order;               /* among those that leave at the same time */
    uint32_t size;                /* bytes of the frame */
    uint32_t ip_at;               /* offset of the IP header in the frame */
    uint32_t link_bytes;          /* what it takes of the link's rate */
    uint32_t references;          /* of an original: itself and its copies in the link */
    uint32_t overtakers;          /* packets that still have to pass it */
    struct truth_record truth;    /* of an original */
    uint8_t frame[];
};

/* NULL without memory. The frame is copied. */
struct link_packet *link_packet_new(const uint8_t *frame, uint32_t size);

/* Another one of the same, to be sent as well. */
struct link_packet *link_packet_copy(struct link_packet *packet);

/* Gives up one of the packets of a record. Returns the original when it was the last of them: its
 * record is complete then, and whoever logs it frees it. */
struct link_packet *link_packet_release(struct link_packet *packet);

#endif
