/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a packet, so that it can be found in a capture from another point: only what
 * routers do not change, but the TTL, which shows the direction. They are the IDENTITY_COLUMNS of
 * packets, in readings that ask for them. */
#ifndef WIRETALE_IDENTITY_H
#define WIRETALE_IDENTITY_H

#include "decode/headers.h"
#include "table/table.h"

#define DIGEST_MOST  128u /* bytes of the payload that the long digest covers */
#define DIGEST_LEAST 16u  /* and the short one */

struct packet_identity {
    uint64_t digest, digest_short; /* below 2^63, so that a column of integers holds them */
    uint64_t block_sequence;
    uint32_t captured; /* bytes of the payload */
    uint32_t sequence, acknowledgment, timestamp;
    uint32_t run, block_bytes;
    uint16_t stream, blocks; /* 0 blocks: it begins with none */
    uint16_t flags, mss;     /* 0 without an MSS */
    bool tcp, has_timestamp;
};

/* Reads a packet's headers, from LAYER_NETWORK, and its payload. */
void packet_identify(struct packet_identity *identity, const struct headers *headers);

/* Sets the columns of a row, but for the number of the packet. */
void identity_put(struct row *row, const struct packet_identity *identity,
                  const struct packet_info *packet, uint8_t ip_version);

#endif
