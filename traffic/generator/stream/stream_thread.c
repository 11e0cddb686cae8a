/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a stream: gets the socket, runs the mover for its protocol and side, and leaves the
 * report. UDP sockets exist before the transfer starts. TCP data connections are opened by the
 * initiator, so that only the receiver needs an open port; the other end waits for the listener to
 * hand over its connection. */
#include "stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10) /* 1,024 threads must fit into a small host */

/* Connects, and if this end is to receive, sends the line that names the stream. If it is to send,
 * the header of its first block names the stream instead. */
static bool connect_data(struct stream *stream) {
    struct transfer *transfer = stream->direction->transfer;
    char error[ERROR_SIZE], line[96];
    int fd = endpoint_connect(&transfer->peer, &transfer->local, &transfer->plan.socket,
                              CONNECT_LIMIT_NS, error);
    if (fd < 0) {
        transfer_fail(transfer, "data connection %u: %s", stream->number, error);
        return false;
    }
    stream->fd = fd;
    if (stream->direction->is_sending)
        return true;
    int length = snprintf(line, sizeof line, "data run=%llu stream=%u\n",
                          (unsigned long long)transfer->plan.run, stream->number);
    if (send(fd, line, (size_t)length, MSG_NOSIGNAL) == length)
        return true;
    transfer_fail(transfer, "data connection %u: %s", stream->number, strerror(errno));
    return false;
}

/* Returns the time until which a data connection may arrive. After "end" it is `idle_ns`, because
 * the connection is then under way or lost. */
static uint64_t arrival_deadline_ns(const struct stream *stream) {
    const struct direction *direction = stream->direction;
    uint64_t idle_ns = direction->transfer->plan.idle_ns;
    uint64_t limit = stream_start_ns(stream) + CONNECT_LIMIT_NS + idle_ns;
    uint64_t after_end = direction->ended_ns + idle_ns;
    return direction->ended && after_end < limit ? after_end : limit;
}

/* The deadline moves if "end" arrives during the wait, so it is computed again. */
static void wait_for_connection(struct stream *stream) {
    struct transfer *transfer = stream->direction->transfer;
    uint64_t deadline;
    pthread_mutex_lock(&transfer->lock);
    while (stream->fd < 0 && !stream->direction->stop &&
           (uint64_t)monotonic_ns() < (deadline = arrival_deadline_ns(stream))) {
        struct timespec until = to_timespec((int64_t)deadline);
        pthread_cond_timedwait(&transfer->arrived, &transfer->lock, &until);
    }
    pthread_mutex_unlock(&transfer->lock);
}

/* Applies the plan's options to a connection that the listener accepted; those of the initiator
 * were set before its SYN. */
static bool await_data(struct stream *stream) {
    struct transfer *transfer = stream->direction->transfer;
    struct socket_plan plan = transfer->plan.socket;
    char error[ERROR_SIZE];
    wait_for_connection(stream);
    if (stream->fd < 0) {
        if (!stream->direction->stop && !stream->direction->ended)
            transfer_fail(transfer, "data connection %u did not arrive", stream->number);
        return false;
    }
    /* Only the sender's algorithm matters, and an unprivileged process may not set each. */
    if (!stream->direction->is_sending)
        plan.congestion[0] = 0;
    if (endpoint_apply(stream->fd, transfer->peer.address.sa_family, false, &plan, error)) {
        transfer_fail(transfer, "%s", error);
        return false;
    }
    return true;
}

/* An initiator that sends over TCP connects only when its first block is due: the receiver
 * identifies the connection by the header of that block, and waits for it a bounded time. */
static bool open_stream(struct stream *stream) {
    struct direction *direction = stream->direction;
    bool udp = transfer_is_udp(direction->transfer);
    bool waits = !udp && direction->is_sending && direction->transfer->is_initiator;
    if (waits && !pacer_wait(stream_start_ns(stream), &direction->stop))
        return false;
    if (udp)
        return true;
    return direction->transfer->is_initiator ? connect_data(stream) : await_data(stream);
}

/* A receiver begins at once, because the peer may have started already. */
static void move_blocks(struct stream *stream) {
    struct direction *direction = stream->direction;
    bool udp = transfer_is_udp(direction->transfer), turns = direction->transfer->plan.turns;
    endpoint_limit_waits(stream->fd, WAIT_PIECE_NS);
    /* The time that connecting took must not make the first blocks late: they are due now. */
    if (direction->is_sending && pacer_wait(stream_start_ns(stream), &direction->stop)) {
        if (!turns) /* they raise it between long messages */
            stream_raise_priority(stream);
        (udp     ? stream_send_udp
         : turns ? stream_send_turns
                 : stream_send_tcp)(stream, (uint64_t)monotonic_ns());
        stream_end_priority(stream);
    } else if (!direction->is_sending)
        (udp ? stream_receive_udp : turns ? stream_receive_turns : stream_receive_tcp)(stream);
}

/* Hashes the file of the stream, and at the receiver names or removes it, which needs the checksum
 * that arrives with "end". Both may take minutes, in which the exchange still gives signs of life.
 * The wait is short, because a stream ends when its last block or "end" arrives. */
static void finish_content(struct stream *stream) {
    struct direction *direction = stream->direction;
    struct transfer *transfer = direction->transfer;
    if (!transfer->content.is_used)
        return;
    transfer->content.works = true;
    content_finish_sum(&transfer->content);
    transfer->content.works = false;
    if (direction->is_sending)
        return;
    while (!direction->ended && pacer_wait(monotonic_ns() + NS_PER_MS, &direction->stop))
        ;
    pthread_mutex_lock(&transfer->lock);
    bool complete = !transfer->stopped_by;
    pthread_mutex_unlock(&transfer->lock);
    transfer->content.works = true;
    content_settle(&transfer->content, complete);
    transfer->content.works = false;
}

/* Measures the CPU time of this thread, which is the cost of the stream. `running` is lowered after
 * the report is complete, because the exchange joins the threads of a direction once it is 0. */
static void *stream_main(void *context) {
    struct stream *stream = context;
    struct direction *direction = stream->direction;
    struct rusage usage;
    uint64_t one = 1;
    prctl(PR_SET_TIMERSLACK, 1); /* sleeps must end on time; the default is 50 us */
    if (open_stream(stream))
        move_blocks(stream);
    stream_times_report(&stream->times, &stream->own);
    if (!getrusage(RUSAGE_THREAD, &usage)) {
        stream->own.cpu_user_ns = timeval_ns(usage.ru_utime);
        stream->own.cpu_system_ns = timeval_ns(usage.ru_stime);
    }
    finish_content(stream);
    direction->running--;
    if (write(direction->transfer->wake, &one, sizeof one) < 0)
        return NULL; /* the exchange also looks periodically */
    return NULL;
}

/* `running` is raised before the thread exists, because the thread lowers it. */
bool direction_start(struct direction *direction) {
    pthread_attr_t attributes;
    bool started = true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint32_t i = 0; started && i < direction->count; i++) {
        struct stream *stream = &direction->streams[i];
        direction->running++;
        started = !pthread_create(&stream->thread, &attributes, stream_main, stream);
        stream->is_running = started;
        direction->running -= !started;
    }
    pthread_attr_destroy(&attributes);
    if (!started)
        transfer_fail(direction->transfer, "no more threads");
    return started;
}

void direction_join(struct direction *direction) {
    for (uint32_t i = 0; i < direction->count; i++)
        if (direction->streams[i].is_running) {
            pthread_join(direction->streams[i].thread, NULL);
            direction->streams[i].is_running = false;
        }
    direction->has_joined = true;
}
