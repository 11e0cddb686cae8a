/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp/unacked_segments.h"

_Static_assert(MAX_UNACKED < 1 << 15, "room fits");
_Static_assert(sizeof(struct unacked_segment) == 40, "rings of busy streams stay small");

static int64_t start_of(const struct unacked_segment *segment) {
    return segment->end - (int64_t)segment->length;
}

static inline void note_acked(struct unacked_segments *ring, uint32_t payload) {
    if (payload > ring->acked_max)
        ring->acked_max = payload < UINT16_MAX ? (uint16_t)payload : UINT16_MAX;
}

/* After the ring has doubled, the entries that wrapped around the old end move behind it. */
struct unacked_segment *unacked_push(struct unacked_segments *ring, uint32_t most,
                                     struct pool *pool) {
    uint32_t old_room = ring->room, room = old_room;
    if (pool_grow(pool, (void **)&ring->segments, &room, sizeof *ring->segments, 1,
                  most > old_room ? most : old_room)) {
        ring->room = room & 0x7FFF;
        for (uint32_t i = 0; i < ring->head && i < ring->count; i++)
            ring->segments[old_room + i] = ring->segments[i];
    } else if (ring->room) {
        unacked_forget(ring, ring->segments[ring->head].least);
        ring->head = (uint16_t)((ring->head + 1) & (ring->room - 1));
        ring->count--;
    } else {
        ring->forgot = true;
        return NULL;
    }
    return unacked_at(ring, ring->count++);
}

struct ack_result unacked_acknowledge(struct unacked_segments *ring, int64_t position) {
    struct ack_result acked = {0};
    uint32_t count = ring->count;
    for (; acked.count < count; acked.count++) {
        const struct unacked_segment *segment = unacked_at(ring, acked.count);
        if (segment->end > position)
            break;
        acked.newest_ns = segment->time_ns;
        acked.newest_frame = segment->frame;
        acked.no_sample |= segment->no_sample;
        note_acked(ring, segment->least);
    }
    acked.left = acked.count < count;
    if (acked.left && start_of(unacked_at(ring, acked.count)) < position) /* its first part */
        note_acked(ring, unacked_at(ring, acked.count)->least);
    ring->count = (uint16_t)(count - acked.count);
    /* An empty ring restarts at the same entries, which are in the cache. */
    ring->head = acked.left ? (uint16_t)((ring->head + acked.count) & (ring->room - 1)) : 0;
    return acked;
}

/* Returns the index of the first segment that ends above `position`, `count` if there is none. */
static uint32_t first_above(const struct unacked_segments *ring, int64_t position) {
    uint32_t low = 0, high = ring->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (unacked_at(ring, middle)->end > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void unacked_sacked(struct unacked_segments *ring, int64_t start, int64_t end) {
    for (uint32_t i = first_above(ring, start);
         i < ring->count && start_of(unacked_at(ring, i)) < end; i++)
        if (start_of(unacked_at(ring, i)) >= start)
            note_acked(ring, unacked_at(ring, i)->least);
}

void unacked_repeated(struct unacked_segments *ring, int64_t start, int64_t end, uint32_t payload) {
    for (uint32_t i = first_above(ring, start);
         i < ring->count && start_of(unacked_at(ring, i)) < end; i++)
        if (start_of(unacked_at(ring, i)) >= start && payload < unacked_at(ring, i)->least)
            unacked_at(ring, i)->least = payload;
}

void unacked_exclude(struct unacked_segments *ring, int64_t start, int64_t end) {
    for (uint32_t i = first_above(ring, start);
         i < ring->count && start_of(unacked_at(ring, i)) < end; i++)
        unacked_at(ring, i)->no_sample = true;
}

const struct unacked_segment *unacked_find(const struct unacked_segments *ring, int64_t position) {
    uint32_t i = first_above(ring, position);
    if (i == ring->count || start_of(unacked_at(ring, i)) > position)
        return NULL;
    return unacked_at(ring, i);
}

int64_t unacked_sent_before(const struct unacked_segments *ring, int64_t time_ns, int64_t next) {
    for (uint32_t i = ring->count; i-- > 0 && unacked_at(ring, i)->time_ns >= time_ns;)
        next = start_of(unacked_at(ring, i));
    return next;
}

void unacked_free(struct unacked_segments *ring, struct pool *pool) {
    pool_release(pool, ring->segments, ring->room, sizeof *ring->segments);
    ring->segments = NULL;
    ring->head = ring->count = ring->room = 0;
}
