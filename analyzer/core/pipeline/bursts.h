/* SPDX-License-Identifier: Apache-2.0 */
/* The fullest 10 µs, 100 µs and 1 ms of an interface, in bytes. */
#ifndef WIRETALE_BURSTS_H
#define WIRETALE_BURSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define BURST_WINDOWS 3u
static const int64_t burst_windows_ns[BURST_WINDOWS] = {10000, 100000, 1000000};

/* A recent packet of the ring. */
struct burst_packet {
    int64_t time_ns;
    uint64_t before; /* bytes of all packets before it */
};

struct burst_window {
    uint64_t tail;   /* number of the packet with which it begins */
    uint64_t before; /* bytes of all packets before that one */
    uint64_t most;   /* bytes of the fullest window so far */
};

/* Zeros are an interface without packets. */
struct bursts {
    struct burst_packet *ring; /* packets tail to head at their number modulo its size */
    uint64_t mask;             /* its size less one, a power of 2 */
    uint64_t head, full;       /* number of the next packet; the number for which it has no room */
    uint64_t threshold;        /* up to this sum of bytes no window exceeds its greatest */
    struct burst_window windows[BURST_WINDOWS];
    int64_t first_ns;    /* the first packet of the fullest 1 ms */
    int64_t last_ns;     /* its last packet */
    uint64_t last_frame; /* the same */
    bool lost;           /* the ring had no room for the packets of 1 ms */
};

void bursts_free(struct bursts *bursts);

/* The slow paths of bursts_add(). Returns false if the bursts are lost: the packet is not added. */
bool bursts_make_room(struct bursts *bursts, int64_t time_ns, size_t *rings_bytes);
void bursts_measure(struct bursts *bursts, int64_t time_ns, uint64_t after, uint64_t frame);

/* Adds a packet, whose time must not precede that of the packet before it. `before` and `after` are
 * the bytes of all packets without it and with it, `rings_bytes` the memory of all rings. */
static inline void bursts_add(struct bursts *bursts, int64_t time_ns, uint64_t before,
                              uint64_t after, uint64_t frame, size_t *rings_bytes) {
    if (!LIKELY(bursts->head < bursts->full) && !bursts_make_room(bursts, time_ns, rings_bytes))
        return;
    bursts->ring[bursts->head++ & bursts->mask] = (struct burst_packet){time_ns, before};
    if (!LIKELY(after <= bursts->threshold))
        bursts_measure(bursts, time_ns, after, frame);
}

#endif
