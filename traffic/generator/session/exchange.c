/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop of a running transfer, one thread per transfer. It waits for lines of the peer,
 * for ended stream threads and for a tick, and then checks each reason to act: a file that failed,
 * a stop, the time limit, a direction whose threads have ended, a silent peer.
 *
 * Ends of a transfer, from normal to worst: all reports are exchanged; one end sends "stop", after
 * which senders report at once and receivers wait up to SETTLE_NS for the peer's "end"; the peer is
 * gone, after which all threads stop and only the own figures are known.
 *
 * Datagrams of the reverse direction go to an address that only the control connection has shown to
 * be right. The initiator therefore sends "progress" every SIGN_NS, and the senders at this end
 * pause after FLOW_SILENCE_NS less the round trip without a line or block, as QUIC sends nothing to
 * an address that does not answer (RFC 9000 8.1, 9.3). A pause ends with the next sign.
 *
 * Only this thread writes to the control connection and joins stream threads. A stream thread
 * announces its end through `wake`, an eventfd, so that one poll() waits for both. */
#include "session/exchange.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "session/clock_offset.h"
#include "session/exchange_lines.h"
#include "stream/stream.h"

#define TICK_NS               (100 * NS_PER_MS) /* longest wait of the loop */
#define PROGRESS_NS           NS_PER_S          /* between signs of life */
#define SIGN_NS               (100 * NS_PER_MS) /* the same, of an initiator that receives datagrams */
#define LEAST_FLOW_SILENCE_NS (4 * SIGN_NS)
#define REPEAT_NS             (2 * NS_PER_S) /* between two requests to stop */
#define SETTLE_NS             (5 * NS_PER_S) /* after a stop, for the peer's "end" */

_Atomic int exchange_interrupted;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler writes it");

/* A sender also waits for the peer's report. Without a peer, only the threads matter. */
static bool direction_is_over(const struct transfer *transfer, const struct direction *direction) {
    if (!direction->is_active)
        return true;
    if (transfer->exchange.peer_gone)
        return direction->has_joined;
    return direction->report_sent && (!direction->is_sending || direction->peer_done);
}

static bool is_over(const struct transfer *transfer) {
    const struct direction *directions = transfer->directions;
    return direction_is_over(transfer, &directions[DIRECTION_FORWARD]) &&
           direction_is_over(transfer, &directions[DIRECTION_REVERSE]);
}

/* The control connection is lost: no report will arrive, so all threads must stop. The broadcast
 * wakes threads that wait for a data connection. */
static void drop_peer(struct transfer *transfer) {
    transfer->exchange.peer_gone = true;
    transfer_stop(transfer, "peer gone", false);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        transfer->directions[name].stop = true;
    pthread_mutex_lock(&transfer->lock);
    pthread_cond_broadcast(&transfer->arrived);
    pthread_mutex_unlock(&transfer->lock);
}

static bool has_reverse_datagrams(const struct transfer *transfer) {
    return transfer_is_udp(transfer) && transfer->directions[DIRECTION_REVERSE].is_active;
}

static struct tcp_info read_control_info(const struct transfer *transfer) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    getsockopt(transfer->control.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info;
}

/* Returns how long senders of datagrams may go on after a sign of life. Half of the round trip has
 * passed when it arrives, and the last datagram needs the other half. */
static uint64_t flow_silence_ns(const struct transfer *transfer) {
    struct tcp_info info = read_control_info(transfer);
    uint64_t limit = bounded_subtract(FLOW_SILENCE_NS, info.tcpi_rtt * UINT64_C(1000));
    return limit > LEAST_FLOW_SILENCE_NS ? limit : LEAST_FLOW_SILENCE_NS;
}

static void note_sign_of_life(struct transfer *transfer) {
    uint64_t now = monotonic_ns();
    transfer->exchange.last_heard_ns = now;
    transfer->send_until_ns = has_reverse_datagrams(transfer) && !transfer->is_initiator
                                  ? now + flow_silence_ns(transfer)
                                  : UINT64_MAX;
}

/* Stops reading once all is over, because the peer may then close the connection, and after
 * TICK_NS, because limits and signals must be checked even if lines arrive without a pause. */
static void read_lines(struct transfer *transfer) {
    char line[LINE_SIZE];
    enum control_result answer;
    uint64_t deadline = (uint64_t)monotonic_ns() + TICK_NS;
    while (!transfer->exchange.peer_gone && !is_over(transfer) &&
           (uint64_t)monotonic_ns() < deadline &&
           (answer = control_read(&transfer->control, line)) != CONTROL_INCOMPLETE) {
        const char *error = answer == CONTROL_LINE ? exchange_take_line(transfer, line) : NULL;
        note_sign_of_life(transfer);
        if (error)
            transfer_fail(transfer, "the peer sent a wrong line: %s", error);
        if (answer != CONTROL_LINE || error)
            drop_peer(transfer);
    }
}

/* Waits for a line, the end of a thread, or the next tick. */
static void wait_for_lines(struct transfer *transfer) {
    struct pollfd two[] = {
        {.fd = transfer->wake, .events = POLLIN},
        {.fd = transfer->exchange.peer_gone ? -1 : transfer->control.fd, .events = POLLIN}};
    uint64_t count;
    uint64_t interval = transfer->exchange.options->interval_ns;
    poll(two, 2, (int)((interval && interval < TICK_NS ? interval : TICK_NS) / NS_PER_MS));
    if (read(transfer->wake, &count, sizeof count) < 0)
        count = 0; /* no thread has ended */
    read_lines(transfer);
}

/* An error of the file must stop the transfer before the report is sent, so that the peer learns
 * the reason first. */
static void check_content(struct transfer *transfer) {
    int error = transfer->content.is_used ? transfer->content.error : 0;
    if (error && !transfer->stopped_by)
        transfer_fail(transfer, "%.100s: %s", transfer->content.name, strerror(error));
}

/* Sends "stop" once. Senders stop by themselves; receivers stop when "end" arrives or after
 * SETTLE_NS. A peer that has not reported CONTROL_SILENCE_NS later never will, although it sends
 * signs of life. */
static void handle_stop(struct transfer *transfer) {
    if (exchange_interrupted)
        transfer_stop(transfer, "signal", true);
    if (!transfer->stopped_by)
        return;
    if (!transfer->exchange.stop_sent && !transfer->exchange.peer_gone) {
        transfer->exchange.stopped_ns = monotonic_ns();
        transfer->exchange.stop_sent = true;
        if (!exchange_send_stop(transfer, transfer->stopped_by))
            drop_peer(transfer);
    }
    uint64_t since_ns = monotonic_ns() - transfer->exchange.stopped_ns;
    for (unsigned name = 0; since_ns > SETTLE_NS && name < DIRECTIONS; name++)
        transfer->directions[name].stop = true;
    if (since_ns > SETTLE_NS + CONTROL_SILENCE_NS && !transfer->exchange.peer_gone)
        drop_peer(transfer);
}

/* A receiver may report once it knows how many blocks were sent, or never will. */
static bool may_report(const struct transfer *transfer, const struct direction *direction) {
    bool gives_up =
        transfer->exchange.stopped_ns && monotonic_ns() - transfer->exchange.stopped_ns > SETTLE_NS;
    if (direction->report_sent || transfer->exchange.peer_gone)
        return false;
    return direction->is_sending || direction->ended || gives_up;
}

static bool all_reports_sent(const struct transfer *transfer) {
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_active && !transfer->directions[name].report_sent)
            return false;
    return true;
}

/* A counter below its value at the start is unknown: the interface was replaced. */
static uint64_t growth_plus_1(int64_t before, int64_t after) {
    return before < 0 || after < before ? 0 : (uint64_t)(after - before) + 1;
}

static bool sent_joined(const struct direction *direction) {
    for (uint32_t i = 0; i < direction->count; i++)
        if (direction->streams[i].own.blocks_offloaded)
            return true;
    return false;
}

/* Counts drops of this host from the start until now. A queueing discipline counts a joined
 * datagram as one packet, so the number of its drops is unknown unless it is 0. */
static void count_host_losses(struct transfer *transfer, struct direction *direction) {
    const struct host_drops *before = &transfer->drops;
    struct host_drops after = *before;
    struct host_losses *losses = &direction->own_losses;
    if (!transfer_is_udp(transfer))
        return;
    host_drops_read(&after, &transfer->peer);
    losses->queue_plus_1 = direction->is_sending ? growth_plus_1(before->queue, after.queue) : 0;
    if (losses->queue_plus_1 > 1 && sent_joined(direction))
        losses->queue_plus_1 = 0;
    losses->interface_plus_1 = direction->is_sending
                                   ? growth_plus_1(before->sent, after.sent)
                                   : growth_plus_1(before->received, after.received);
}

/* The initiator measures the clocks once more and announces the result before its report, so both
 * ends report delays that were corrected in the same way. A transfer that was stopped has no time
 * for that: each end adds the drift. */
static void settle_delays(struct transfer *transfer, struct direction *direction) {
    bool was_cut = transfer->stopped_by || transfer->exchange.peer_gone;
    if (was_cut)
        clock_estimate_end(transfer);
    else if (transfer->is_initiator && !clock_measure_end(transfer))
        drop_peer(transfer);
    for (uint32_t i = 0; !direction->is_sending && i < direction->count; i++)
        clock_correct(transfer, &direction->streams[i].own);
}

/* Joins the threads of a direction that have ended, and sends its report when it is final.
 * `report_sent` is set first, because a report that failed half-way must not be repeated. */
static void finish_direction(struct transfer *transfer, struct direction *direction) {
    if (!direction->is_active || direction->running)
        return;
    if (!direction->has_joined)
        direction_join(direction);
    if (!may_report(transfer, direction))
        return;
    check_content(transfer);
    handle_stop(transfer);
    count_host_losses(transfer, direction);
    settle_delays(transfer, direction);
    direction->report_sent = true;
    transfer->has_reported = all_reports_sent(transfer);
    if (!transfer->exchange.peer_gone && !exchange_send_reports(transfer, direction))
        drop_peer(transfer);
}

/* A receiver enforces --max-time even if the sender does not stop. The limit is on the plan's own
 * duration, so the waits that the plan asks for are added. */
static void check_time_limit(struct transfer *transfer) {
    const struct transfer_plan *plan = &transfer->plan;
    uint64_t most_ns = transfer->exchange.options->max_ns + plan->start_offset_ns +
                       plan->stagger_ns * plan->streams + SETTLE_NS;
    if (!transfer->exchange.options->max_ns || monotonic_ns() - transfer->start_ns <= most_ns)
        return;
    transfer_stop(transfer, "limit", true);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        transfer->directions[name].stop = true;
}

bool rate_floor_holds(struct rate_floor *floor, double least_bps, uint64_t bytes, uint64_t now_ns,
                      bool works) {
    uint64_t moved = bytes - floor->bytes;
    if (!works && now_ns < floor->ns + RATE_FLOOR_NS)
        return true;
    uint64_t ns = now_ns - floor->ns;
    *floor = (struct rate_floor){now_ns, bytes};
    return works || (double)moved * 8e9 >= least_bps * (double)ns;
}

/* Signs of life and a block now and then must not keep a slot from other senders. While this end
 * hashes or flushes a file, its sender has nothing to send. */
static void check_rate_floor(struct transfer *transfer) {
    double least = transfer->exchange.options->min_bps;
    if (least > 0 && !transfer->stopped_by &&
        !rate_floor_holds(&transfer->exchange.floor, least, transfer->bytes_moved, monotonic_ns(),
                          transfer->content.works))
        transfer_fail(transfer, "less than %.12g bit/s for %llu s (--min-rate)", least,
                      RATE_FLOOR_NS / (unsigned long long)NS_PER_S);
}

/* Lines may be stuck behind blocks in a full queue, so blocks are signs of life too. */
static void note_received_blocks(struct transfer *transfer) {
    uint64_t bytes = 0;
    for (unsigned name = 0; name < DIRECTIONS; name++)
        for (uint32_t i = 0;
             !transfer->directions[name].is_sending && i < transfer->directions[name].count; i++)
            bytes += transfer->directions[name].streams[i].live[LIVE_BYTES];
    if (bytes != transfer->exchange.last_bytes)
        note_sign_of_life(transfer);
    transfer->exchange.last_bytes = bytes;
}

/* A peer that sends neither lines nor blocks for CONTROL_SILENCE_NS is gone, even if its host keeps
 * the connection. */
static void keep_control_alive(struct transfer *transfer) {
    if (transfer->exchange.peer_gone)
        return;
    note_received_blocks(transfer);
    uint64_t now = monotonic_ns();
    bool must_sign = has_reverse_datagrams(transfer) && transfer->is_initiator;
    if (now - transfer->exchange.last_heard_ns > CONTROL_SILENCE_NS) {
        drop_peer(transfer);
    } else if (now - transfer->exchange.last_sent_ns >= (must_sign ? SIGN_NS : PROGRESS_NS)) {
        transfer->exchange.last_sent_ns = now;
        if (!control_send(&transfer->control, "progress"))
            drop_peer(transfer);
    }
}

/* Samples TCP_INFO of all sending sockets, at each interval and at the end. */
static void sample(struct transfer *transfer, bool last) {
    uint64_t now = monotonic_ns(),
             every = transfer->plan.interval_ns ? transfer->plan.interval_ns : NS_PER_S;
    if (transfer_is_udp(transfer) || (!last && now - transfer->exchange.sampled_ns < every))
        return;
    transfer->exchange.sampled_ns = now;
    transfer->samples.rounds++;
    for (unsigned name = 0; name < DIRECTIONS; name++)
        for (uint32_t i = 0;
             transfer->directions[name].is_sending && i < transfer->directions[name].count; i++)
            if (transfer->directions[name].streams[i].fd >= 0)
                tcp_samples_take(&transfer->samples, transfer->directions[name].streams[i].fd, i,
                                 now - transfer->start_ns, last);
}

/* Prints one line for each interval that has passed. If this thread was held up, one line covers
 * several intervals. */
static void show(struct transfer *transfer, bool last) {
    const struct exchange_options *options = transfer->exchange.options;
    uint64_t since = monotonic_ns() - transfer->start_ns;
    if (!options->interval_ns)
        return;
    while (since - transfer->exchange.shown_ns >= options->interval_ns) {
        uint64_t to = transfer->exchange.shown_ns + options->interval_ns;
        if (since - to >= options->interval_ns)
            to = since - since % options->interval_ns; /* held up: one line for all */
        report_interval(transfer, transfer->exchange.shown_ns, to, &options->style);
        transfer->exchange.shown_ns = to;
    }
    if (last && since > transfer->exchange.shown_ns)
        report_interval(transfer, transfer->exchange.shown_ns, since, &options->style);
}

/* After the last line; all stream threads have ended. Queues may have dropped blocks after the last
 * one was sent, so they are read once more. UDP drops are counted for the whole host, so
 * other programs' sockets count too; a number below that at the start is unknown. */
static void finish(struct transfer *transfer) {
    pthread_mutex_lock(&transfer->lock);
    transfer->is_over = true;
    pthread_mutex_unlock(&transfer->lock);
    uint32_t rtt_us = read_control_info(transfer).tcpi_min_rtt;
    transfer->rtt_us = rtt_us == UINT32_MAX ? 0 : rtt_us; /* the kernel's word for no sample */
    sample(transfer, true);
    show(transfer, true);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_active && transfer->directions[name].is_sending)
            count_host_losses(transfer, &transfer->directions[name]);
    int64_t before = transfer->udp_drops, after = host_udp_drops();
    transfer->udp_drops = before < 0 || after < before ? -1 : after - before;
}

/* All streams of a direction take the route of the first. */
static void choose_offload(struct transfer *transfer) {
    const struct transfer_plan *plan = &transfer->plan;
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        struct direction *direction = &transfer->directions[name];
        if (direction->is_active && direction->is_sending)
            direction->joins_datagrams =
                plan->offload == OFFLOAD_ALWAYS ||
                (plan->offload == OFFLOAD_IF_SOFTWARE && !plan->kernel_pacing &&
                 host_segments_datagrams(direction->streams[0].fd));
    }
}

/* Errors, stops and limits are handled before reports, because a report is final. */
void exchange_run(struct transfer *transfer, const struct exchange_options *options) {
    struct exchange *exchange = &transfer->exchange;
    transfer->udp_drops = transfer_is_udp(transfer) ? host_udp_drops() : -1;
    if (transfer_is_udp(transfer)) {
        choose_offload(transfer);
        host_drops_read(&transfer->drops, &transfer->peer);
    }
    transfer->link_bps = host_link_bps(&transfer->own);
    transfer->max_bps = options->max_bps;
    transfer->start_realtime_ns = realtime_ns();
    transfer->start_ns = monotonic_ns();
    exchange->last_sent_ns = exchange->sampled_ns = transfer->start_ns;
    exchange->floor.ns = transfer->start_ns + transfer->plan.start_offset_ns;
    note_sign_of_life(transfer);
    exchange->options = options;
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_active && !direction_start(&transfer->directions[name]))
            drop_peer(transfer);
    while (!is_over(transfer)) {
        wait_for_lines(transfer);
        check_content(transfer);
        handle_stop(transfer);
        check_time_limit(transfer);
        check_rate_floor(transfer);
        sample(transfer, false);
        for (unsigned name = 0; name < DIRECTIONS; name++)
            finish_direction(transfer, &transfer->directions[name]);
        keep_control_alive(transfer);
        show(transfer, false);
    }
    finish(transfer);
}

static _Atomic uint64_t first_signal_ns;
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler writes it");

/* timeout(1), sudo and terminals often send two signals for one request: to the process and to its
 * group. A signal after REPEAT_NS is another request, and ends the program. Any thread may run this
 * handler; it calls only functions that signal-safety(7) lists. */
static void note_signal(int number) {
    uint64_t now = monotonic_ns(), first = 0;
    if (atomic_compare_exchange_strong(&first_signal_ns, &first, now))
        first = now;
    exchange_interrupted = number;
    if (now - first < REPEAT_NS)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

void exchange_watch_signals(void) {
    struct sigaction action = {.sa_handler = note_signal}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* nohup(1) ignores SIGHUP, and it must stay ignored. */
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}
