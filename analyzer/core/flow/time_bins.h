/* SPDX-License-Identifier: Apache-2.0 */
/* One direction over time, in bins that double in width when they run out.
 *
 * Bins lie on a grid from the epoch, so that those of different flows and runs fit together. A bin
 * without packets takes no memory. The number of bins grows with the number of packets (one for
 * each PACKETS_A_BIN, from BINS_LEAST to BINS_MOST), so that many small flows stay small.
 */
#ifndef WIRETALE_TIME_BINS_H
#define WIRETALE_TIME_BINS_H

#include "base/pool.h"

#define BIN_WIDTH_LEAST_NS 1000000 /* 1 ms */
#define BINS_MOST          2000u
#define BINS_LEAST         32u
#define PACKETS_A_BIN      32u

#define BIN_RTT_NONE   UINT32_MAX
#define BIN_BYTES_NONE UINT32_MAX

/* Numbers that are read together lie in one part of 16 bytes, as they are written when the bin is
 * opened: then what was just written can be read at once. */
struct time_bin {
    uint64_t wire_bytes, ip_bytes, payload_bytes, unique_bytes, retransmitted_bytes;
    uint32_t index; /* from the series' first bin */
    uint32_t packets;
    uint32_t rtt_us; /* least, BIN_RTT_NONE without one */
    uint32_t flight; /* most bytes, BIN_BYTES_NONE when not known */
    uint32_t window; /* least bytes, BIN_BYTES_NONE when not known */
    uint32_t lost;   /* segments or numbered packets taken for lost */
};

struct time_bins {
    struct time_bin *bins;   /* ascending by index */
    struct time_bin *newest; /* the last of them */
    int64_t newest_ns;       /* where that starts */
    uint64_t newest_span_ns; /* its width, 0 while there is none that ends within range */
    int64_t first;           /* number of the first bin on the grid */
    uint16_t count, room;
    uint8_t doublings; /* width = BIN_WIDTH_LEAST_NS << doublings */
};

static inline int64_t time_bins_width_ns(const struct time_bins *series) {
    return (int64_t)BIN_WIDTH_LEAST_NS << series->doublings;
}

struct time_bin *time_bins_search(struct time_bins *series, int64_t time_ns, uint64_t packets,
                                  struct pool *pool);
/* The bin for a packet at `time_ns`, made if there is none; NULL without memory. `packets` is the
 * number of packets of the direction so far. The pointer is good until the next call.
 *
 * The usual packet falls into the last bin. (As that ends within range, the difference is less than
 * its span only there.) */
static inline struct time_bin *time_bins_at(struct time_bins *series, int64_t time_ns,
                                            uint64_t packets, struct pool *pool) {
    if ((uint64_t)time_ns - (uint64_t)series->newest_ns < series->newest_span_ns)
        return series->newest;
    return time_bins_search(series, time_ns, packets, pool);
}

int64_t time_bins_start_ns(const struct time_bins *series, uint32_t index);
void time_bins_free(struct time_bins *series, struct pool *pool);

#endif
