/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a stream, one after the other, until its amount is used up. */
#ifndef WIRETALE_BLOCK_SOURCE_H
#define WIRETALE_BLOCK_SOURCE_H

#include "stream/block_fast.h"
#include "stream/pacer.h"
#include "transfer/content.h"
#include "transfer/transfer_plan.h"

struct block_source {
    const struct transfer_plan *plan;
    struct content *content; /* NULL: the pattern */
    struct pacer pacer;
    uint16_t stream;
    uint64_t sequence, bytes; /* of the next block; made so far */
    uint64_t end_ns;          /* monotonic; UINT64_MAX: no such limit */
    uint32_t last_length;
    bool is_done;
};

void block_source_begin(struct block_source *source, const struct transfer_plan *plan,
                        struct content *content, uint16_t stream, uint64_t start_ns);

/* Whether a block may go at `now_ns`; when not, the source is done or the next is due later. */
bool block_source_is_due(struct block_source *source, uint64_t now_ns);
/* When it is. */
uint64_t block_source_due_ns(const struct block_source *source);

/* Its header, but for the time. Of content the body is written, too: `body` has room for it. */
bool block_source_next(struct block_source *source, struct block_header *header, uint8_t *body);

/* The length of a block that was made. */
static inline uint32_t block_source_length(const struct block_source *source, uint64_t number) {
    if (source->content && number + 1 == source->sequence)
        return source->last_length;
    return transfer_plan_size(source->plan, number);
}

static inline uint32_t block_source_magic(const struct block_source *source) {
    return source->content ? CONTENT_MAGIC : BLOCK_MAGIC;
}

#endif
