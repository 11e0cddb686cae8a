/* SPDX-License-Identifier: Apache-2.0 */
/* The second side of a router: a port of the capture that stores the sender's packets again, with
 * other link addresses and another TTL (rules V8.3 and V8.4).
 *
 * A duplicate may follow behind more packets than fingerprints remember. Then the side itself is
 * the evidence: a path that changes, or one of several paths, carries new data too, but the second
 * side of a router brings nothing new. Each half-connection has one second side, the port that
 * stored most of its duplicates. */
#include "verdict/verdict.h"

#define SIDE_PROVEN 2u /* duplicates that show it, even if new data came there */

void note_second_side(struct segment_context *seg) {
    struct second_side *side = &recovery_state(seg, seg->sender)->second_side;
    bool same = side->port == seg->packet->port && side->ttl == seg->packet->ttl;
    if (side->count && !same)
        side->count--;
    else if (side->count < UINT8_MAX)
        *side =
            (struct second_side){seg->packet->port, seg->packet->ttl, (uint8_t)(side->count + 1)};
}

bool is_apart_from_last(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    bool others = false;
    for (uint32_t i = 0; i < sender->fingerprint_capacity; i++) {
        const struct packet_fingerprint *entry = &sender->fingerprints[i];
        if (!entry->frame ||
            (entry->frame == seg->frame && entry->time == fingerprint_time(seg->packet->time_ns)))
            continue;
        if (same_link(entry->port, seg->packet->port) || entry->ttl == seg->packet->ttl)
            return false;
        others = true;
    }
    return others;
}

bool was_stored_at_side(const struct segment_context *seg) {
    const struct second_side *side = &recovery_of(seg->sender)->second_side;
    return side->count && seg->packet->port == side->port && seg->packet->ttl == side->ttl;
}

bool is_at_second_side(const struct segment_context *seg) {
    return was_stored_at_side(seg) &&
           (recovery_of(seg->sender)->second_side.count >= SIDE_PROVEN || is_apart_from_last(seg));
}

void note_second_port(struct segment_context *seg, uint16_t port, uint8_t ttl, int64_t delay_ns) {
    seg->effect.second_port = true;
    seg->effect.first_port = port;
    seg->effect.first_ttl = ttl;
    seg->effect.port_delay_ns = delay_ns;
}
