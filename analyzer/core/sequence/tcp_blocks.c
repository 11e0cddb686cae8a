/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a TCP stream by position. Block k begins at start + k * length, so a header is needed
 * only for the first one; sent times are known for blocks whose header begins a segment.
 *
 * Blocks that have begun and are not delivered are in a ring. A segment touches the blocks that it
 * overlaps: a block's own bytes are whole once the highest position is above it and no gap of the
 * stream overlaps it. It is delivered once all blocks before it are whole too (RFC 9293 section
 * 3.10.7.4: segments are processed in order). The difference is the head-of-line delay. Gaps that
 * the receiver acknowledged count as arrived, because only the capture missed them. */
#include "sequence/tcp_blocks.h"

#include <string.h>

struct block_stream *block_stream_begin(int64_t start, int64_t length,
                                        const struct block_header *header, struct pool *pool) {
    struct block_stream *blocks = pool_alloc(pool, sizeof *blocks);
    if (!blocks)
        return NULL;
    *blocks = (struct block_stream){.start = start, .length = length};
    if (header) {
        blocks->first_number = header->sequence;
        blocks->stream = header->stream;
        blocks->headed = true;
    }
    return blocks;
}

void block_stream_free(struct block_stream *blocks, struct pool *pool) {
    if (!blocks)
        return;
    pool_release(pool, blocks->open, blocks->room, sizeof *blocks->open);
    pool_free(pool, blocks, sizeof *blocks);
}

/* Returns open block `i`, counted from the oldest; `room` must be > 0. */
static struct open_block *open_at(const struct block_stream *blocks, uint64_t i) {
    return &blocks->open[(blocks->delivered + i) % blocks->room];
}

/* The ring is unwrapped as it grows; its size is a power of two. */
static bool has_room(struct block_stream *blocks, struct pool *pool) {
    uint32_t old_room = blocks->room;
    if (blocks->open_count < old_room)
        return true;
    if (old_room >= BLOCKS_OPEN_MOST)
        return false;
    uint32_t room = old_room ? 2 * old_room : 4;
    struct open_block *grown = pool_alloc(pool, room * sizeof *grown);
    if (!grown)
        return false;
    for (uint64_t i = 0; i < blocks->open_count; i++)
        grown[(blocks->delivered + i) % room] = *open_at(blocks, i);
    pool_release(pool, blocks->open, old_room, sizeof *grown);
    blocks->open = grown;
    blocks->room = room;
    return true;
}

/* Opens blocks up to `number`, all zero. Returns false if too many would be open or memory has run
 * out; the stream is given up then. */
static bool open_up_to(struct block_stream *blocks, uint64_t number, struct pool *pool) {
    if (number < blocks->delivered)
        return true;
    if (number - blocks->delivered >= BLOCKS_OPEN_MOST)
        return false;
    while (blocks->delivered + blocks->open_count <= number) {
        if (!has_room(blocks, pool))
            return false;
        memset(open_at(blocks, blocks->open_count), 0, sizeof(struct open_block));
        blocks->open_count++;
    }
    return true;
}

static int64_t start_of(const struct block_stream *blocks, uint64_t number) {
    return blocks->start + (int64_t)number * blocks->length;
}

/* Acknowledged data is at the receiver even if the capture missed it. */
static bool is_whole(const struct block_segment *segment, int64_t start, int64_t end) {
    const struct range_set *gaps = segment->gaps;
    if (segment->highest < end)
        return false;
    uint32_t i = range_set_first_above(gaps, start);
    for (; i < gaps->count && gaps->gaps[i].start < end; i++)
        if (!gaps->gaps[i].acked)
            return false;
    return true;
}

/* Updates a block that the segment overlaps. A frame or time of 0 means not yet. */
static void touch(struct block_stream *blocks, const struct block_segment *segment,
                  uint64_t number) {
    struct open_block *block = open_at(blocks, number - blocks->delivered);
    int64_t start = start_of(blocks, number);
    if (!block->first_frame) {
        block->first_frame = segment->frame;
        block->first_ns = segment->time_ns;
    }
    if (segment->header && segment->start == start)
        block->sent_ns = segment->header->sent_ns;
    if (!block->own_ns && is_whole(segment, start, start + blocks->length))
        block->own_ns = segment->time_ns;
}

/* TCP delivers in order: a block is delivered once all bytes before its end have arrived. */
static void deliver(struct block_stream *blocks, const struct block_segment *segment,
                    const struct block_listener *listener) {
    while (blocks->open_count) {
        struct open_block *block = open_at(blocks, 0);
        int64_t start = start_of(blocks, blocks->delivered), end = start + blocks->length;
        if (!is_whole(segment, INT64_MIN, end))
            return;
        if (!block->own_ns)
            block->own_ns = segment->time_ns;
        int64_t waited = segment->time_ns - block->own_ns;
        blocks->head_of_line += waited > 0;
        if (waited > blocks->head_of_line_ns_max)
            blocks->head_of_line_ns_max = waited;
        listener->block(listener->context, blocks, block, segment);
        blocks->delivered++;
        blocks->open_count--;
    }
}

/* Returns whether a header contradicts the expected blocks, so they are not all of one size. */
static bool is_astray(const struct block_stream *blocks, const struct block_segment *segment) {
    int64_t offset = segment->start - blocks->start;
    if (!segment->header)
        return false;
    return offset % blocks->length || segment->header->length != blocks->length ||
           segment->header->sequence != blocks->first_number + (uint64_t)(offset / blocks->length);
}

void block_stream_take(struct block_stream *blocks, const struct block_segment *segment,
                       struct pool *pool, const struct block_listener *listener) {
    if (blocks->lost || segment->start < blocks->start || segment->end <= segment->start)
        return;
    uint64_t first = (uint64_t)((segment->start - blocks->start) / blocks->length);
    uint64_t last = (uint64_t)((segment->end - 1 - blocks->start) / blocks->length);
    if (is_astray(blocks, segment) || !open_up_to(blocks, last, pool)) {
        blocks->lost = true;
        return;
    }
    if (first < blocks->delivered)
        first = blocks->delivered;
    for (uint64_t number = first; number <= last; number++)
        touch(blocks, segment, number);
    deliver(blocks, segment, listener);
}

void block_stream_finish(struct block_stream *blocks, const struct block_listener *listener) {
    while (!blocks->lost && blocks->open_count) {
        if (open_at(blocks, 0)->first_frame)
            listener->block(listener->context, blocks, open_at(blocks, 0), NULL);
        blocks->delivered++;
        blocks->open_count--;
    }
}
