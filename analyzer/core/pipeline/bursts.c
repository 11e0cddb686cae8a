/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fullest window of 10 µs, 100 µs and 1 ms of an interface, exactly.
 *
 * A ring holds the recent packets, each with the sum of bytes before it, so that the bytes of a
 * window are the difference of two sums. The fullest window ends with a packet, so each packet is
 * tried as the last one. The tail of a window moves only if the bytes since the tail exceed the
 * greatest window so far: until then no window can be fuller, and a packet costs one comparison.
 * The ring belongs to the interface. It grows with the packets of 1 ms, up to RING_MOST packets and
 * RINGS_BYTES_MOST bytes of all interfaces; past those the bursts are lost, which makes them null.
 */
#include <stdlib.h>

#include "pipeline/bursts.h"

#define RING_FIRST       32u        /* packets; a rotated set has thousands of rings */
#define RING_MOST        (1u << 18) /* packets; 1 ms of 100 Gbit/s in smallest frames has 148,810 */
#define RINGS_BYTES_MOST (64u << 20) /* bytes of the rings of all interfaces */
#define LONGEST          (BURST_WINDOWS - 1)

void bursts_free(struct bursts *bursts) {
    free(bursts->ring);
    bursts->ring = NULL;
}

/* Moves the tail of a window that ends at `time_ns`; a packet one window before is outside it. */
static inline void move_tail(struct bursts *bursts, unsigned number, int64_t time_ns) {
    struct burst_window *window = &bursts->windows[number];
    const struct burst_packet *ring = bursts->ring;
    int64_t since_ns = time_ns - burst_windows_ns[number];
    uint64_t mask = bursts->mask, head = bursts->head, tail = window->tail;
    while (tail < head && ring[tail & mask].time_ns <= since_ns)
        tail++;
    window->tail = tail;
    if (tail < head)
        window->before = ring[tail & mask].before;
}

static inline void measure_window(struct bursts *bursts, unsigned number, int64_t time_ns,
                                  uint64_t after, uint64_t frame) {
    struct burst_window *window = &bursts->windows[number];
    move_tail(bursts, number, time_ns);
    if (after - window->before <= window->most)
        return;
    window->most = after - window->before;
    if (number == LONGEST) {
        bursts->first_ns = bursts->ring[window->tail & bursts->mask].time_ns;
        bursts->last_frame = frame;
        bursts->last_ns = time_ns;
    }
}

NOINLINE void bursts_measure(struct bursts *bursts, int64_t time_ns, uint64_t after,
                             uint64_t frame) {
    uint64_t threshold = UINT64_MAX;
    for (unsigned i = 0; i < BURST_WINDOWS; i++) {
        struct burst_window *window = &bursts->windows[i];
        if (after > window->before + window->most)
            measure_window(bursts, i, time_ns, after, frame);
        if (window->before + window->most < threshold)
            threshold = window->before + window->most;
    }
    bursts->threshold = threshold;
}

/* Doubles the ring. Returns false without memory or at a bound. */
static bool grow(struct bursts *bursts, size_t *rings_bytes) {
    uint64_t old = bursts->ring ? bursts->mask + 1 : 0, size = old ? 2 * old : RING_FIRST;
    size_t more = (size_t)(size - old) * sizeof *bursts->ring;
    if (size > RING_MOST || *rings_bytes + more > RINGS_BYTES_MOST)
        return false;
    struct burst_packet *ring = malloc((size_t)size * sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t i = bursts->windows[LONGEST].tail; i < bursts->head; i++)
        ring[i & (size - 1)] = bursts->ring[i & bursts->mask];
    free(bursts->ring);
    bursts->ring = ring;
    bursts->mask = size - 1;
    *rings_bytes += more;
    return true;
}

/* The tail of the longest window is the oldest one: move_tail() brings each as far as its window
 * lets it. */
NOINLINE bool bursts_make_room(struct bursts *bursts, int64_t time_ns, size_t *rings_bytes) {
    if (bursts->lost)
        return false;
    for (unsigned i = 0; bursts->ring && i < BURST_WINDOWS; i++)
        move_tail(bursts, i, time_ns);
    uint64_t held = bursts->head - bursts->windows[LONGEST].tail;
    bool crowded = !bursts->ring || 2 * held > bursts->mask;
    if (crowded && !grow(bursts, rings_bytes) && (!bursts->ring || held > bursts->mask)) {
        bursts->lost = true;
        bursts->full = 0;
        return false;
    }
    bursts->full = bursts->windows[LONGEST].tail + bursts->mask + 1;
    return true;
}
