/* SPDX-License-Identifier: Apache-2.0 */
/* One direction over time, in bins that double in width when they run out.
 *
 * Bins are on a grid from the epoch, so that bins of different flows and runs match. A bin
 * without packets takes no memory. The number of bins grows with the number of packets (one per
 * PACKETS_A_BIN, from BINS_LEAST to BINS_MOST), so that small flows stay small.
 *
 * Most flows are short, and most of their memory would be bins. A new series is therefore small:
 * its newest bin has a block of its own, and the earlier ones are in a list of pairs with 16-bit
 * sums, in 64 bytes each. It becomes an array of whole bins if a sum does not fit, if an earlier
 * bin changes, or with more than BINS_SMALL_MOST bins. */
#ifndef WIRETALE_TIME_BINS_H
#define WIRETALE_TIME_BINS_H

#include <stdbool.h>

#include "base/pool.h"

#define BIN_WIDTH_LEAST_NS 1000000 /* 1 ms */
#define BINS_MOST          2000u
#define BINS_LEAST         32u
#define PACKETS_A_BIN      32u
#define BINS_SMALL_MOST    16u

#define BIN_RTT_NONE   UINT32_MAX
#define BIN_BYTES_NONE UINT32_MAX

/* Numbers that are read together are in one block of 16 bytes, as they are written when the bin
 * is created: then a load can be served from the store before it. */
struct time_bin {
    uint64_t wire_bytes, ip_bytes, payload_bytes, unique_bytes, retransmitted_bytes;
    uint32_t index; /* from the first bin */
    uint32_t packets;
    uint32_t rtt_us; /* least RTT in µs; BIN_RTT_NONE without a sample */
    uint32_t flight; /* most bytes; BIN_BYTES_NONE if unknown */
    uint32_t window; /* least bytes; BIN_BYTES_NONE if unknown */
    uint32_t lost;   /* segments or numbered packets that are judged lost */
};

/* The same in 28 bytes. RTT, flight and window keep 32 bits for their values for unknown. */
struct small_bin {
    uint16_t wire_bytes, ip_bytes, payload_bytes, unique_bytes, retransmitted_bytes;
    uint16_t index, packets, lost;
    uint32_t rtt_us, flight, window;
} __attribute__((packed));

/* Returns a bin in another form, which must have room for its numbers. */
#define BIN_AS(type, bin)                                                                          \
    ((type){.wire_bytes = (bin)->wire_bytes,                                                       \
            .ip_bytes = (bin)->ip_bytes,                                                           \
            .payload_bytes = (bin)->payload_bytes,                                                 \
            .unique_bytes = (bin)->unique_bytes,                                                   \
            .retransmitted_bytes = (bin)->retransmitted_bytes,                                     \
            .index = (bin)->index,                                                                 \
            .packets = (bin)->packets,                                                             \
            .rtt_us = (bin)->rtt_us,                                                               \
            .flight = (bin)->flight,                                                               \
            .window = (bin)->window,                                                               \
            .lost = (bin)->lost})

/* Returns the OR of all numbers of a bin but those of 32 bits in both forms: as wide as the widest.
 */
static inline uint64_t bin_extent(const struct time_bin *bin) {
    return bin->wire_bytes | bin->ip_bytes | bin->payload_bytes | bin->unique_bytes |
           bin->retransmitted_bytes | bin->index | bin->packets | bin->lost;
}

/* Two bins before the newest. */
struct bin_pair {
    struct bin_pair *before;
    struct small_bin bins[2]; /* the second may be empty in the last pair */
};
_Static_assert(sizeof(struct bin_pair) == sizeof(struct time_bin), "a size class of pools");

struct time_bins {
    struct time_bin *newest;
    union {
        struct time_bin *bins;  /* in ascending order of index; the last is the newest */
        struct bin_pair *pairs; /* if `small`: the last pair of the bins before the newest */
    };
    int64_t newest_ns;       /* ns; where it starts */
    uint64_t newest_span_ns; /* ns; its width, 0 without a bin that ends within range */
    int64_t first;           /* number of the first bin on the grid */
    uint16_t count;          /* bins, with the newest */
    uint16_t room;           /* of `bins`; 0 if `small` */
    uint8_t doublings;       /* width = BIN_WIDTH_LEAST_NS << doublings */
    bool small;
};

static inline int64_t time_bins_width_ns(const struct time_bins *series) {
    return (int64_t)BIN_WIDTH_LEAST_NS << series->doublings;
}

struct time_bin *time_bins_search(struct time_bins *series, int64_t time_ns, uint64_t packets,
                                  struct pool *pool);
/* Returns the bin for a packet at `time_ns`, which is created if it is missing; NULL without
 * memory. `packets` is the number of packets of the direction so far. The pointer is valid until
 * the next call.
 *
 * Most packets fall into the last bin, which ends within range, so that one comparison suffices. */
static inline struct time_bin *time_bins_at(struct time_bins *series, int64_t time_ns,
                                            uint64_t packets, struct pool *pool) {
    if ((uint64_t)time_ns - (uint64_t)series->newest_ns < series->newest_span_ns)
        return series->newest;
    return time_bins_search(series, time_ns, packets, pool);
}

/* Returns all bins in ascending order of index; `small` is memory for them if the series is small.
 */
const struct time_bin *time_bins_list(const struct time_bins *series,
                                      struct time_bin small[BINS_SMALL_MOST]);

/* Returns the time in ns since the epoch at which bin `index` begins. */
int64_t time_bins_start_ns(const struct time_bins *series, uint32_t index);
void time_bins_free(struct time_bins *series, struct pool *pool);

#endif
