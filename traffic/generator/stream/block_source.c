/* SPDX-License-Identifier: Apache-2.0 */
/* The next block of a stream and the end of its amount.
 *
 * The stream's thread owns its source, so nothing is locked. The limit that is reached first ends
 * it. With `bytes` the last block is sent whole, so the sum may exceed the plan by less than a
 * block. */
#include "stream/block_source.h"

void block_source_begin(struct block_source *source, const struct stream *stream,
                        uint64_t start_ns) {
    struct transfer *transfer = stream->direction->transfer;
    const struct transfer_plan *plan = &transfer->plan;
    *source = (struct block_source){
        .plan = plan,
        .content = plan->content ? &transfer->content : NULL,
        .stream = stream->number,
        .end_ns = plan->time_ns ? start_ns + plan->time_ns : UINT64_MAX,
    };
    pacer_begin(&source->pacer, plan, stream->number, start_ns);
}

/* With a rate, a block that is due at or after the end is never sent, and neither is one that was
 * due earlier if the machine could not send it in time. */
static bool time_is_over(const struct block_source *source, uint64_t now_ns) {
    bool paced = source->plan->pacing != PACING_NONE;
    return now_ns >= source->end_ns || (paced && pacer_due_ns(&source->pacer) >= source->end_ns);
}

/* The length of a pipe is unknown: block_source_next() finds its end. */
static bool amount_is_used_up(const struct block_source *source, uint64_t now_ns) {
    const struct transfer_plan *plan = source->plan;
    return (plan->count && source->sequence >= plan->count) ||
           (plan->bytes && source->bytes >= plan->bytes) || time_is_over(source, now_ns) ||
           (source->content && source->content->left_known && !source->content->left);
}

bool block_source_is_due(struct block_source *source, uint64_t now_ns) {
    if (source->is_done || amount_is_used_up(source, now_ns)) {
        source->is_done = true;
        return false;
    }
    return source->plan->pacing == PACING_NONE || pacer_due_ns(&source->pacer) <= now_ns;
}

/* The flag lets an analyzer distinguish a short stream from a truncated one. */
static bool is_last(const struct block_source *source, uint32_t length) {
    const struct transfer_plan *plan = source->plan;
    return (plan->count && source->sequence + 1 == plan->count) ||
           (plan->bytes && source->bytes + length >= plan->bytes) ||
           (source->content && source->content->left_known && !source->content->left);
}

/* A short read is the end of the input: this block is shorter and no other follows. */
bool block_source_next(struct block_source *source, struct block_header *header, uint8_t *body) {
    uint32_t length = transfer_plan_size(source->plan, source->sequence);
    if (source->content) {
        size_t got = content_read(source->content, body, length - BLOCK_HEADER_BYTES);
        source->is_done = got + BLOCK_HEADER_BYTES < length;
        if (!got)
            return false;
        length = BLOCK_HEADER_BYTES + (uint32_t)got;
    }
    *header = (struct block_header){
        .run = (uint32_t)source->plan->run,
        .stream = source->stream,
        .flags = (uint16_t)((source->sequence ? 0 : BLOCK_FIRST) |
                            (is_last(source, length) ? BLOCK_LAST : 0) |
                            (source->content ? 0 : BLOCK_TILED)),
        .length = length,
        .sequence = source->sequence,
    };
    source->last_length = length;
    source->sequence++;
    source->bytes += length;
    if (source->plan->pacing != PACING_NONE)
        pacer_advance(&source->pacer, length);
    return true;
}
