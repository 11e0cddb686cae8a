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

/* Returns by how much a block may be late before it counts as sent in catching up. */
static uint64_t tolerance_ns(const struct block_source *source) {
    uint64_t gap_ns =
        (uint64_t)pacer_gap_ns(&source->pacer, transfer_plan_size(source->plan, source->sequence));
    return gap_ns > LATE_NS ? gap_ns : LATE_NS;
}

static bool is_late(const struct block_source *source) {
    return source->plan->pacing != PACING_NONE &&
           source->now_ns > pacer_due_ns(&source->pacer) + tolerance_ns(source);
}

/* A burst continues over several batches as long as blocks are late. */
void block_source_begin_batch(struct block_source *source, uint64_t now_ns) {
    source->now_ns = now_ns;
    if (!is_late(source))
        source->in_burst = 0;
}

/* The schedule moves, because a peer that is back must not get the blocks of the pause at once. */
void block_source_resume(struct block_source *source, uint64_t now_ns) {
    if (source->plan->pacing != PACING_NONE && pacer_due_ns(&source->pacer) < now_ns)
        pacer_move(&source->pacer, now_ns);
}

/* After the largest burst that the plan allows, the next block is due one gap later, and those
 * behind it accordingly. */
static void limit_burst(struct block_source *source) {
    const struct transfer_plan *plan = source->plan;
    if (!plan->burst_cap || source->in_burst < plan->burst_cap)
        return;
    double gap_ns = pacer_gap_ns(&source->pacer, transfer_plan_size(plan, source->sequence));
    pacer_move(&source->pacer, source->now_ns + (uint64_t)gap_ns + 1);
    source->in_burst = 0;
}

bool block_source_is_due(struct block_source *source) {
    if (source->is_done || amount_is_used_up(source, source->now_ns)) {
        source->is_done = true;
        return false;
    }
    if (source->plan->pacing == PACING_NONE)
        return true;
    if (pacer_due_ns(&source->pacer) <= source->now_ns)
        limit_burst(source);
    return pacer_due_ns(&source->pacer) <= source->now_ns + source->ahead_ns;
}

/* Must precede pacer_advance(). */
static void note_pace(struct block_source *source) {
    uint64_t due_ns = pacer_due_ns(&source->pacer);
    lateness_add(&source->lateness, source->now_ns > due_ns ? source->now_ns - due_ns : 0);
    if (due_ns > source->now_ns)
        source->in_burst = 0;
    if (++source->in_burst > source->largest_burst)
        source->largest_burst = source->in_burst;
}

void block_source_report(const struct block_source *source, struct stream_report *report) {
    if (source->plan->pacing == PACING_NONE)
        return;
    report->late_p50_ns = lateness_percentile(&source->lateness, 50);
    report->late_p99_ns = lateness_percentile(&source->lateness, 99);
    report->late_max_ns = source->lateness.max_ns;
    report->largest_burst = source->largest_burst;
    report->moved_ns = source->pacer.moved_ns;
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
        uint32_t overhead = transfer_plan_overhead(source->plan);
        size_t got = content_read(source->content, body, length - overhead);
        source->is_done = got + overhead < length;
        if (!got)
            return false;
        length = overhead + (uint32_t)got;
    }
    *header = (struct block_header){
        .run = (uint32_t)source->plan->run,
        .stream = source->stream,
        .flags = (uint16_t)((source->sequence ? 0 : BLOCK_FIRST) |
                            (is_last(source, length) ? BLOCK_LAST : 0) |
                            (source->content ? 0 : BLOCK_TILED) |
                            (source->plan->authentic ? BLOCK_AUTHENTIC : 0) |
                            (is_late(source) ? BLOCK_CATCH_UP : 0)),
        .length = length,
        .sequence = source->sequence,
    };
    source->last_length = length;
    source->sequence++;
    source->bytes += length;
    if (source->plan->pacing != PACING_NONE) {
        note_pace(source);
        pacer_advance(&source->pacer, length);
    }
    return true;
}
