/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered units of applications: UDP packets of known formats, and wiretale's blocks over UDP
 * and TCP. Writes events, rows of blocks, and the columns of flows and directions.
 *
 * sequence/ detects the format and judges each number; it reports to listeners, whose context is a
 * struct block_place. A row of blocks begins as delivered and is written when its number is
 * judged. Over UDP a block is one datagram; over TCP it spans segments, and is
 * delayed (head of line) but never lost. Memory per direction is bounded by sequence/ and GAPS, and
 * rows of blocks by MAX_BLOCK_ROWS. */
#include <stdio.h>

#include "common/block.h"
#include "sequence/tcp_blocks.h"
#include "update/update.h"

/* A packet whose numbers are judged. */
struct block_place {
    struct worker *worker;
    struct flow *flow;
    const struct packet_info *packet;
    unsigned direction;
    struct row *row; /* of its block, NULL if it is none */
};

/* The verdict on a block, by the kind of its event. */
static const enum word verdict_words[WORD_COUNT] = {
    [WORD_BLOCK_OUT_OF_ORDER] = WORD_OUT_OF_ORDER,
    [WORD_BLOCK_DUPLICATE] = WORD_DUPLICATE,
    [WORD_BLOCK_LATE] = WORD_LATE,
    [WORD_BLOCK_CORRUPT] = WORD_CORRUPT,
};

/* Remembers the latest GAPS events of loss. An older one can no longer be amended, although the
 * counters still follow a late packet. */
static void note_gap(struct udp_stream *stream, const struct sequence_event *event,
                     struct flow_event *kept) {
    stream->gaps[stream->next_gap] =
        (struct gap_event){.frame = event->frame, .event = kept, .missing = event->count};
    stream->next_gap = (stream->next_gap + 1) % GAPS;
}

/* A late packet takes back its loss. If a gap is complete then, its event becomes block_gap. */
static void take_gap_back(struct udp_stream *stream, uint64_t frame) {
    for (unsigned i = 0; i < GAPS; i++) {
        /* The newest first: an older one may have the same frame number in another file. */
        struct gap_event *gap = &stream->gaps[(stream->next_gap + GAPS - 1 - i) % GAPS];
        if (!gap->missing || gap->frame != frame)
            continue;
        if (!--gap->missing)
            amend_event(gap->event, &(struct event){.kind = WORD_BLOCK_GAP});
        return;
    }
}

/* A sequence_listener function. The verdict may concern a packet some packets before the current
 * one: the event then has that packet's frame and time, and its row of blocks is written. */
static void emit_sequence_event(void *context, const struct sequence_event *event) {
    struct block_place *place = context;
    struct packet_info info = *place->packet;
    char detail[64];
    info.frame = event->frame;
    info.capture = event->capture;
    info.time_ns = event->time_ns;
    info.time_known = event->time_known;
    if (event->count > 1)
        snprintf(detail, sizeof detail, "%llu, from number %llu on",
                 (unsigned long long)event->count, (unsigned long long)event->sequence);
    else
        snprintf(detail, sizeof detail, "number %llu", (unsigned long long)event->sequence);
    bool missing = event->kind == WORD_BLOCK_LOST || event->kind == WORD_BLOCK_GAP;
    struct flow_event *kept =
        event_write(&place->worker->rows, place->flow, place->direction, &info,
                    &(struct event){.kind = event->kind,
                                    .related_frame = event->related_frame,
                                    .blocks = missing ? event->count : 0,
                                    .detail = detail});
    struct udp_stream *stream = &place->flow->udp[place->direction];
    if (event->kind == WORD_BLOCK_LOST)
        note_gap(stream, event, kept);
    else if (event->kind == WORD_BLOCK_OUT_OF_ORDER)
        take_gap_back(stream, event->related_frame);
    enum word verdict = verdict_words[event->kind];
    if (verdict != WORD_NONE && place->row && event->frame == place->packet->frame)
        row_set(place->row, blocks_verdict, verdict);
}

/* Sets the columns of all blocks. A stream may have no header that numbers it. */
static void begin_row(struct row *row, const struct block_place *place, uint64_t sequence,
                      int64_t bytes, enum word verdict) {
    row_clear(row);
    row_set(row, blocks_flow, place->flow->number);
    row_set(row, blocks_direction, place->direction);
    row_set(row, blocks_capture, place->packet->capture);
    row_set(row, blocks_sequence, (int64_t)sequence);
    row_set(row, blocks_bytes, bytes);
    row_set(row, blocks_verdict, verdict);
}

static void add_block_row(const struct worker *worker, const struct row *row) {
    struct row_sink *sink = worker->rows.sink;
    if (row_sink_rows(sink, TABLE_blocks) < MAX_BLOCK_ROWS)
        row_sink_add(sink, TABLE_blocks, row);
    else
        sink->blocks_dropped++;
}

/* Latency is the difference of two clocks, the capture's and the sender's, so it may be negative.
 * All times are ns. */
static void put_sent(struct row *row, bool sent_known, uint64_t sent_ns, bool complete,
                     int64_t complete_ns) {
    row_set_if(row, blocks_sent_ns, sent_known, (int64_t)sent_ns);
    row_set_if(row, blocks_complete_ns, complete, complete_ns);
    row_set_if(row, blocks_latency_ns, complete && sent_known, complete_ns - (int64_t)sent_ns);
}

/* Sets the row of a datagram that is one block. Returns false if it has no block header: other
 * formats have no rows. Where the copy of a datagram begins is not kept. */
static bool set_row(struct row *row, const struct block_place *place,
                    const struct sequence_payload *payload, const struct datagram *datagram) {
    const struct packet_info *packet = place->packet;
    struct block_header header;
    if (!block_read_header(&header, payload->bytes, payload->captured))
        return false;
    begin_row(row, place, header.sequence, header.length, WORD_DELIVERED);
    row_set(row, blocks_stream, header.stream);
    put_sent(row, true, header.sent_ns, packet->time_known, packet->time_ns);
    if (!datagram) {
        row_set_if(row, blocks_first_ns, packet->time_known, packet->time_ns);
        row_set(row, blocks_first_frame, (int64_t)packet->frame);
    } else if (datagram->covered == &datagram->original) {
        row_set_if(row, blocks_first_ns, datagram->timed, datagram->first_ns);
        row_set(row, blocks_first_frame, (int64_t)datagram->first_frame);
    }
    row_set(row, blocks_last_frame, (int64_t)packet->frame);
    return true;
}

NOINLINE void sequence_update_datagram(struct worker *worker, struct flow *flow, unsigned number,
                                       const struct packet_info *info,
                                       const struct sequence_payload *payload,
                                       const struct datagram *datagram) {
    struct sequence_track *track = &flow->udp[number].sequence;
    if (track->given_up)
        return;
    struct row row;
    struct block_place place = {worker, flow, info, number, NULL};
    place.row = set_row(&row, &place, payload, datagram) ? &row : NULL;
    struct sequence_packet packet = {.time_ns = info->time_ns,
                                     .frame = info->frame,
                                     .payload = *payload,
                                     .capture = info->capture,
                                     .time_known = info->time_known};
    struct sequence_listener listener = {emit_sequence_event, &place};
    sequence_take(track, &packet, worker->rows.pool, &listener);
    if (place.row)
        add_block_row(worker, &row);
}

static void emit_block(void *context, const struct block_stream *blocks,
                       const struct open_block *block, const struct block_segment *segment) {
    const struct block_place *place = context;
    int64_t complete_ns = segment ? segment->time_ns : 0;
    enum word verdict = !segment                      ? WORD_UNFINISHED
                        : complete_ns > block->own_ns ? WORD_HEAD_OF_LINE
                                                      : WORD_DELIVERED;
    struct row row;
    begin_row(&row, place, blocks->first_number + blocks->delivered, blocks->length, verdict);
    row_set_if(&row, blocks_stream, blocks->headed, blocks->stream);
    row_set_if(&row, blocks_first_ns, block->first_frame > 0, block->first_ns);
    put_sent(&row, block->sent_ns > 0, block->sent_ns, segment, complete_ns);
    row_set_if(&row, blocks_head_of_line_ns, segment, complete_ns - block->own_ns);
    row_set_if(&row, blocks_first_frame, block->first_frame > 0, (int64_t)block->first_frame);
    if (segment)
        row_set(&row, blocks_last_frame, (int64_t)segment->frame);
    add_block_row(place->worker, &row);
}

/* Returns the tracker of a stream that begins with a block header, or whose block size the user
 * gave; NULL if it has none. Blocks without headers begin at the first byte of the stream, so its
 * SYN must have been captured. */
static struct block_stream *blocks_of(struct worker *worker, struct flow *flow,
                                      struct tcp_stream *stream, const struct block_header *header,
                                      const struct segment_effect *effect, uint32_t payload_bytes) {
    int64_t length = worker->updater->block_size;
    if (stream->blocks || !payload_bytes || (!header && !length))
        return stream->blocks;
    flow->with_blocks = true;
    if (header)
        stream->blocks =
            block_stream_begin(effect->sequence, header->length, header, worker->rows.pool);
    else if (stream->syn_seen)
        stream->blocks = block_stream_begin(0, length, NULL, worker->rows.pool);
    return stream->blocks;
}

/* Duplicates and segments without a position are skipped, because they deliver nothing. The gaps
 * of the stream decide when a block is complete in order. */
NOINLINE void sequence_update_segment(struct worker *worker, struct flow *flow, unsigned number,
                                      const struct packet_info *packet,
                                      const struct sequence_payload *payload,
                                      const struct segment_effect *effect) {
    struct tcp_stream *stream = &flow->tcp.streams[number];
    struct block_header header;
    bool headed = payload && block_read_header(&header, payload->bytes, payload->captured);
    if (!effect->positions_known || effect->duplicate)
        return;
    struct block_stream *blocks =
        blocks_of(worker, flow, stream, headed ? &header : NULL, effect, packet->payload_bytes);
    if (!blocks || !packet->payload_bytes)
        return;
    struct block_place place = {worker, flow, packet, number, NULL};
    struct block_listener listener = {emit_block, &place};
    block_stream_take(blocks,
                      &(struct block_segment){.start = effect->sequence,
                                              .end = effect->sequence + packet->payload_bytes,
                                              .time_ns = packet->time_ns,
                                              .frame = packet->frame,
                                              .header = headed ? &header : NULL,
                                              .highest = stream->snd_nxt,
                                              .gaps = &stream->gaps},
                      worker->rows.pool, &listener);
}

static void put_sequence(struct row *row, const struct sequence_summary *sum) {
    row_set(row, directions_blocks, (int64_t)sum->unique);
    row_set(row, directions_blocks_lost, (int64_t)sum->lost);
    row_set(row, directions_blocks_out_of_order, (int64_t)sum->out_of_order);
    row_set(row, directions_blocks_duplicate, (int64_t)sum->duplicates);
    row_set(row, directions_blocks_late, (int64_t)sum->late);
    row_set_if(row, directions_blocks_corrupt, sum->application == WORD_BLOCKS,
               (int64_t)sum->corrupt);
    row_set(row, directions_block_loss_runs, (int64_t)sum->loss_runs);
    row_set(row, directions_block_loss_run_max, (int64_t)sum->longest_loss_run);
    row_set(row, directions_block_restarts, (int64_t)sum->restarts);
    row_set_if(row, directions_comfort_noise, sum->application == WORD_RTP,
               (int64_t)sum->comfort_noise);
    row_set_if(row, directions_jitter_ns, sum->jitter_known, sum->jitter_ns);
    row_set_if(row, directions_jitter_mean_ns, sum->jitter_known, sum->jitter_mean_ns);
    row_set_if(row, directions_delay_variation_ns, sum->jitter_known, sum->delay_variation_ns);
}

static void put_replies(struct row *row, const struct reply_sizes *replies) {
    row_set(row, directions_answered_datagrams, replies->answered);
    row_set(row, directions_unanswered_datagrams, replies->unanswered);
    row_set_if(row, directions_answered_max, replies->answered, replies->answered_max);
    row_set(row, directions_unanswered_large, replies->large);
    row_set_if(row, directions_unanswered_large_min, replies->large, replies->large_min);
}

/* Judges the packets that still wait for a decision, then sets the columns. */
static void finish_datagrams(struct worker *worker, struct flow *flow, unsigned number,
                             struct row *row, struct slowest *slowest) {
    struct sequence_track *track = &flow->udp[number].sequence;
    struct packet_info last = {.capture = flow->first_capture};
    struct block_place place = {worker, flow, &last, number, NULL};
    struct sequence_listener listener = {emit_sequence_event, &place};
    struct sequence_summary sum;
    sequence_summary(track, &listener, &sum);
    put_replies(row, &flow->udp[number].replies);
    if (sum.application == WORD_NONE)
        return;
    put_sequence(row, &sum);
    *slowest = sum.slowest;
}

/* A stream without a header and with less than one block of the size that the user gave carries
 * no blocks: it may be a control connection. */
static bool is_no_block(const struct block_stream *blocks) {
    return blocks->lost || (!blocks->headed && !blocks->delivered && blocks->open_count < 2);
}

/* TCP delivers in order, so blocks are never lost, late or out of order when they are delivered. */
static void finish_stream(struct worker *worker, struct flow *flow, unsigned number,
                          struct row *row) {
    struct block_stream *blocks = flow->tcp.streams[number].blocks;
    if (!blocks)
        return;
    /* If it carries no blocks, block_stream_finish() must write no rows of unfinished ones. */
    blocks->lost = is_no_block(blocks);
    struct packet_info last = {.capture = flow->first_capture};
    struct block_place place = {worker, flow, &last, number, NULL};
    uint64_t delivered = blocks->delivered;
    block_stream_finish(blocks, &(struct block_listener){emit_block, &place});
    if (blocks->lost)
        return;
    row_set(row, directions_blocks, (int64_t)delivered);
    row_set(row, directions_blocks_lost, 0);
    row_set(row, directions_blocks_out_of_order, 0);
    row_set(row, directions_blocks_duplicate, 0);
    row_set(row, directions_blocks_head_of_line, (int64_t)blocks->head_of_line);
    row_set(row, directions_head_of_line_ns_max, blocks->head_of_line_ns_max);
}

void sequence_finish(struct worker *worker, struct flow *flow, unsigned number, struct row *row,
                     struct slowest *slowest) {
    if (flow->key.protocol == IP_UDP)
        finish_datagrams(worker, flow, number, row, slowest);
    else if (flow->key.protocol == IP_TCP)
        finish_stream(worker, flow, number, row);
}

enum word sequence_application(const struct flow *flow) {
    for (unsigned number = 0; number < 2; number++) {
        const struct block_stream *blocks = flow->tcp.streams[number].blocks;
        const struct sequence_track *track = &flow->udp[number].sequence;
        if (flow->key.protocol == IP_TCP && blocks && !is_no_block(blocks))
            return WORD_BLOCKS;
        if (flow->key.protocol == IP_UDP && track->layout && !track->withdrawn)
            return track->layout->application;
    }
    return WORD_NONE;
}
