/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of one direction: receive, advance, send what is due, sleep until the next packet leaves
 * or arrives. The direction computes ideal times; the worker's lateness delays a single packet and
 * never adds up.
 *
 * Timers wake late, by some 70 us on virtual machines. The worker measures the median of it, sets
 * its timers that much earlier, and polls for the rest. A packet that is stamped in the future, or
 * more than 1 s ago, shows that the clock was set: it counts as arriving now. */
#include "io/link_worker.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/log.h"

#define MAX_SLEEP_NS     INT64_C(100000000)
#define FLUSH_EVERY_NS   INT64_C(200000000)
#define LATENESS_STEP_NS INT64_C(500)
#define MAX_LATENESS_NS  INT64_C(200000)
#define MAX_WAIT_NS      INT64_C(1000000000) /* of a frame for the worker */

static void log_fate(void *context, const struct truth_record *truth) {
    struct link_worker *worker = context;
    truth_pen_write(&worker->pen, truth);
}

/* The message leaves where the packet came in, at once, because the link acts as a router there. It
 * has a truth record of its own. */
static void answer_too_big(void *context, const struct link_packet *packet) {
    struct link_worker *worker = context;
    uint8_t frame[MAX_TOO_BIG_FRAME];
    uint32_t size = icmp_too_big(packet, (uint16_t)worker->spec->mtu, worker->addresses, frame);
    if (!size || !link_port_send_frame(worker->from, frame, size))
        return;
    struct truth_record truth = {
        .fate = FATE_MADE, .direction = !worker->direction.number, .copies = 1};
    struct link_packet *answer = link_packet_new(frame, size);
    if (!answer)
        return;
    worker->answers++;
    packet_identify(frame, size, &truth, &answer->ip_at);
    truth.out_ns = realtime_ns();
    truth_pen_write(&worker->pen, &truth);
    free(answer);
}

/* Passes frames to the direction, in order; those that must not be emulated go on at once. Returns
 * the number of frames. */
static unsigned take_arrivals(struct link_worker *worker, struct port_frame *frames) {
    unsigned count = link_port_receive(worker->from, frames);
    int64_t now = count ? monotonic_ns() : 0;
    for (unsigned i = 0; i < count; i++) {
        int64_t arrival = frames[i].in_ns - worker->offset_ns;
        if (!frames[i].in_ns || arrival > now || arrival < now - MAX_WAIT_NS) {
            worker->restamped += frames[i].in_ns && arrival < now;
            arrival = now;
            frames[i].in_ns = now + worker->offset_ns;
        }
        if (!link_direction_arrive(&worker->direction, frames[i].bytes, frames[i].size, arrival,
                                   frames[i].in_ns)) {
            worker->passed++;
            link_port_send_frame(worker->to, frames[i].bytes, frames[i].size);
        }
    }
    return count;
}

/* If the interface refuses a packet, it ends with FATE_SEND_ERROR and the rest is tried. */
static void send_batch(struct link_worker *worker, struct link_packet **packets, unsigned count) {
    for (unsigned at = 0; at < count;) {
        unsigned sent = link_port_send(worker->to, packets + at, count - at);
        int64_t out = monotonic_ns();
        for (unsigned i = 0; i < sent; i++) {
            int64_t due = packets[at + i]->out_ns;
            lateness_add(&worker->errors, out > due ? (uint64_t)(out - due) : 0);
            link_direction_sent(&worker->direction, packets[at + i], out + worker->offset_ns,
                                due + worker->offset_ns);
        }
        at += sent;
        if (at < count) { /* the next one was refused */
            link_direction_sent(&worker->direction, packets[at], 0, 0);
            at++;
        }
    }
}

/* Returns the number of packets that were due; at most a batch, so that arrivals are read in
 * between. */
static unsigned send_due(struct link_worker *worker, int64_t now_ns) {
    struct link_packet *packets[PORT_BATCH];
    unsigned count = 0;
    link_direction_advance(&worker->direction, now_ns);
    while (count < PORT_BATCH && (packets[count] = link_direction_take(&worker->direction, now_ns)))
        count++;
    send_batch(worker, packets, count);
    return count;
}

/* Follows the median in steps of half a microsecond. */
static void learn_lateness(struct link_worker *worker, int64_t late_ns) {
    worker->late_ns += late_ns > worker->late_ns ? LATENESS_STEP_NS : -LATENESS_STEP_NS;
    if (worker->late_ns > MAX_LATENESS_NS)
        worker->late_ns = MAX_LATENESS_NS;
    if (worker->late_ns < 0)
        worker->late_ns = 0;
}

/* Sleeps until a frame arrives or the next packet is due. Only a sleep that ended by its timer
 * shows how late timers are. */
static void sleep_until_due(struct link_worker *worker, int64_t now_ns) {
    int64_t wait = link_direction_next_ns(&worker->direction);
    bool timed = wait - now_ns < MAX_SLEEP_NS;
    wait = timed ? wait - now_ns - worker->spin_ns - worker->late_ns : MAX_SLEEP_NS;
    if (wait <= 0)
        return;
    struct timespec time = {.tv_sec = 0, .tv_nsec = wait};
    struct pollfd frames = {.fd = worker->from->socket, .events = POLLIN};
    if (!ppoll(&frames, 1, &time, NULL) && timed)
        learn_lateness(worker, monotonic_ns() - now_ns - wait);
}

static void flush_sometimes(struct link_worker *worker, int64_t now_ns) {
    if (now_ns - worker->flushed_ns < FLUSH_EVERY_NS)
        return;
    truth_pen_flush(&worker->pen);
    worker->flushed_ns = now_ns;
}

static void make_frames(struct port_frame *frames) {
    for (unsigned i = 0; i < PORT_BATCH; i++)
        if (!(frames[i].bytes = malloc(MAX_FRAME)))
            fail(EXIT_MISSING, "out of memory for %u frames", PORT_BATCH);
}

void *link_worker_run(void *context) {
    struct link_worker *worker = context;
    struct port_frame frames[PORT_BATCH];
    make_frames(frames);
    prctl(PR_SET_TIMERSLACK, 1UL); /* ns; the default is 50 us */
    worker->events.context = worker;
    worker->events.fate_known = log_fate;
    worker->events.too_big = answer_too_big;
    while (!atomic_load_explicit(worker->ending, memory_order_relaxed)) {
        worker->offset_ns = realtime_ns() - monotonic_ns();
        unsigned came = take_arrivals(worker, frames);
        int64_t now = monotonic_ns();
        unsigned went = send_due(worker, now);
        flush_sometimes(worker, now);
        if (!came && !went)
            sleep_until_due(worker, monotonic_ns());
    }
    link_direction_end(&worker->direction);
    truth_pen_flush(&worker->pen);
    for (unsigned i = 0; i < PORT_BATCH; i++)
        free(frames[i].bytes);
    return NULL;
}
