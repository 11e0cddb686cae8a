/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of transport headers: what one shows of its packet, and what those of a direction show
 * together (rules V14 of docs/verdicts.md). */
#ifndef WIRETALE_CHECKSUM_H
#define WIRETALE_CHECKSUM_H

#include "base/bytes.h"
#include "flow/flow.h"

/* Verifies the checksum of the innermost transport header, and that of the datagram that is a
 * tunnel around it; `headers` are those of the packet. Only that of a TCP, UDP or ICMP packet that
 * is captured whole and no fragment can be verified. */
NOINLINE enum packet_checksum checksum_verify(const struct packet *packet,
                                              const struct headers *headers);

/* Takes a checksum that is not right. Returns what it shows of its packet. */
enum packet_damage take_other_checksum(struct flow *flow, unsigned number,
                                       const struct packet_info *packet, struct pool *pool);

/* Counts the checksum of a packet of a direction. Returns what it shows of it. */
static ALWAYS_INLINE enum packet_damage take_checksum(struct flow *flow, unsigned number,
                                                      const struct packet_info *packet,
                                                      struct pool *pool) {
    struct direction *direction = &flow->directions[number];
    if (packet->checksum == CHECKSUM_UNVERIFIED)
        return DAMAGE_NONE;
    if (!LIKELY(packet->checksum == CHECKSUM_RIGHT))
        return take_other_checksum(flow, number, packet, pool);
    direction->right_checksums++;
    direction->right_data |= packet->payload_bytes > 0;
    return DAMAGE_NONE;
}

/* Counts data with a wrong checksum that its receiver acknowledged. */
void take_delivered(struct flow *flow, unsigned number, uint32_t count);

/* Returns the packets of a direction that were damaged, -1 if that is not known: no checksum was
 * verified, or the wrong ones show nothing. */
int64_t damaged_packets(const struct flow *flow, unsigned number);

#endif
