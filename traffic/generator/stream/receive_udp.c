/* SPDX-License-Identifier: Apache-2.0 */
/* Receives datagrams and counts distinct, reordered (RFC 4737), duplicate and late blocks with a
 * sequence window of 128 KiB. Times are the kernel's stamps (SO_TIMESTAMPNS), because datagrams
 * wait in the socket's buffer and a batch is read at once. A datagram belongs to the transfer if
 * magic, run, stream, length and sequence agree with the plan; all others are foreign: they are
 * counted, and do not end the silence that ends a transfer.
 *
 * At a high rate the receiver sleeps between batches, because the kernel would wake it for almost
 * every datagram, and the sender pays for that if both are on one host. The stamps stay exact.
 *
 * Bounds against hostile datagrams: MAX_BATCH buffers, a window of fixed size, MAX_SEQUENCE_JUMP,
 * and lengths that must equal those of the headers. The stream's thread owns the receiver; others
 * read stream->live. */
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "common/lateness.h"
#include "common/sequence_window.h"
#include "stream/block_fast.h"
#include "stream/stream.h"

#define MAX_BATCH         128u
#define MIN_BATCH         8u
#define BATCH_BYTES       (1u << 20)
#define OFFLOAD_BYTES     65535u
#define CONTROL_BYTES     64u
#define MAX_QUEUED_NS     ((int64_t)(10 * NS_PER_S)) /* a datagram waits no longer in the buffer */
#define MAX_DRAIN_BATCHES 256u                       /* batches */
#define MAX_SEQUENCE_JUMP (UINT64_C(1) << 32)        /* of sequence numbers */
#define NAP_MOST_NS       100000u                    /* the kernel may add 50 µs (timer slack) */
#define NAP_GAP_NS        50000u /* mean gap of the datagrams from which on naps do not pay */
#define NAP_BUFFER_PART   8u     /* of the socket's buffer that a nap may fill */

#define WINDOW (1u << 20) /* blocks: 128 KiB of bits */

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

struct udp_receiver {
    struct stream *stream;
    const struct transfer_plan *plan;
    struct sequence_window window;
    uint64_t map[SEQUENCE_WINDOW_WORDS(WINDOW)];
    uint64_t arrivals[ARRIVAL_LATE + 1]; /* blocks of each kind */
    uint64_t last_ns;                    /* monotonic: of the latest block of this transfer */
    bool has_timestamps;                 /* SO_TIMESTAMPNS is on */
    int64_t transit_ns;                  /* of the previous block */
    double jitter_ns;
    uint64_t moved; /* bytes of the batch, with those of duplicates */
    bool has_transit;
    struct delays delays;   /* of distinct blocks */
    bool highest_caught_up; /* the block with the highest number was sent in catching up */
    uint64_t gap_ns;        /* mean time of a message */
    uint32_t nap_messages;  /* that may come in a nap */
    uint8_t *bytes_room;
    uint32_t stride, room;
    struct mmsghdr messages[MAX_BATCH];
    struct iovec parts[MAX_BATCH];
    uint64_t control[MAX_BATCH][CONTROL_BYTES / sizeof(uint64_t)];
};

/* The bound of the jump keeps a forged number from moving the window, so that all that follow would
 * be late. */
static bool is_ours(const struct udp_receiver *receiver, uint32_t magic,
                    const struct block_header *header, size_t count) {
    const struct transfer_plan *plan = receiver->plan;
    return magic == (plan->content ? CONTENT_MAGIC : BLOCK_MAGIC) &&
           header->run == (uint32_t)plan->run && header->stream == receiver->stream->number &&
           header->length == count && header->sequence <= INT64_MAX &&
           header->sent_ns <= MAX_TIME_NS && (!plan->count || header->sequence < plan->count) &&
           header->sequence < sequence_window_expected(&receiver->window) + MAX_SEQUENCE_JUMP;
}

/* Interarrival jitter of RFC 3550, section 6.4.1, over blocks in the order of arrival. The clocks
 * of both hosts need not agree, because only differences of the transit time count. */
static void update_jitter(struct udp_receiver *receiver, const struct block_header *header,
                          int64_t received_ns) {
    int64_t transit = received_ns - (int64_t)header->sent_ns;
    if (receiver->has_transit) {
        int64_t change = transit - receiver->transit_ns;
        receiver->jitter_ns += ((double)(change < 0 ? -change : change) - receiver->jitter_ns) / 16;
    }
    receiver->transit_ns = transit;
    receiver->has_transit = true;
}

/* A negative delay is one within the error of the offset. */
static void note_delay(struct udp_receiver *receiver, const struct block_header *header,
                       int64_t received_ns) {
    const struct transfer *transfer = receiver->stream->direction->transfer;
    int64_t offset = transfer->is_initiator ? -transfer->clock_begin.ns : transfer->clock_begin.ns;
    int64_t delay = received_ns - (int64_t)header->sent_ns - offset;
    delays_add(&receiver->delays, delay > 0 ? (uint64_t)delay : 0);
}

static void report_delays(const struct udp_receiver *receiver) {
    struct stream_report *own = &receiver->stream->own;
    if (!receiver->has_timestamps || !receiver->delays.count ||
        !receiver->stream->direction->transfer->clock_begin.is_known)
        return;
    own->delay_p50_ns_plus_1 = delays_percentile(&receiver->delays, 50) + 1;
    own->delay_p99_ns_plus_1 = delays_percentile(&receiver->delays, 99) + 1;
    own->delay_max_ns_plus_1 = receiver->delays.max_ns + 1;
}

/* A file has blocks of one size, so the number of a block gives its place. */
static void take_content(struct udp_receiver *receiver, const struct block_header *header,
                         const uint8_t *bytes) {
    uint32_t overhead = transfer_plan_overhead(receiver->plan);
    uint64_t body = receiver->plan->sizes[0] - overhead;
    content_take(&receiver->stream->direction->transfer->content, header->sequence * body,
                 bytes + BLOCK_HEADER_BYTES, header->length - overhead);
}

/* Numbers that are missing next to a block which was sent in catching up are counted apart: the
 * sender's burst may have caused the loss. A block that comes later leaves the count again. */
static void note_catch_up(struct udp_receiver *receiver, enum sequence_arrival arrival,
                          uint64_t skipped, bool caught_up) {
    uint64_t *missing = &receiver->stream->own.missing_in_catch_up;
    if (arrival == ARRIVAL_BEHIND && caught_up)
        *missing -= *missing > 0;
    if (arrival > ARRIVAL_AHEAD)
        return;
    if (caught_up || receiver->highest_caught_up)
        *missing += skipped;
    receiver->highest_caught_up = caught_up;
}

/* Takes one datagram. Returns whether it is a block of this transfer. Duplicates are compared too,
 * but their bytes do not count. */
static bool take_block(struct udp_receiver *receiver, const uint8_t *bytes, size_t count,
                       int64_t received_ns) {
    struct block_header header;
    if (count < BLOCK_HEADER_BYTES ||
        !is_ours(receiver, block_get_header(bytes, &header), &header, count) ||
        (receiver->plan->authentic &&
         !block_is_authentic(bytes, count, stream_key(receiver->stream)))) {
        receiver->stream->own.foreign++;
        return false;
    }
    uint64_t expected = sequence_window_expected(&receiver->window);
    enum sequence_arrival arrival =
        sequence_window_take(&receiver->window, receiver->map, (int64_t)header.sequence);
    bool is_new = arrival < ARRIVAL_DUPLICATE;
    receiver->arrivals[arrival]++;
    receiver->moved += count;
    note_catch_up(receiver, arrival, header.sequence - expected, header.flags & BLOCK_CATCH_UP);
    if (is_new)
        receiver->stream->own.bytes_received += count;
    if (receiver->plan->content && is_new)
        take_content(receiver, &header, bytes);
    else if (!receiver->plan->content && !receiver->plan->unchecked)
        receiver->stream->own.corrupt += !block_is_right(bytes, &header, 0, count);
    update_jitter(receiver, &header, received_ns);
    if (is_new)
        note_delay(receiver, &header, received_ns);
    return true;
}

/* Ancillary data of a message. */
struct message_facts {
    int64_t received_ns; /* since the epoch */
    uint32_t segment;    /* 0: one datagram */
};

/* If the kernel gave no stamp, the time of the read counts. */
static struct message_facts read_facts(struct msghdr *message, int64_t now_ns) {
    struct message_facts facts = {.received_ns = now_ns};
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(at), sizeof time);
            facts.received_ns = (int64_t)time.tv_sec * (int64_t)NS_PER_S + time.tv_nsec;
        } else if (at->cmsg_level == SOL_UDP && at->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(at), sizeof size);
            facts.segment = size > 0 ? (uint32_t)size : 0;
        }
    }
    return facts;
}

/* Converts the kernel's stamp to the monotonic clock. A stamp in the future, or older than a
 * datagram can wait, means that the realtime clock was set: the time of the read is used then. */
static void note_received(struct udp_receiver *receiver, int64_t received_ns,
                          const struct instant *now) {
    struct stream_times *times = &receiver->stream->times;
    int64_t waited = (int64_t)now->realtime_ns - received_ns;
    if (waited < 0 || waited > MAX_QUEUED_NS)
        waited = 0;
    uint64_t came = now->monotonic_ns - (uint64_t)waited;
    if (!times->first_ns) {
        times->first_ns = came;
        times->first_realtime_ns = now->realtime_ns - (uint64_t)waited;
    }
    if (came > times->last_ns)
        times->last_ns = came;
}

/* Takes one message, which contains several datagrams if the kernel joined them (UDP_GRO). Returns
 * whether a block of this transfer was among them. A truncated message is longer than any block of
 * the plan, so it is foreign. */
static bool take_message(struct udp_receiver *receiver, unsigned number,
                         const struct instant *now) {
    struct mmsghdr *message = &receiver->messages[number];
    const uint8_t *bytes = receiver->parts[number].iov_base;
    size_t left = message->msg_len;
    bool ours = false;
    if (message->msg_hdr.msg_flags & MSG_TRUNC) {
        receiver->stream->own.foreign++;
        return false;
    }
    struct message_facts facts = read_facts(&message->msg_hdr, (int64_t)now->realtime_ns);
    do {
        size_t piece = facts.segment && facts.segment < left ? facts.segment : left;
        ours |= take_block(receiver, bytes, piece, facts.received_ns);
        bytes += piece;
        left -= piece;
    } while (left);
    if (ours)
        note_received(receiver, facts.received_ns, now);
    return ours;
}

/* `missing` counts gaps below the highest number; blocks lost at the end show only in the sender's
 * count. */
static void count_blocks(struct udp_receiver *receiver) {
    const struct sequence_window *window = &receiver->window;
    struct stream_report *own = &receiver->stream->own;
    own->blocks_received = window->unique;
    own->out_of_order = receiver->arrivals[ARRIVAL_BEHIND];
    own->duplicate = receiver->arrivals[ARRIVAL_DUPLICATE];
    own->late = receiver->arrivals[ARRIVAL_LATE];
    own->missing = sequence_window_expected(window) - window->unique;
    if (own->missing_in_catch_up > own->missing) /* a block came late, without the flag */
        own->missing_in_catch_up = own->missing;
    stream_note_moved(receiver->stream, receiver->moved);
    receiver->moved = 0;
    stream_publish(receiver->stream);
}

/* Returns whether a block of this transfer was among the messages. */
static bool take_batch(struct udp_receiver *receiver, unsigned count) {
    struct instant now = read_instant();
    bool ours = false;
    for (unsigned i = 0; i < count; i++)
        ours |= take_message(receiver, i, &now);
    if (!ours)
        return false;
    receiver->last_ns = now.monotonic_ns;
    count_blocks(receiver);
    return true;
}

/* The kernel overwrites the ancillary buffers' lengths, so they are set for each call. */
static int receive_batch(struct udp_receiver *receiver, int flags) {
    bool has_control = receiver->has_timestamps || receiver->plan->offload == OFFLOAD_ALWAYS;
    for (unsigned i = 0; has_control && i < receiver->room; i++) {
        receiver->messages[i].msg_hdr.msg_control = receiver->control[i];
        receiver->messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    return recvmmsg(receiver->stream->fd, receiver->messages, receiver->room, flags, NULL);
}

/* Returns the messages of which the kernel's memory fills a part of the buffer: at most twice their
 * bytes and 1 KiB each. */
static uint32_t messages_of_nap(const struct udp_receiver *receiver) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    if (getsockopt(receiver->stream->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) || bytes < 0)
        return 0;
    uint32_t messages = (uint32_t)bytes / NAP_BUFFER_PART / (2 * receiver->stride + 1024);
    return messages < receiver->room / 2 ? messages : receiver->room / 2;
}

/* Sleeps after a batch of `got` messages that emptied the socket, if datagrams come fast. */
static void nap(struct udp_receiver *receiver, unsigned got, uint64_t before_ns) {
    uint64_t gap_ns = (receiver->last_ns - before_ns) / got;
    receiver->gap_ns = (7 * receiver->gap_ns + gap_ns) / 8;
    if (got == receiver->room || receiver->gap_ns > NAP_GAP_NS)
        return;
    uint64_t ns = receiver->gap_ns * receiver->nap_messages;
    struct timespec time = {.tv_nsec = (long)(ns < NAP_MOST_NS ? ns : NAP_MOST_NS)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Returns the datagrams that this socket dropped for want of buffer, plus 1; 0 if unknown. It is
 * the counter of SO_RXQ_OVFL. */
static uint64_t dropped_plus_1(int fd) {
    uint32_t values[SK_MEMINFO_VARS];
    socklen_t size = sizeof values;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &size) ||
        size <= SK_MEMINFO_DROPS * sizeof *values)
        return 0;
    return (uint64_t)values[SK_MEMINFO_DROPS] + 1;
}

/* Allocates a batch of buffers: as many as fit into BATCH_BYTES. Returns false if memory ran out.
 */
static bool begin(struct udp_receiver *receiver, struct stream *stream) {
    const struct transfer_plan *plan = &stream->direction->transfer->plan;
    int one = 1;
    receiver->stream = stream;
    receiver->plan = plan;
    sequence_window_clear(&receiver->window, receiver->map, WINDOW);
    sequence_window_expect(&receiver->window, 0);
    receiver->stride = plan->offload == OFFLOAD_ALWAYS ? OFFLOAD_BYTES : plan->max_size;
    receiver->room = BATCH_BYTES / receiver->stride;
    receiver->room = receiver->room < MIN_BATCH   ? MIN_BATCH
                     : receiver->room > MAX_BATCH ? MAX_BATCH
                                                  : receiver->room;
    receiver->bytes_room = malloc((size_t)receiver->room * receiver->stride);
    for (unsigned i = 0; receiver->bytes_room && i < receiver->room; i++) {
        receiver->parts[i] =
            (struct iovec){receiver->bytes_room + (size_t)i * receiver->stride, receiver->stride};
        receiver->messages[i].msg_hdr.msg_iov = &receiver->parts[i];
        receiver->messages[i].msg_hdr.msg_iovlen = 1;
    }
    receiver->has_timestamps =
        !setsockopt(stream->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    if (plan->offload == OFFLOAD_ALWAYS)
        setsockopt(stream->fd, SOL_UDP, UDP_GRO, &one, sizeof one);
    receiver->gap_ns = NS_PER_S;
    receiver->nap_messages = messages_of_nap(receiver);
    receiver->last_ns = monotonic_ns();
    return receiver->bytes_room != NULL;
}

/* The state is on the heap, because its map alone would fill half of the thread's stack. The drain
 * at the end is bounded, so that a sender which never stops cannot prolong it. */
void stream_receive_udp(struct stream *stream) {
    struct udp_receiver *receiver = calloc(1, sizeof *receiver);
    bool ours = false;
    int got;
    if (!receiver || !begin(receiver, stream)) {
        transfer_fail(stream->direction->transfer, "out of memory");
        free(receiver);
        return;
    }
    /* While blocks arrive, the clock need not be checked for silence. */
    while (!stream->direction->stop &&
           (ours || !stream_is_over(stream, receiver->last_ns, receiver->window.unique))) {
        got = receive_batch(receiver, MSG_WAITFORONE);
        uint64_t before_ns = receiver->last_ns;
        ours = got > 0 && take_batch(receiver, (unsigned)got);
        if (ours)
            nap(receiver, (unsigned)got, before_ns);
    }
    /* Datagrams that are queued already have arrived. */
    for (unsigned i = 0; i < MAX_DRAIN_BATCHES && (got = receive_batch(receiver, MSG_DONTWAIT)) > 0;
         i++)
        take_batch(receiver, (unsigned)got);
    stream->own.dropped_plus_1 = dropped_plus_1(stream->fd);
    report_delays(receiver);
    /* Without pacing it would be the jitter of batches. */
    if (receiver->has_timestamps && receiver->has_transit && receiver->plan->pacing != PACING_NONE)
        stream->own.jitter_ns_plus_1 = (uint64_t)receiver->jitter_ns + 1;
    free(receiver->bytes_room);
    free(receiver);
}
