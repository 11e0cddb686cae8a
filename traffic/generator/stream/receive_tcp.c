/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a stream of bytes and divides it into blocks. Block k must have number k and the length
 * of the plan, so the position of each header is known: a block whose header differs counts as
 * corrupt, and the next one is expected where the plan places it. TCP delivers in order and without
 * loss, so nothing else can be wrong.
 *
 * A hostile header cannot move the position, because the expected length replaces the received one.
 * Only for a file, a shorter last block is accepted; its length is checked against the plan. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "stream/block_fast.h"
#include "stream/stream.h"

#define BUFFER_BYTES (1u << 17) /* the pattern is checked while the bytes are in the cache */
#define WAKE_BYTES   (1 << 19)  /* SO_RCVLOWAT at most: one send() of a sender at full rate */
#define WAKE_SHARE   8          /* of the receive buffer: the rest keeps the window open */
#define WAKE_READS   64         /* the kernel enlarges the buffer meanwhile */

struct tcp_receiver {
    struct stream *stream;
    const struct transfer_plan *plan;
    uint64_t last_ns;
    struct block_header header; /* expected, of the current block */
    uint8_t partial[BLOCK_HEADER_BYTES];
    uint32_t offset; /* in the block */
    uint32_t reads;
    bool is_wrong;
};

/* Replaces the received header by the expected one. Returns whether they agree. Only the last block
 * of a file may be shorter. */
static bool expect(struct tcp_receiver *receiver, uint32_t magic, struct block_header *header) {
    const struct transfer_plan *plan = receiver->plan;
    uint32_t length = transfer_plan_size(plan, receiver->stream->own.blocks_received);
    bool right = magic == (plan->content ? CONTENT_MAGIC : BLOCK_MAGIC) &&
                 header->run == (uint32_t)plan->run && header->stream == receiver->stream->number &&
                 header->sequence == receiver->stream->own.blocks_received;
    bool shorter = plan->content && header->length > BLOCK_HEADER_BYTES && header->length < length;
    if (right && shorter)
        return true; /* the last of a file */
    right = right && header->length == length;
    header->run = (uint32_t)plan->run;
    header->stream = receiver->stream->number;
    header->sequence = receiver->stream->own.blocks_received;
    header->length = length;
    return right;
}

static void take_header(struct tcp_receiver *receiver, const uint8_t *bytes) {
    uint32_t magic = block_get_header(bytes, &receiver->header);
    receiver->is_wrong = !expect(receiver, magic, &receiver->header);
}

/* Collects the header, which may arrive in pieces. Returns the bytes used. */
static size_t take_head(struct tcp_receiver *receiver, const uint8_t *bytes, size_t count) {
    size_t need = BLOCK_HEADER_BYTES - receiver->offset, piece = count < need ? count : need;
    if (piece == BLOCK_HEADER_BYTES) {
        take_header(receiver, bytes);
        return piece;
    }
    memcpy(receiver->partial + receiver->offset, bytes, piece);
    if (piece == need)
        take_header(receiver, receiver->partial);
    return piece;
}

/* Compares the pattern, or writes content at its place in the file. Returns the bytes used. */
static size_t take_body(struct tcp_receiver *receiver, const uint8_t *bytes, size_t count) {
    const struct transfer_plan *plan = receiver->plan;
    size_t left = receiver->header.length - receiver->offset, piece = count < left ? count : left;
    if (plan->content) {
        uint64_t body = plan->sizes[0] - BLOCK_HEADER_BYTES;
        content_take(&receiver->stream->direction->transfer->content,
                     receiver->stream->own.blocks_received * body + receiver->offset -
                         BLOCK_HEADER_BYTES,
                     bytes, piece);
    } else if (!plan->unchecked && !receiver->is_wrong) {
        receiver->is_wrong = !block_is_right(bytes, &receiver->header, receiver->offset, piece);
    }
    return piece;
}

/* Divides bytes into headers and bodies, and counts each complete block. */
static void take_bytes(struct tcp_receiver *receiver, const uint8_t *bytes, size_t count) {
    struct stream_report *own = &receiver->stream->own;
    while (count) {
        bool in_head = receiver->offset < BLOCK_HEADER_BYTES;
        size_t piece = (in_head ? take_head : take_body)(receiver, bytes, count);
        bytes += piece;
        count -= piece;
        receiver->offset += (uint32_t)piece;
        if (receiver->offset < BLOCK_HEADER_BYTES || receiver->offset < receiver->header.length)
            continue;
        own->blocks_received++;
        own->bytes_received += receiver->header.length;
        own->corrupt += receiver->is_wrong;
        receiver->offset = 0;
    }
}

static void take_all(struct tcp_receiver *receiver, const uint8_t *bytes, size_t count) {
    take_bytes(receiver, bytes, count);
    stream_note_moved(receiver->stream, count);
    receiver->last_ns = monotonic_ns();
    stream_times_note(&receiver->stream->times, receiver->last_ns);
    stream_publish(receiver->stream);
}

/* Half of the cost of receiving is waking up, so the thread is woken for a part of the receive
 * buffer, or after WAIT_PIECE_NS. A larger part would close the window, and one that exceeds the
 * buffer makes Linux clamp the window to it (tcp_set_rcvlowat). A paced stream is read at once,
 * because its times matter. */
static void wake_seldom(const struct tcp_receiver *receiver) {
    int fd = receiver->stream->fd, buffer = 0;
    socklen_t length = sizeof buffer;
    if (receiver->plan->pacing != PACING_NONE || receiver->plan->content ||
        getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, &length))
        return;
    int bytes = buffer / WAKE_SHARE < WAKE_BYTES ? buffer / WAKE_SHARE : WAKE_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

/* Returns whether recv() reported the end of the stream or an error; a timeout is neither. */
static bool is_over(ssize_t got) {
    return !got || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Ends at the end of the stream, an error, a stop, or silence. The socket times out after
 * WAIT_PIECE_NS, so `stop` is looked at. */
static void receive_all(struct tcp_receiver *receiver, uint8_t *buffer) {
    struct stream *stream = receiver->stream;
    for (;;) {
        /* Of the first block only the header, so that the time of the first byte is exact. */
        bool is_first = !stream->times.first_ns;
        ssize_t got = recv(stream->fd, buffer, is_first ? BLOCK_HEADER_BYTES : BUFFER_BYTES, 0);
        if (got > 0)
            take_all(receiver, buffer, (size_t)got);
        if (is_over(got) || stream->direction->stop)
            return;
        if (got > 0 && receiver->reads++ % WAKE_READS == 0)
            wake_seldom(receiver);
        if (got < 0 &&
            stream_is_over(stream, receiver->last_ns, receiver->stream->own.blocks_received))
            return;
    }
}

/* If the listener has read the first header to find the stream (`head`), it must be taken first. */
void stream_receive_tcp(struct stream *stream) {
    struct tcp_receiver receiver = {
        .stream = stream, .plan = &stream->direction->transfer->plan, .last_ns = monotonic_ns()};
    uint8_t *buffer = malloc(BUFFER_BYTES);
    if (!buffer) {
        transfer_fail(stream->direction->transfer, "out of memory");
        return;
    }
    if (stream->head_have) {
        take_all(&receiver, stream->head, stream->head_have);
        wake_seldom(&receiver);
    }
    receive_all(&receiver, buffer);
    free(buffer);
}
