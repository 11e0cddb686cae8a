/* SPDX-License-Identifier: Apache-2.0 */
/* wiretale's blocks in one direction of a TCP stream: the time at which each was complete at the
 * capture point, and how long it waited for earlier bytes (head-of-line blocking): rule V12.6.
 *
 * The first header contains length and number; block k of the stream covers bytes [k*length,
 * (k+1)*length) from there. A later header is read if it begins a segment; if it contradicts, the
 * tracker stops. At most BLOCKS_OPEN_MOST blocks are open. */
#ifndef WIRETALE_BLOCK_STREAM_H
#define WIRETALE_BLOCK_STREAM_H

#include "base/range_set.h"
#include "common/block.h"

#define BLOCKS_OPEN_MOST 8192u /* started and not delivered, per stream */

struct open_block {
    int64_t first_ns, own_ns; /* of the first byte; of its own last byte, 0 while one is missing */
    uint64_t first_frame;
    uint64_t sent_ns; /* 0 if its header was not captured */
};

struct block_stream {
    int64_t start;         /* stream offset of the first known block */
    int64_t length;        /* bytes per block */
    uint64_t first_number; /* its sequence number */
    uint16_t stream;
    bool headed;           /* a header contained length, number and stream */
    bool lost;             /* blocks are misaligned, or too many are open */
    uint64_t delivered;    /* since the first known block */
    uint64_t head_of_line; /* blocks that waited for earlier bytes */
    int64_t head_of_line_ns_max;
    struct open_block *open; /* block delivered + i is at (delivered + i) % room */
    uint32_t open_count, room;
};

/* Creates a stream's tracker from its first header (or from a user-given length, with `header`
 * NULL). Returns NULL if memory is exhausted. */
struct block_stream *block_stream_begin(int64_t start, int64_t length,
                                        const struct block_header *header, struct pool *pool);
void block_stream_free(struct block_stream *blocks, struct pool *pool);

/* A captured segment [start, end); `header` is the block header at its start, or NULL. `highest`
 * and `gaps` describe the captured part of the stream after it. */
struct block_segment {
    int64_t start, end;
    int64_t time_ns;
    uint64_t frame;
    const struct block_header *header;
    int64_t highest;
    const struct range_set *gaps;
};

/* Called for the oldest open block, in order, before it counts in blocks->delivered. `segment`
 * completed it, NULL if the stream ended first. */
struct block_listener {
    void (*block)(void *context, const struct block_stream *blocks, const struct open_block *block,
                  const struct block_segment *segment);
    void *context;
};

/* Processes a segment. Calls the listener for each block that it completes. Data before the first
 * known block is ignored. Sets `lost` and stops if blocks cannot be followed. */
void block_stream_take(struct block_stream *blocks, const struct block_segment *segment,
                       struct pool *pool, const struct block_listener *listener);
/* Reports the blocks that are incomplete at the end. */
void block_stream_finish(struct block_stream *blocks, const struct block_listener *listener);

#endif
