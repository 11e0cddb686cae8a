/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transfer/clock.h"

#define STACK_BYTES (256u << 10) /* of a thread: 1,000 of them must not matter */

int stream_bind(struct stream *stream, char why[WHY_ROOM]) {
    struct test *test = stream->way->test;
    int fd = endpoint_bind_udp(&test->own, &test->local, &test->plan.socket, why);
    union endpoint own;
    socklen_t size = sizeof own;
    if (fd < 0)
        return -1;
    stream->fd = fd;
    getsockname(fd, &own.address, &size);
    return endpoint_port(&own);
}

int stream_aim(struct stream *stream, char why[WHY_ROOM]) {
    struct test *test = stream->way->test;
    union endpoint to = test->peer;
    endpoint_set_port(&to, stream->port);
    stream->fd = endpoint_connect_udp(&to, &test->local, &test->plan.socket, why);
    return stream->fd < 0 ? -1 : 0;
}

static uint64_t start_of(const struct stream *stream) {
    const struct test *test = stream->way->test;
    return test->start_ns + test->plan.start_offset_ns + stream->number * test->plan.stagger_ns;
}

/* The asking end opens all data connections, with the control connection's port. */
static bool connect_data(struct stream *stream) {
    struct test *test = stream->way->test;
    char why[WHY_ROOM], line[96];
    int fd = endpoint_connect(&test->peer, &test->local, &test->plan.socket, CONNECT_LIMIT_NS, why);
    if (fd < 0) {
        test_fail(test, "data connection %u: %s", stream->number, why);
        return false;
    }
    stream->fd = fd;
    if (stream->way->is_sending)
        return true;
    int length = snprintf(line, sizeof line, "data run=%llu stream=%u\n",
                          (unsigned long long)test->plan.run, stream->number);
    if (send(fd, line, (size_t)length, MSG_NOSIGNAL) == length)
        return true;
    test_fail(test, "data connection %u: %s", stream->number, strerror(errno));
    return false;
}

/* Until when a data connection may come: once all is announced as sent, it is under way or lost. */
static struct timespec arrival_deadline(const struct stream *stream) {
    const struct way *way = stream->way;
    const struct test *test = way->test;
    uint64_t limit = start_of(stream) + CONNECT_LIMIT_NS + test->plan.idle_ns;
    uint64_t after_end = way->ended_ns + test->plan.idle_ns;
    return to_timespec(way->ended && after_end < limit ? after_end : limit);
}

static void wait_for_arrival(struct stream *stream) {
    struct test *test = stream->way->test;
    bool timely = true, knew_end = false;
    pthread_mutex_lock(&test->lock);
    while (stream->fd < 0 && !stream->way->stop && (timely || knew_end != stream->way->ended)) {
        knew_end = stream->way->ended;
        struct timespec deadline = arrival_deadline(stream);
        timely = !pthread_cond_timedwait(&test->arrived, &test->lock, &deadline);
    }
    pthread_mutex_unlock(&test->lock);
}

static bool await_data(struct stream *stream) {
    struct test *test = stream->way->test;
    char why[WHY_ROOM];
    wait_for_arrival(stream);
    if (stream->fd < 0) {
        if (!stream->way->stop && !stream->way->ended)
            test_fail(test, "data connection %u did not come", stream->number);
        return false;
    }
    struct socket_plan plan = test->plan.socket;
    if (!stream->way->is_sending) /* which an unprivileged receiver may not choose freely */
        plan.congestion[0] = 0;
    if (endpoint_apply(stream->fd, test->peer.address.sa_family, false, &plan, why)) {
        test_fail(test, "%s", why);
        return false;
    }
    return true;
}

bool stream_hand_over(struct stream *stream, int fd, const uint8_t *head, size_t count) {
    struct test *test = stream->way->test;
    pthread_mutex_lock(&test->lock);
    bool wanted = stream->fd < 0 && !test->is_over && count <= sizeof stream->head;
    if (wanted) {
        if (count)
            memcpy(stream->head, head, count);
        stream->head_have = count;
        stream->fd = fd;
        pthread_cond_broadcast(&test->arrived);
    }
    pthread_mutex_unlock(&test->lock);
    return wanted;
}

static bool open_stream(struct stream *stream) {
    struct way *way = stream->way;
    bool waits = way->is_sending && way->test->asks; /* its first block follows at once */
    if (waits && !pacer_wait(start_of(stream), &way->stop))
        return false;
    if (test_is_udp(way->test))
        return true;
    return way->test->asks ? connect_data(stream) : await_data(stream);
}

static void move_blocks(struct stream *stream) {
    struct way *way = stream->way;
    bool udp = test_is_udp(way->test);
    endpoint_limit_waits(stream->fd, WAIT_PIECE_NS);
    /* What the connection took is no reason to hurry: the first block is due now. */
    if (way->is_sending && pacer_wait(start_of(stream), &way->stop))
        (udp ? stream_send_udp : stream_send_tcp)(stream, monotonic_ns());
    else if (!way->is_sending)
        (udp ? stream_receive_udp : stream_receive_tcp)(stream);
}

static uint64_t to_ns(struct timeval time) {
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static void *stream_main(void *context) {
    struct stream *stream = context;
    struct way *way = stream->way;
    struct rusage usage;
    uint64_t one = 1;
    pacer_wake_exactly();
    if (open_stream(stream))
        move_blocks(stream);
    if (!getrusage(RUSAGE_THREAD, &usage)) {
        stream->mine.cpu_user_ns = to_ns(usage.ru_utime);
        stream->mine.cpu_system_ns = to_ns(usage.ru_stime);
    }
    way->running--;
    if (write(way->test->wake, &one, sizeof one) < 0)
        return NULL; /* the other thread looks from time to time, too */
    return NULL;
}

bool way_start(struct way *way) {
    pthread_attr_t attributes;
    bool right = true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint32_t i = 0; right && i < way->count; i++) {
        struct stream *stream = &way->streams[i];
        way->running++;
        right = !pthread_create(&stream->thread, &attributes, stream_main, stream);
        stream->is_running = right;
        way->running -= !right;
    }
    pthread_attr_destroy(&attributes);
    if (!right)
        test_fail(way->test, "no more threads");
    return right;
}

void way_join(struct way *way) {
    for (uint32_t i = 0; i < way->count; i++)
        if (way->streams[i].is_running) {
            pthread_join(way->streams[i].thread, NULL);
            way->streams[i].is_running = false;
        }
    way->has_joined = true;
}

static bool has_all(const struct stream *stream, uint64_t distinct) {
    return stream->way->ended && distinct >= stream->theirs.blocks_sent;
}

bool stream_is_silent(struct stream *stream, uint64_t last_ns, uint64_t distinct) {
    struct way *way = stream->way;
    const struct test_plan *plan = &way->test->plan;
    uint64_t now = monotonic_ns(), since = last_ns, limit = plan->idle_ns;
    if (way->stop || has_all(stream, distinct))
        return true;
    if (way->ended && way->ended_ns > since)
        since = way->ended_ns;
    if (!way->ended) {
        uint64_t start = start_of(stream), gap = test_plan_gap_ns(plan);
        since = since > start ? since : start;
        limit = limit > RUNNING_IDLE_NS ? limit : RUNNING_IDLE_NS;
        limit = limit > gap ? limit : gap + plan->idle_ns;
    }
    if (now < since + limit)
        return false;
    if (!way->ended)
        test_stop(way->test, "idle", true);
    return true;
}

void stream_publish(struct stream *stream, uint64_t blocks, uint64_t bytes) {
    struct test *test = stream->way->test;
    uint64_t before = atomic_load_explicit(&stream->live.bytes, memory_order_relaxed);
    atomic_store_explicit(&stream->live.blocks, blocks, memory_order_relaxed);
    atomic_store_explicit(&stream->live.bytes, bytes, memory_order_relaxed);
    if (!test->bytes_most)
        return;
    uint64_t others = atomic_fetch_add(&test->bytes_moved, bytes - before);
    if (others + bytes - before > test->bytes_most) {
        test_stop(test, "limit", true);
        stream->way->stop = true;
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
