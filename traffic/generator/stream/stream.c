/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the movers. The end of a stream is never marked in the data path, because marks
 * can be lost: the control connection announces how many blocks were sent, and a receiver waits
 * until it has them or until nothing arrived for `idle_ns`. */
#include "stream/stream.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <string.h>

#define REAL_TIME_GAP_NS  (NS_PER_MS / 10) /* with shorter gaps, a sender would hardly sleep */
#define REAL_TIME_LATE_NS (50 * NS_PER_MS) /* such a sender asks for more than the machine has */

/* The lock orders the hand-over against the end of the exchange, which sets is_over: a connection
 * that comes later is refused, and the caller closes it. */
bool stream_accept(struct stream *stream, const struct control *control) {
    struct transfer *transfer = stream->direction->transfer;
    pthread_mutex_lock(&transfer->lock);
    bool expected = stream->fd < 0 && !transfer->is_over && control->have <= sizeof stream->head;
    if (expected) {
        memcpy(stream->head, control->in, control->have);
        stream->head_have = control->have;
        stream->fd = control->fd;
        pthread_cond_broadcast(&transfer->arrived);
    }
    pthread_mutex_unlock(&transfer->lock);
    return expected;
}

uint64_t stream_start_ns(const struct stream *stream) {
    const struct transfer *transfer = stream->direction->transfer;
    return transfer->start_ns + transfer->plan.start_offset_ns +
           stream->number * transfer->plan.stagger_ns;
}

/* Before "end", silence must last longer than the plan's longest gap and than RUNNING_IDLE_NS,
 * because the sender may be held up; after it, `idle_ns` is enough, because all blocks are under
 * way or lost. A kernel that paces sends the last bytes later. */
bool stream_is_over(struct stream *stream, uint64_t last_ns, uint64_t distinct) {
    struct direction *direction = stream->direction;
    const struct transfer_plan *plan = &direction->transfer->plan;
    uint64_t since = last_ns, limit = plan->idle_ns + transfer_plan_kernel_gap_ns(plan);
    if (direction->stop || (direction->ended && distinct >= stream->peer.blocks_sent))
        return true;
    if (direction->ended && direction->ended_ns > since)
        since = direction->ended_ns;
    if (!direction->ended) {
        uint64_t start = stream_start_ns(stream), gap = transfer_plan_max_gap_ns(plan);
        since = since > start ? since : start;
        limit = limit > RUNNING_IDLE_NS ? limit : RUNNING_IDLE_NS;
        limit = limit > gap ? limit : gap + plan->idle_ns;
    }
    if ((uint64_t)monotonic_ns() < since + limit)
        return false;
    if (!direction->ended)
        transfer_stop(direction->transfer, "idle", true);
    return true;
}

/* A sender that keeps its rate is never ahead of it by more than a burst, for which a second is
 * left. */
static double rate_limit_bytes(const struct transfer *transfer) {
    double seconds = (double)((uint64_t)monotonic_ns() - transfer->start_ns) / 1e9 + 1;
    double directions = transfer->plan.direction == DIRECTION_BOTH ? 2 : 1;
    return transfer->max_bps > 0 ? directions * transfer->max_bps / 8 * seconds * 1.05 : INFINITY;
}

bool stream_exceeds_limit(const struct stream *stream) {
    const struct transfer *transfer = stream->direction->transfer;
    uint64_t moved = transfer->bytes_moved;
    return transfer->max_bytes &&
           (moved > transfer->max_bytes || (double)moved > rate_limit_bytes(transfer));
}

void stream_note_moved(struct stream *stream, uint64_t bytes) {
    struct transfer *transfer = stream->direction->transfer;
    if (!transfer->max_bytes)
        return;
    transfer->bytes_moved += bytes;
    if (!stream_exceeds_limit(stream))
        return;
    transfer_stop(transfer, "limit", true);
    stream->direction->stop = true;
}

/* Stores are relaxed, because interval lines need no order between counters. */
void stream_publish(struct stream *stream) {
    const struct stream_report *own = &stream->own;
    bool sends = stream->direction->is_sending;
    const uint64_t counts[LIVE_COUNTERS] = {
        [LIVE_BLOCKS] = sends ? own->blocks_sent : own->blocks_received,
        [LIVE_BYTES] = sends ? own->bytes_sent : own->bytes_received,
        [LIVE_MISSING] = own->missing,
        [LIVE_OUT_OF_ORDER] = own->out_of_order,
        [LIVE_DUPLICATE] = own->duplicate,
        [LIVE_CORRUPT] = own->corrupt,
    };
    for (unsigned i = 0; i < LIVE_COUNTERS; i++)
        atomic_store_explicit(&stream->live[i], counts[i], memory_order_relaxed);
}

void stream_times_note(struct stream_times *times, uint64_t now_ns) {
    if (!times->first_ns) {
        times->first_ns = now_ns;
        times->first_realtime_ns = realtime_ns();
    }
    times->last_ns = now_ns;
}

/* The last time since the epoch is derived from the monotonic clock, so that a step of the realtime
 * clock cannot change the duration. */
void stream_times_report(const struct stream_times *times, struct stream_report *report) {
    report->elapsed_ns = times->last_ns - times->first_ns;
    report->first_ns = times->first_realtime_ns;
    report->last_ns = times->first_realtime_ns + report->elapsed_ns;
}

/* The send waited for buffer until its timeout: not an error. */
static bool is_timeout(int number) {
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

/* Errors of datagrams that may pass: a full queue, a filter rule, the ICMP answer to an earlier
 * datagram (RFC 1122 4.1.3.3). A TCP connection with an error is lost. */
static bool may_pass(int number, bool udp) {
    static const int passing[] = {ENOBUFS,      ENOMEM,      EPERM,    ECONNREFUSED,
                                  EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN};
    for (unsigned i = 0; udp && i < sizeof passing / sizeof *passing; i++)
        if (passing[i] == number)
            return true;
    return false;
}

/* The lowest priority, because threads with the usual one are to be preceded, but none of the
 * system's. It needs CAP_SYS_NICE or RLIMIT_RTPRIO. A real-time priority that the user gave to the
 * program (chrt) stays as it is. */
void stream_raise_priority(struct stream *stream) {
    const struct transfer_plan *plan = &stream->direction->transfer->plan;
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)}, present;
    int policy = SCHED_OTHER;
    pthread_getschedparam(pthread_self(), &policy, &present);
    bool is_given = policy == SCHED_FIFO || policy == SCHED_RR;
    stream->has_raised =
        !is_given && !plan->no_real_time &&
        (plan->turns || transfer_plan_gap_ns(plan, plan->min_size) >= REAL_TIME_GAP_NS) &&
        !pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest);
    stream->own.real_time = is_given || stream->has_raised;
}

void stream_end_priority(struct stream *stream) {
    struct sched_param usual = {0};
    if (stream->has_raised)
        pthread_setschedparam(pthread_self(), SCHED_OTHER, &usual);
    stream->has_raised = false;
}

void stream_limit_priority(struct stream *stream, uint64_t late_ns) {
    if (!stream->has_raised || late_ns < REAL_TIME_LATE_NS)
        return;
    stream_end_priority(stream);
    stream->own.real_time = 0;
}

void stream_note_sent(struct stream *stream) {
    stream->progress_ns = monotonic_ns();
    stream_times_note(&stream->times, stream->progress_ns);
    stream_publish(stream);
}

/* strerrorname_np() is newer than the oldest glibc that wheels run with. */
static const char *error_name(int number) {
#define NAME(error)                                                                                \
    { error, #error }
    static const struct {
        int number;
        const char *name;
    } names[] = {
        NAME(EACCES),       NAME(EADDRNOTAVAIL), NAME(EAGAIN),     NAME(EBADF),
        NAME(ECONNABORTED), NAME(ECONNREFUSED),  NAME(ECONNRESET), NAME(EFAULT),
        NAME(EHOSTDOWN),    NAME(EHOSTUNREACH),  NAME(EINTR),      NAME(EINVAL),
        NAME(EIO),          NAME(EMSGSIZE),      NAME(ENETDOWN),   NAME(ENETRESET),
        NAME(ENETUNREACH),  NAME(ENOBUFS),       NAME(ENODEV),     NAME(ENOMEM),
        NAME(ENOPROTOOPT),  NAME(ENOTCONN),      NAME(ENXIO),      NAME(EOPNOTSUPP),
        NAME(EPERM),        NAME(EPIPE),         NAME(EPROTO),     NAME(ESHUTDOWN),
        NAME(ETIMEDOUT),
    };
#undef NAME
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    return "EUNKNOWN";
}

static void count_error(struct stream *stream, int number) {
    struct error_counts counts = {0};
    error_counts_add(&counts, stream->own.errors);
    error_counts_add_one(&counts, error_name(number), 1);
    error_counts_write(&counts, stream->own.errors);
}

/* ECONNREFUSED needs no pause, because it belongs to an earlier datagram. All waits end early at a
 * stop. */
bool stream_handle_error(struct stream *stream, int number) {
    struct transfer *transfer = stream->direction->transfer;
    uint64_t now = monotonic_ns();
    if (!is_timeout(number))
        count_error(stream, number);
    if (!is_timeout(number) && !may_pass(number, transfer_is_udp(transfer))) {
        transfer_fail(transfer, "stream %u: send: %s%s", stream->number, strerror(number),
                      number == EMSGSIZE ? " (a block must fit the path's MTU with --df do)" : "");
        return false;
    }
    if (now - stream->progress_ns > STALL_LIMIT_NS) {
        transfer_fail(transfer, "stream %u: nothing could be sent for 10 s: %s", stream->number,
                      strerror(number));
        return false;
    }
    if (number == ENOBUFS ||
        number == ENOMEM) /* a queue drains within fractions of a millisecond */
        pacer_wait(now + NS_PER_MS / 10, &stream->direction->stop);
    else if (!is_timeout(number) && number != ECONNREFUSED)
        pacer_wait(now + NS_PER_MS, &stream->direction->stop);
    return true;
}
