/* SPDX-License-Identifier: Apache-2.0 */
/* Sends blocks as a stream of bytes. All blocks that are due are written into one buffer and sent
 * with one call, because the cost of a call exceeds that of a block; if the plan says so, each
 * block has a call of its own. A block may be longer than the buffer; it then continues at the
 * start of the next one. A block counts as sent once the kernel took all of its bytes: after an
 * error, those are the blocks that were sent. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "stream/block_source.h"
#include "stream/stream.h"

#define BUFFER_BYTES (1u << 19) /* measured: least CPU time per byte */
_Static_assert(BUFFER_BYTES >= MAX_CONTENT_SIZE, "the largest block of a file must fit");

struct tcp_sender {
    struct stream *stream;
    struct block_source source;
    uint8_t *bytes;
    size_t have, at;            /* bytes in the buffer; of these, sent */
    struct block_header header; /* of the current block */
    size_t offset;              /* in it, of the next byte; 0: no current block */
    uint64_t written;
    uint64_t stopped_ns;
};

/* Appends as much of the current block as fits. */
static void make_piece(struct tcp_sender *sender) {
    uint8_t *to = sender->bytes + sender->have;
    size_t room = BUFFER_BYTES - sender->have, left = sender->header.length - sender->offset;
    size_t piece = room < left ? room : left;
    if (!sender->source.content)
        block_fill(to, &sender->header, sender->offset, piece);
    if (!sender->offset)
        block_put_header(to, block_source_magic(&sender->source), &sender->header);
    sender->have += piece;
    sender->offset += piece;
    if (sender->offset == sender->header.length)
        sender->offset = 0;
}

/* A header must fit at once. Content must fit completely, because it is read straight into the
 * buffer. */
static bool has_room(const struct tcp_sender *sender) {
    size_t need = BLOCK_HEADER_BYTES;
    if (sender->source.content)
        need = transfer_plan_size(sender->source.plan, sender->source.sequence);
    return BUFFER_BYTES - sender->have >= need;
}

/* Fills the buffer with the blocks that are due now, stamped with one reading of the clock. */
static void gather(struct tcp_sender *sender) {
    uint64_t now = monotonic_ns(), sent_ns = realtime_ns();
    sender->stream->progress_ns = now;
    sender->have = sender->at = 0;
    block_source_begin_batch(&sender->source, now);
    while (sender->have < BUFFER_BYTES) {
        if (!sender->offset) {
            if (sender->have && sender->source.plan->write_each)
                return;
            uint8_t *body = sender->bytes + sender->have + BLOCK_HEADER_BYTES;
            if (sender->stream->direction->stop || !has_room(sender) ||
                !block_source_is_due(&sender->source) ||
                !block_source_next(&sender->source, &sender->header, body))
                return;
            sender->header.sent_ns = sent_ns;
        }
        make_piece(sender);
    }
}

/* Advances over `bytes` that the kernel took, and counts the blocks that they complete. */
static void note_sent(struct tcp_sender *sender, size_t bytes) {
    struct stream_report *own = &sender->stream->own;
    sender->at += bytes;
    sender->written += bytes;
    while (own->blocks_sent < sender->source.sequence) {
        uint32_t length = block_source_length(&sender->source, own->blocks_sent);
        if (own->bytes_sent + length > sender->written)
            break;
        own->bytes_sent += length;
        own->blocks_sent++;
    }
    stream_note_moved(sender->stream, bytes);
    stream_note_sent(sender->stream);
}

/* After a stop, the current block may be completed for STOP_GRACE_NS, so that the receiver sees no
 * partial block. A limit of bytes has no grace, because a block may have 1 GiB. */
static bool grace_is_over(struct tcp_sender *sender) {
    if (!sender->stream->direction->stop)
        return false;
    uint64_t now = monotonic_ns();
    if (!sender->stopped_ns)
        sender->stopped_ns = now;
    return now - sender->stopped_ns > STOP_GRACE_NS || stream_exceeds_limit(sender->stream);
}

/* Sends the buffer. Returns false if the stream cannot go on. */
static bool write_out(struct tcp_sender *sender) {
    if (!sender->stream->times.first_ns && sender->have)
        stream_times_note(&sender->stream->times, monotonic_ns());
    while (sender->at < sender->have) {
        ssize_t sent = send(sender->stream->fd, sender->bytes + sender->at,
                            sender->have - sender->at, MSG_NOSIGNAL);
        if (sent > 0)
            note_sent(sender, (size_t)sent);
        else if (!stream_handle_error(sender->stream, errno))
            return false;
        if (grace_is_over(sender))
            return false;
    }
    return true;
}

/* Alternates between filling and sending the buffer. A block that is longer than the buffer is
 * continued before the pace is considered. Without pacing, the blocking send() is the only wait. */
static void send_all(struct tcp_sender *sender) {
    struct block_source *source = &sender->source;
    for (;;) {
        gather(sender);
        stream_limit_priority(sender->stream, source->lateness.max_ns);
        if (!write_out(sender))
            return;
        if (sender->offset)
            continue;
        if (source->is_done || sender->stream->direction->stop)
            return;
        if (source->plan->pacing != PACING_NONE)
            pacer_wait(pacer_due_ns(&source->pacer), &sender->stream->direction->stop);
    }
}

/* The FIN shows the receiver the end of the stream. The descriptor stays open, because the exchange
 * samples TCP_INFO once more. */
void stream_send_tcp(struct stream *stream, uint64_t start_ns) {
    struct transfer *transfer = stream->direction->transfer;
    struct tcp_sender sender = {.stream = stream, .bytes = malloc(BUFFER_BYTES)};
    if (!sender.bytes) {
        transfer_fail(transfer, "out of memory");
        return;
    }
    block_source_begin(&sender.source, stream, start_ns);
    stream->progress_ns = monotonic_ns();
    send_all(&sender);
    block_source_report(&sender.source, &stream->own);
    shutdown(stream->fd, SHUT_WR);
    free(sender.bytes);
}
