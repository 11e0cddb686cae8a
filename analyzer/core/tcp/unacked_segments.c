/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp/unacked_segments.h"

_Static_assert(SEGMENTS_MOST <= UINT16_MAX, "room fits");

/* After the list has doubled, what had wrapped around its old end is moved behind it. */
static void unwrap(struct segment_ring *ring, uint32_t old_room) {
    for (uint32_t i = 0; i < ring->head && i < ring->count; i++)
        ring->segments[old_room + i] = ring->segments[i];
}

static bool grow(struct segment_ring *ring, uint32_t most, struct allowance *allowance) {
    uint32_t old_room = ring->room, room = old_room;
    if (!allowance_grow(allowance, (void **)&ring->segments, &room, sizeof *ring->segments, 2,
                        most > old_room ? most : old_room))
        return false;
    ring->room = (uint16_t)room;
    unwrap(ring, old_room);
    return true;
}

struct segment *segment_ring_push(struct segment_ring *ring, uint32_t most,
                                  struct allowance *allowance) {
    if (!grow(ring, most, allowance)) {
        if (!ring->room)
            return NULL;
        ring->head = (uint16_t)((ring->head + 1) & (ring->room - 1));
        ring->count--;
    }
    return segment_ring_at(ring, ring->count++);
}

struct segment_acked segment_ring_acknowledge(struct segment_ring *ring, int64_t position) {
    struct segment_acked acked = {0};
    uint32_t count = ring->count;
    for (; acked.count < count; acked.count++) {
        const struct segment *segment = segment_ring_at(ring, acked.count);
        if (segment->end > position)
            break;
        acked.newest_ns = segment->time_ns;
        acked.resent |= segment->resent;
    }
    acked.left = acked.count < count;
    ring->count = (uint16_t)(count - acked.count);
    /* Without any left it begins again in the same memory. */
    ring->head = acked.left ? (uint16_t)((ring->head + acked.count) & (ring->room - 1)) : 0;
    return acked;
}

/* Ends ascend: of the first segment that ends above `position`, `count` without one. */
static uint32_t first_above(const struct segment_ring *ring, int64_t position) {
    uint32_t low = 0, high = ring->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (segment_ring_at(ring, middle)->end > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void segment_ring_mark_resent(struct segment_ring *ring, int64_t start, int64_t end) {
    for (uint32_t i = first_above(ring, start);
         i < ring->count && segment_ring_at(ring, i)->end - segment_ring_at(ring, i)->length < end;
         i++)
        segment_ring_at(ring, i)->resent = true;
}

const struct segment *segment_ring_find(const struct segment_ring *ring, int64_t position) {
    uint32_t i = first_above(ring, position);
    if (i == ring->count ||
        segment_ring_at(ring, i)->end - segment_ring_at(ring, i)->length > position)
        return NULL;
    return segment_ring_at(ring, i);
}

void segment_ring_free(struct segment_ring *ring, struct allowance *allowance) {
    allowance_release(allowance, ring->segments, ring->room, sizeof *ring->segments);
    *ring = (struct segment_ring){0};
}
