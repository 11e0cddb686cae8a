/* SPDX-License-Identifier: Apache-2.0 */
/* The sequence of blocks of one stream: their sizes and headers, when each is due, and when the
 * plan's amount is reached (count, bytes, time, or the end of the file). Both senders draw from it;
 * it never waits and never sends. */
#ifndef WIRETALE_BLOCK_SOURCE_H
#define WIRETALE_BLOCK_SOURCE_H

#include "common/lateness.h"
#include "stream/block_fast.h"
#include "stream/pacer.h"
#include "transfer/transfer.h"

struct block_source {
    const struct transfer_plan *plan;
    struct content *content; /* of a file; NULL: blocks contain the pattern */
    struct pacer pacer;
    uint16_t stream;
    uint64_t sequence;    /* of the next block */
    uint64_t bytes;       /* of all blocks so far, with headers */
    uint64_t end_ns;      /* monotonic; UINT64_MAX: no time limit */
    uint32_t last_length; /* bytes of the latest block, which may be the short end of a file */
    bool is_done;
    uint64_t now_ns;                  /* monotonic: when the current blocks are sent */
    uint64_t ahead_ns;                /* by which blocks may be sent before they are due */
    uint64_t in_burst, largest_burst; /* blocks that were sent without a pause */
    struct lateness lateness;
};

/* `start_ns` is monotonic; pacing and the time limit count from it. */
void block_source_begin(struct block_source *source, const struct stream *stream,
                        uint64_t start_ns);

/* Must be called before the blocks that are sent together at `now_ns`. */
void block_source_begin_batch(struct block_source *source, uint64_t now_ns);

/* Must be called at the end of a pause: blocks that were due in it are due from `now_ns` on. */
void block_source_resume(struct block_source *source, uint64_t now_ns);

/* Returns whether a block is due now. If not, the source is done or the next block is due at
 * pacer_due_ns(), which is later if a burst has reached the plan's limit. */
bool block_source_is_due(struct block_source *source);

/* Fills the header of the next block, except for `sent_ns`. If there is content, also reads the
 * body into `body`, which must have room for it. Returns false at the end of the file. */
bool block_source_next(struct block_source *source, struct block_header *header, uint8_t *body);

/* Writes the lateness of the blocks into the report of the stream. */
void block_source_report(const struct block_source *source, struct stream_report *report);

/* Returns the bytes of block `number`, which block_source_next() has returned. */
static inline uint32_t block_source_length(const struct block_source *source, uint64_t number) {
    if (source->content && number + 1 == source->sequence)
        return source->last_length;
    return transfer_plan_size(source->plan, number);
}

/* Returns the magic of all blocks of this source. */
static inline uint32_t block_source_magic(const struct block_source *source) {
    return source->content ? CONTENT_MAGIC : BLOCK_MAGIC;
}

#endif
