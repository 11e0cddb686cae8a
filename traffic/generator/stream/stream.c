/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"

#define STACK_BYTES (256u << 10) /* of a thread: 1,000 of them must not matter */

int stream_bind_udp(struct stream *stream, char error[ERROR_SIZE]) {
    struct transfer *transfer = stream->direction->transfer;
    int fd = endpoint_bind_udp(&transfer->own, &transfer->local, &transfer->plan.socket, error);
    union endpoint own;
    socklen_t size = sizeof own;
    if (fd < 0)
        return -1;
    stream->fd = fd;
    getsockname(fd, &own.address, &size);
    return endpoint_port(&own);
}

int stream_connect_udp(struct stream *stream, char error[ERROR_SIZE]) {
    struct transfer *transfer = stream->direction->transfer;
    union endpoint to = transfer->peer;
    endpoint_set_port(&to, stream->port);
    stream->fd = endpoint_connect_udp(&to, &transfer->local, &transfer->plan.socket, error);
    return stream->fd < 0 ? -1 : 0;
}

static uint64_t start_of(const struct stream *stream) {
    const struct transfer *transfer = stream->direction->transfer;
    return transfer->start_ns + transfer->plan.start_offset_ns +
           stream->number * transfer->plan.stagger_ns;
}

/* The asking end opens all data connections, with the control connection's port. */
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

/* Until when a data connection may come: once all is announced as sent, it is under way or lost. */
static struct timespec arrival_deadline(const struct stream *stream) {
    const struct direction *direction = stream->direction;
    const struct transfer *transfer = direction->transfer;
    uint64_t limit = start_of(stream) + CONNECT_LIMIT_NS + transfer->plan.idle_ns;
    uint64_t after_end = direction->ended_ns + transfer->plan.idle_ns;
    return to_timespec(direction->ended && after_end < limit ? after_end : limit);
}

static void wait_for_arrival(struct stream *stream) {
    struct transfer *transfer = stream->direction->transfer;
    bool timely = true, knew_end = false;
    pthread_mutex_lock(&transfer->lock);
    while (stream->fd < 0 && !stream->direction->stop &&
           (timely || knew_end != stream->direction->ended)) {
        knew_end = stream->direction->ended;
        struct timespec deadline = arrival_deadline(stream);
        timely = !pthread_cond_timedwait(&transfer->arrived, &transfer->lock, &deadline);
    }
    pthread_mutex_unlock(&transfer->lock);
}

static bool await_data(struct stream *stream) {
    struct transfer *transfer = stream->direction->transfer;
    char error[ERROR_SIZE];
    wait_for_arrival(stream);
    if (stream->fd < 0) {
        if (!stream->direction->stop && !stream->direction->ended)
            transfer_fail(transfer, "data connection %u did not come", stream->number);
        return false;
    }
    struct socket_plan plan = transfer->plan.socket;
    if (!stream->direction->is_sending) /* which an unprivileged receiver may not choose freely */
        plan.congestion[0] = 0;
    if (endpoint_apply(stream->fd, transfer->peer.address.sa_family, false, &plan, error)) {
        transfer_fail(transfer, "%s", error);
        return false;
    }
    return true;
}

bool stream_accept(struct stream *stream, int fd, const uint8_t *head, size_t count) {
    struct transfer *transfer = stream->direction->transfer;
    pthread_mutex_lock(&transfer->lock);
    bool wanted = stream->fd < 0 && !transfer->is_over && count <= sizeof stream->head;
    if (wanted) {
        if (count)
            memcpy(stream->head, head, count);
        stream->head_have = count;
        stream->fd = fd;
        pthread_cond_broadcast(&transfer->arrived);
    }
    pthread_mutex_unlock(&transfer->lock);
    return wanted;
}

static bool open_stream(struct stream *stream) {
    struct direction *direction = stream->direction;
    bool waits = direction->is_sending &&
                 direction->transfer->is_initiator; /* its first block follows at once */
    if (waits && !pacer_wait(start_of(stream), &direction->stop))
        return false;
    if (transfer_is_udp(direction->transfer))
        return true;
    return direction->transfer->is_initiator ? connect_data(stream) : await_data(stream);
}

static void move_blocks(struct stream *stream) {
    struct direction *direction = stream->direction;
    bool udp = transfer_is_udp(direction->transfer);
    endpoint_limit_waits(stream->fd, WAIT_PIECE_NS);
    /* What the connection took is no reason to hurry: the first block is due now. */
    if (direction->is_sending && pacer_wait(start_of(stream), &direction->stop))
        (udp ? stream_send_udp : stream_send_tcp)(stream, monotonic_ns());
    else if (!direction->is_sending)
        (udp ? stream_receive_udp : stream_receive_tcp)(stream);
}

static uint64_t to_ns(struct timeval time) {
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static void *stream_main(void *context) {
    struct stream *stream = context;
    struct direction *direction = stream->direction;
    struct rusage usage;
    uint64_t one = 1;
    pacer_wake_exactly();
    if (open_stream(stream))
        move_blocks(stream);
    if (!getrusage(RUSAGE_THREAD, &usage)) {
        stream->own.cpu_user_ns = to_ns(usage.ru_utime);
        stream->own.cpu_system_ns = to_ns(usage.ru_stime);
    }
    direction->running--;
    if (write(direction->transfer->wake, &one, sizeof one) < 0)
        return NULL; /* the other thread looks from time to time, too */
    return NULL;
}

bool direction_start(struct direction *direction) {
    pthread_attr_t attributes;
    bool right = true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint32_t i = 0; right && i < direction->count; i++) {
        struct stream *stream = &direction->streams[i];
        direction->running++;
        right = !pthread_create(&stream->thread, &attributes, stream_main, stream);
        stream->is_running = right;
        direction->running -= !right;
    }
    pthread_attr_destroy(&attributes);
    if (!right)
        transfer_fail(direction->transfer, "no more threads");
    return right;
}

void direction_join(struct direction *direction) {
    for (uint32_t i = 0; i < direction->count; i++)
        if (direction->streams[i].is_running) {
            pthread_join(direction->streams[i].thread, NULL);
            direction->streams[i].is_running = false;
        }
    direction->has_joined = true;
}

static bool has_all(const struct stream *stream, uint64_t distinct) {
    return stream->direction->ended && distinct >= stream->peer.blocks_sent;
}

bool stream_is_over(struct stream *stream, uint64_t last_ns, uint64_t distinct) {
    struct direction *direction = stream->direction;
    const struct transfer_plan *plan = &direction->transfer->plan;
    uint64_t now = monotonic_ns(), since = last_ns, limit = plan->idle_ns;
    if (direction->stop || has_all(stream, distinct))
        return true;
    if (direction->ended && direction->ended_ns > since)
        since = direction->ended_ns;
    if (!direction->ended) {
        uint64_t start = start_of(stream), gap = transfer_plan_max_gap_ns(plan);
        since = since > start ? since : start;
        limit = limit > RUNNING_IDLE_NS ? limit : RUNNING_IDLE_NS;
        limit = limit > gap ? limit : gap + plan->idle_ns;
    }
    if (now < since + limit)
        return false;
    if (!direction->ended)
        transfer_stop(direction->transfer, "idle", true);
    return true;
}

void stream_publish(struct stream *stream, uint64_t blocks, uint64_t bytes) {
    struct transfer *transfer = stream->direction->transfer;
    uint64_t before = atomic_load_explicit(&stream->live.bytes, memory_order_relaxed);
    atomic_store_explicit(&stream->live.blocks, blocks, memory_order_relaxed);
    atomic_store_explicit(&stream->live.bytes, bytes, memory_order_relaxed);
    if (!transfer->max_bytes)
        return;
    uint64_t others = atomic_fetch_add(&transfer->bytes_moved, bytes - before);
    if (others + bytes - before > transfer->max_bytes) {
        transfer_stop(transfer, "limit", true);
        stream->direction->stop = true;
    }
}

void stream_times_note(struct stream_times *times, uint64_t now_ns) {
    if (!times->first_ns) {
        times->first_ns = now_ns;
        times->first_realtime_ns = realtime_ns();
    }
    times->last_ns = now_ns;
}

void stream_times_report(const struct stream_times *times, struct stream_report *report) {
    report->elapsed_ns = times->last_ns - times->first_ns;
    report->first_ns = times->first_realtime_ns;
    report->last_ns = times->first_realtime_ns + report->elapsed_ns;
}
