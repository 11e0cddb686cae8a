/* SPDX-License-Identifier: Apache-2.0 */
/* wiretale's blocks in one direction of a TCP stream: when each was complete here, and how long it
 * waited for bytes before its own (head-of-line blocking).
 *
 * The first header tells length and number; block k of the stream covers bytes [k·length,
 * (k+1)·length) from there. A later header is read where it begins a segment. */
#ifndef WIRETALE_BLOCK_STREAM_H
#define WIRETALE_BLOCK_STREAM_H

#include "base/range_set.h"
#include "common/block.h"

#define BLOCKS_OPEN_MOST 8192u /* begun and not delivered, of a stream */

struct open_block {
    int64_t first_ns, own_ns; /* first byte; its own last byte, 0 while one is missing */
    uint64_t first_frame;
    uint64_t sent_ns; /* 0 when its header was not read */
};

struct delivered_block {
    uint64_t number; /* sequence */
    uint16_t stream;
    uint32_t bytes;
    struct open_block seen;
    int64_t complete_ns;
    uint64_t last_frame;
    bool headed;   /* number and stream are those of a header */
    bool complete; /* else the stream ended before */
};

struct block_stream {
    int64_t start;         /* stream position of the first block known */
    int64_t length;        /* bytes of each */
    uint64_t first_number; /* sequence of that block */
    uint16_t stream;
    bool headed;           /* a header told length, number and stream */
    bool lost;             /* blocks are no more where they should be, or too many are open */
    uint64_t delivered;    /* blocks, counted from the first known */
    uint64_t head_of_line; /* blocks that waited */
    int64_t head_of_line_ns_max;
    struct open_block *open; /* of block delivered + i at (delivered + i) % room */
    uint32_t open_count, room;
};

struct block_listener {
    void (*block)(void *context, const struct delivered_block *block);
    void *context;
};

/* The stream's tracker, from its first header (or a length that the user gives, then with
 * `header` NULL); NULL without memory. */
struct block_stream *block_stream_begin(int64_t start, int64_t length,
                                        const struct block_header *header, struct pool *pool);
void block_stream_free(struct block_stream *blocks, struct pool *pool);

/* The segment [start, end) was seen; `header` is what it begins with, or NULL. `highest` and
 * `gaps` say what of the stream has been seen after it. */
struct block_segment {
    int64_t start, end;
    int64_t time_ns;
    uint64_t frame;
    const struct block_header *header;
    int64_t highest;
    const struct range_set *gaps;
};
void block_stream_take(struct block_stream *blocks, const struct block_segment *segment,
                       struct pool *pool, const struct block_listener *listener);
/* What is left open, at the end. */
void block_stream_finish(struct block_stream *blocks, const struct block_listener *listener);

#endif
