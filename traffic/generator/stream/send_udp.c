/* SPDX-License-Identifier: Apache-2.0 */
/* Sends blocks as datagrams, all that are due with one sendmmsg(). With offload, a message holds
 * several blocks that the kernel segments (UDP_SEGMENT); if the kernel or the device refuses, they
 * are sent one by one. A datagram whose send failed is retried, so that sequence numbers have no
 * gaps of the sender's own.
 *
 * If the kernel paces, it gets blocks up to `ahead_ns` before they are due, each with its time
 * (SO_TXTIME), and the queueing discipline fq holds them until then. */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "stream/block_source.h"
#include "stream/stream.h"

#define BATCH         64u
#define BATCH_BYTES   (1u << 18) /* of a batch, so that it stays in the cache */
#define MAX_SEGMENTS  64u        /* UDP_MAX_SEGMENTS of older kernels */
#define SEGMENT_BYTES 64000u     /* of a message, below the 65,507 of a datagram */
#define PAUSE_NS      (10 * NS_PER_MS)
#define AHEAD_NS      (2 * NS_PER_MS)
#define AHEAD_BLOCKS  32u /* at the mean rate; fq drops those above 100 of a flow */

struct udp_sender {
    struct stream *stream;
    struct block_source source;
    uint8_t *bytes; /* blocks, `stride` apart */
    uint32_t stride, room, count;
    uint32_t segments;  /* blocks in a message; 1: no offload */
    uint64_t paused_ns; /* in pauses that are over */
    uint32_t lengths[BATCH];
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    uint64_t control[CMSG_SPACE(sizeof(uint16_t)) / sizeof(uint64_t)];
    uint64_t last_due_ns;
    uint64_t times[BATCH]
                  [CMSG_SPACE(sizeof(uint64_t)) / sizeof(uint64_t)]; /* if the kernel paces */
};

/* Writes the monotonic time of a block into its control message. */
static void set_time(struct udp_sender *sender, uint32_t at, uint64_t due_ns) {
    struct msghdr message = {.msg_control = sender->times[at],
                             .msg_controllen = sizeof sender->times[at]};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_TXTIME;
    control->cmsg_len = CMSG_LEN(sizeof due_ns);
    memcpy(CMSG_DATA(control), &due_ns, sizeof due_ns);
    sender->last_due_ns = due_ns;
}

/* Writes the blocks that are due now into the batch, stamped with one reading of the clock. Blocks
 * of a batch thus share a stamp, so jitter is reported for paced streams only. A block that the
 * kernel gets early has the time when it is due. */
static void gather(struct udp_sender *sender) {
    struct block_source *source = &sender->source;
    struct instant instant = read_instant();
    uint64_t now = instant.monotonic_ns;
    sender->stream->progress_ns = now;
    struct block_header header;
    block_source_begin_batch(source, now);
    for (sender->count = 0; sender->count < sender->room; sender->count++) {
        uint8_t *bytes = sender->bytes + (size_t)sender->count * sender->stride;
        uint64_t due_ns = pacer_due_ns(&source->pacer), early_ns = due_ns > now ? due_ns - now : 0;
        if (!block_source_is_due(source) ||
            !block_source_next(source, &header, bytes + BLOCK_HEADER_BYTES))
            return;
        header.sent_ns = instant.realtime_ns + early_ns;
        if (source->ahead_ns)
            set_time(sender, sender->count, now + early_ns);
        block_put_header(bytes, block_source_magic(source), &header);
        if (!source->content)
            block_fill(bytes, &header, 0, header.length);
        if (source->plan->authentic)
            block_sign(bytes, header.length, stream_key(sender->stream));
        sender->lengths[sender->count] = header.length;
    }
}

/* Arranges blocks [from, count) as messages and returns their number. With offload only the last
 * segment of a message may be shorter; all blocks have one size then and are adjacent. Built anew
 * after a partial send, because the rest may have other boundaries. */
static uint32_t make_messages(struct udp_sender *sender, uint32_t from) {
    uint32_t count = 0;
    for (uint32_t at = from; at < sender->count; count++) {
        uint32_t blocks =
            sender->count - at < sender->segments ? sender->count - at : sender->segments;
        size_t bytes = 0;
        for (uint32_t i = 0; i < blocks; i++)
            bytes += sender->lengths[at + i];
        sender->parts[count] = (struct iovec){sender->bytes + (size_t)at * sender->stride, bytes};
        struct msghdr *message = &sender->messages[count].msg_hdr;
        message->msg_iov = &sender->parts[count];
        message->msg_iovlen = 1;
        message->msg_control = blocks > 1 ? sender->control : NULL;
        message->msg_controllen = blocks > 1 ? sizeof sender->control : 0;
        if (sender->source.ahead_ns) {
            message->msg_control = sender->times[at];
            message->msg_controllen = sizeof sender->times[at];
        }
        at += blocks;
    }
    return count;
}

/* Counts the blocks of `messages` messages, which begin at `*at`, and moves `*at` behind them. With
 * offload, only the last message may hold a single block. */
static void note_sent(struct udp_sender *sender, uint32_t *at, uint32_t messages) {
    uint32_t end = *at + messages * sender->segments;
    uint64_t before = sender->stream->own.bytes_sent;
    end = end < sender->count ? end : sender->count;
    if (sender->segments > 1)
        sender->stream->own.blocks_offloaded += end - *at - ((end - *at) % sender->segments == 1);
    for (; *at < end; (*at)++) {
        sender->stream->own.blocks_sent++;
        sender->stream->own.bytes_sent += sender->lengths[*at];
    }
    stream_note_moved(sender->stream, sender->stream->own.bytes_sent - before);
    stream_note_sent(sender->stream);
}

/* Switches to single datagrams if that is why the send failed. If it returns true, the same blocks
 * should be sent once more, one by one. */
static bool give_up_offload(struct udp_sender *sender, int number) {
    if (sender->segments == 1 || (number != EINVAL && number != EMSGSIZE && number != EIO &&
                                  number != EOPNOTSUPP && number != ENOPROTOOPT))
        return false;
    sender->segments = 1;
    return true;
}

/* Waits while the peer is silent (exchange.c). Returns false if the transfer stops. */
static bool await_peer(struct udp_sender *sender) {
    struct stream *stream = sender->stream;
    const struct transfer *transfer = stream->direction->transfer;
    uint64_t from = monotonic_ns(), now = from;
    while (now > transfer->send_until_ns) {
        if (!pacer_wait(now + PAUSE_NS, &stream->direction->stop))
            return false;
        now = monotonic_ns();
        stream->own.paused_ns = sender->paused_ns + now - from;
    }
    if (stream->own.paused_ns != sender->paused_ns)
        block_source_resume(&sender->source, now);
    sender->paused_ns = stream->own.paused_ns;
    return true;
}

/* Returns as sendmmsg(). If the socket is full, the call would block in each message. A flow that
 * must pause if the peer is silent takes what has room, and waits a bounded time. */
static int send_messages(struct udp_sender *sender, uint32_t messages) {
    bool pauses = sender->stream->direction->transfer->send_until_ns != UINT64_MAX;
    struct pollfd room = {.fd = sender->stream->fd, .events = POLLOUT};
    int sent = sendmmsg(room.fd, sender->messages, messages, pauses ? MSG_DONTWAIT : 0);
    if (sent < 0 && errno == EAGAIN && pauses) {
        poll(&room, 1, WAIT_PIECE_NS / NS_PER_MS);
        errno = EAGAIN;
    }
    return sent;
}

/* Sends the batch, retrying where stream_handle_error() allows it. Returns false if the stream
 * cannot go on. */
static bool send_batch(struct udp_sender *sender) {
    uint32_t at = 0;
    if (!sender->stream->times.first_ns)
        stream_times_note(&sender->stream->times, monotonic_ns());
    while (at < sender->count) {
        uint32_t messages = make_messages(sender, at);
        if (!await_peer(sender))
            return false;
        int sent = send_messages(sender, messages);
        if (sent > 0)
            note_sent(sender, &at, (uint32_t)sent);
        else if (!give_up_offload(sender, errno) && !stream_handle_error(sender->stream, errno))
            return false;
        else if (sender->stream->direction->stop)
            return false;
    }
    return true;
}

/* Offload needs blocks of one size, of which at least two fit into a message. The control message
 * is the same for all sends, so it is built once. All segments but the last of a message have
 * `stride` bytes. */
static void set_offload(struct udp_sender *sender) {
    const struct transfer_plan *plan = sender->source.plan;
    struct msghdr message = {.msg_control = sender->control,
                             .msg_controllen = sizeof sender->control};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    uint16_t size = (uint16_t)sender->stride;
    sender->segments = 1;
    if (!sender->stream->direction->joins_datagrams || plan->size_count != 1 ||
        sender->stride > SEGMENT_BYTES / 2)
        return;
    sender->segments = SEGMENT_BYTES / sender->stride;
    if (sender->segments > MAX_SEGMENTS)
        sender->segments = MAX_SEGMENTS;
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof size);
    memcpy(CMSG_DATA(control), &size, sizeof size);
}

/* Returns by how much the kernel gets blocks early. */
static uint64_t ahead_of(const struct transfer_plan *plan) {
    double most = AHEAD_BLOCKS * transfer_plan_gap_ns(plan, plan->min_size);
    return !plan->kernel_pacing ? 0 : most < AHEAD_NS ? (uint64_t)most : AHEAD_NS;
}

/* A batch has at most BATCH blocks and BATCH_BYTES, but at least one block. Returns false if memory
 * ran out. */
static bool begin(struct udp_sender *sender, struct stream *stream, uint64_t start_ns) {
    struct transfer *transfer = stream->direction->transfer;
    sender->stream = stream;
    block_source_begin(&sender->source, stream, start_ns);
    sender->source.ahead_ns = ahead_of(&transfer->plan);
    sender->stride = transfer->plan.max_size;
    sender->room = BATCH_BYTES / sender->stride;
    sender->room = !sender->room ? 1 : sender->room < BATCH ? sender->room : BATCH;
    sender->bytes = malloc((size_t)sender->room * sender->stride);
    stream->progress_ns = monotonic_ns();
    set_offload(sender);
    return sender->bytes != NULL;
}

/* Waits for the next block. Batches for the kernel begin when half of the time ahead is over, so
 * that each has several blocks. Returns false if the transfer stops. */
static bool await_due(const struct udp_sender *sender) {
    const struct block_source *source = &sender->source;
    const atomic_bool *stop = &sender->stream->direction->stop;
    uint64_t due_ns = pacer_due_ns(&source->pacer);
    return source->ahead_ns ? pacer_sleep(due_ns - source->ahead_ns / 2, stop)
                            : pacer_wait(due_ns, stop);
}

/* The kernel still holds the last blocks when the sender is done. */
static void await_last(struct udp_sender *sender) {
    struct stream *stream = sender->stream;
    if (sender->last_due_ns > (uint64_t)monotonic_ns() &&
        pacer_sleep(sender->last_due_ns, &stream->direction->stop))
        stream_times_note(&stream->times, monotonic_ns());
}

/* Gathers the blocks that are due, sends them, and waits for the next. Ends if the amount is used
 * up, a send failed for good, or the transfer stops. */
void stream_send_udp(struct stream *stream, uint64_t start_ns) {
    struct udp_sender *sender = calloc(1, sizeof *sender);
    if (!sender || !begin(sender, stream, start_ns)) {
        transfer_fail(stream->direction->transfer, "out of memory");
        free(sender);
        return;
    }
    const struct block_source *source = &sender->source;
    while (!stream->direction->stop && await_peer(sender)) {
        gather(sender);
        stream_limit_priority(stream, source->lateness.max_ns);
        if (sender->count && !send_batch(sender))
            break;
        if (source->is_done)
            break;
        if (!sender->count && !await_due(sender))
            break;
    }
    await_last(sender);
    block_source_report(source, &stream->own);
    free(sender->bytes);
    free(sender);
}
