/* SPDX-License-Identifier: Apache-2.0 */
#include "session/exchange.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "session/exchange_lines.h"
#include "session/host_info.h"
#include "stream/stream_thread.h"

#define TICK_NS     (100 * NS_PER_MS)
#define PROGRESS_NS NS_PER_S
#define REPEAT_NS   (2 * NS_PER_S)
#define SETTLE_NS   (5 * NS_PER_S) /* after a stop, for the other end to say what it sent */

_Atomic int exchange_interrupted;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler writes it");

struct exchange {
    struct transfer *transfer;
    const struct exchange_limits *limits;
    const struct exchange_view *view;
    uint64_t last_heard_ns, last_sent_ns, stopped_ns;
    uint64_t last_bytes; /* of blocks */
    uint64_t sampled_ns, shown_ns;
    bool peer_gone, stop_sent;
    pthread_t finisher; /* of the file that was received */
    bool is_finishing;
    atomic_bool has_finished;
};

static bool direction_is_over(const struct exchange *exchange, const struct direction *direction) {
    if (!direction->is_active)
        return true;
    if (exchange->peer_gone)
        return direction->has_joined;
    return direction->report_sent && (!direction->is_sending || direction->peer_done);
}

static bool is_over(const struct exchange *exchange) {
    struct direction *directions = exchange->transfer->directions;
    return direction_is_over(exchange, &directions[DIRECTION_FORWARD]) &&
           direction_is_over(exchange, &directions[DIRECTION_REVERSE]);
}

/* Nobody to talk to: what is here is all there will be. */
static void drop_peer(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    exchange->peer_gone = true;
    transfer_stop(transfer, "peer gone", false);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        transfer->directions[name].stop = true;
    pthread_mutex_lock(&transfer->lock);
    pthread_cond_broadcast(&transfer->arrived);
    pthread_mutex_unlock(&transfer->lock);
}

static void read_lines(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    char line[LINE_SIZE];
    enum control_result answer;
    /* When all is said, the other end may hang up. */
    while (!exchange->peer_gone && !is_over(exchange) &&
           (answer = control_read(&transfer->control, line)) != CONTROL_INCOMPLETE) {
        const char *error = answer == CONTROL_LINE ? exchange_take_line(transfer, line) : NULL;
        exchange->last_heard_ns = monotonic_ns();
        if (error)
            transfer_fail(transfer, "the other end said something wrong: %s", error);
        if (answer != CONTROL_LINE || error)
            drop_peer(exchange);
    }
}

static void wait_for_lines(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    struct pollfd two[] = {
        {.fd = transfer->wake, .events = POLLIN},
        {.fd = exchange->peer_gone ? -1 : transfer->control.fd, .events = POLLIN}};
    uint64_t count;
    uint64_t interval = exchange->view->interval_ns;
    poll(two, 2, (int)((interval && interval < TICK_NS ? interval : TICK_NS) / NS_PER_MS));
    if (read(transfer->wake, &count, sizeof count) < 0)
        count = 0; /* no thread has ended */
    read_lines(exchange);
}

/* Summing up a large file and flushing it to the disk may take minutes, in which the other end
 * must hear that this one is alive: so in a thread. */
static void *finish_content(void *context) {
    struct exchange *exchange = context;
    struct transfer *transfer = exchange->transfer;
    uint64_t one = 1;
    content_finish_sum(&transfer->content);
    pthread_mutex_lock(&transfer->lock);
    bool complete = !transfer->stopped_by;
    pthread_mutex_unlock(&transfer->lock);
    content_settle(&transfer->content, complete);
    exchange->has_finished = true;
    if (write(transfer->wake, &one, sizeof one) < 0)
        return NULL; /* the other thread looks from time to time, too */
    return NULL;
}

/* Whether the received file has its name, or never will. */
static bool has_finished_content(struct exchange *exchange) {
    if (!exchange->transfer->content.is_used)
        return true;
    if (!exchange->is_finishing && !exchange->has_finished) {
        exchange->is_finishing =
            !pthread_create(&exchange->finisher, NULL, finish_content, exchange);
        if (!exchange->is_finishing)
            finish_content(exchange);
    }
    return exchange->has_finished;
}

/* The other end hears of a file that cannot be read or written before it hears that all is over. */
static void check_content(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    int error = transfer->content.is_used ? transfer->content.error : 0;
    if (error && !transfer->stopped_by)
        transfer_fail(transfer, "%.100s: %s", transfer->content.name, strerror(error));
}

/* The sending threads stop by themselves; the receiving ones when the other end says what it sent,
 * or after a while. */
static void handle_stop(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    if (exchange_interrupted)
        transfer_stop(transfer, "signal", true);
    if (!transfer->stopped_by)
        return;
    if (!exchange->stop_sent && !exchange->peer_gone) {
        exchange->stopped_ns = monotonic_ns();
        exchange->stop_sent = true;
        if (!exchange_send_stop(transfer, transfer->stopped_by))
            drop_peer(exchange);
    }
    if (monotonic_ns() - exchange->stopped_ns > SETTLE_NS)
        for (unsigned name = 0; name < DIRECTIONS; name++)
            transfer->directions[name].stop = true;
}

/* A receiver reports once it knows how much was sent, or never will, and the file is finished. */
static bool may_report(struct exchange *exchange, const struct direction *direction) {
    bool gives_up = exchange->stopped_ns && monotonic_ns() - exchange->stopped_ns > SETTLE_NS;
    if (direction->report_sent || exchange->peer_gone)
        return false;
    return direction->is_sending ||
           ((direction->ended || gives_up) && has_finished_content(exchange));
}

static bool all_reports_sent(const struct transfer *transfer) {
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_active && !transfer->directions[name].report_sent)
            return false;
    return true;
}

/* A way whose threads have ended says so. */
static void finish_direction(struct exchange *exchange, struct direction *direction) {
    struct transfer *transfer = exchange->transfer;
    if (!direction->is_active || direction->running)
        return;
    if (!direction->has_joined) {
        direction_join(direction);
        if (transfer->content.is_used && direction->is_sending)
            content_finish_sum(&transfer->content);
    }
    if (!may_report(exchange, direction))
        return;
    check_content(exchange);
    handle_stop(exchange);
    direction->report_sent = true;
    transfer->has_reported = all_reports_sent(transfer);
    if (!exchange->peer_gone && !exchange_send_reports(transfer, direction))
        drop_peer(exchange);
}

static void check_time_limit(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    const struct transfer_plan *plan = &transfer->plan;
    uint64_t most_ns = exchange->limits->time_ns + plan->start_offset_ns +
                       plan->stagger_ns * plan->streams + SETTLE_NS;
    if (!exchange->limits->time_ns || monotonic_ns() - transfer->start_ns <= most_ns)
        return;
    transfer_stop(transfer, "limit", true);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        transfer->directions[name].stop = true;
}

/* Blocks are a sign of life as good as lines, which may be stuck behind them. */
static void note_received_blocks(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    uint64_t bytes = 0;
    for (unsigned name = 0; name < DIRECTIONS; name++)
        for (uint32_t i = 0;
             !transfer->directions[name].is_sending && i < transfer->directions[name].count; i++)
            bytes += transfer->directions[name].streams[i].live.bytes;
    if (bytes != exchange->last_bytes)
        exchange->last_heard_ns = monotonic_ns();
    exchange->last_bytes = bytes;
}

static void keep_control_alive(struct exchange *exchange) {
    if (exchange->peer_gone)
        return;
    note_received_blocks(exchange);
    uint64_t now = monotonic_ns();
    if (now - exchange->last_heard_ns > CONTROL_SILENCE_NS) {
        drop_peer(exchange);
    } else if (now - exchange->last_sent_ns > PROGRESS_NS) {
        exchange->last_sent_ns = now;
        if (!control_send(&exchange->transfer->control, "progress"))
            drop_peer(exchange);
    }
}

static void sample(struct exchange *exchange, bool last) {
    struct transfer *transfer = exchange->transfer;
    uint64_t now = monotonic_ns(),
             every = transfer->plan.interval_ns ? transfer->plan.interval_ns : NS_PER_S;
    if (transfer_is_udp(transfer) || (!last && now - exchange->sampled_ns < every))
        return;
    exchange->sampled_ns = now;
    tcp_samples_begin_round(&transfer->samples);
    for (unsigned name = 0; name < DIRECTIONS; name++)
        for (uint32_t i = 0;
             transfer->directions[name].is_sending && i < transfer->directions[name].count; i++)
            if (transfer->directions[name].streams[i].fd >= 0)
                tcp_samples_take(&transfer->samples, transfer->directions[name].streams[i].fd, i,
                                 now - transfer->start_ns, last);
}

static void show(struct exchange *exchange, bool last) {
    const struct exchange_view *view = exchange->view;
    uint64_t since = monotonic_ns() - exchange->transfer->start_ns;
    if (!view->interval_ns)
        return;
    while (since - exchange->shown_ns >= view->interval_ns) {
        uint64_t to = exchange->shown_ns + view->interval_ns;
        if (since - to >= view->interval_ns)
            to = since - since % view->interval_ns; /* held up: one line for all */
        view->show(exchange->transfer, exchange->shown_ns, to, view->context);
        exchange->shown_ns = to;
    }
    if (last && since > exchange->shown_ns)
        view->show(exchange->transfer, exchange->shown_ns, since, view->context);
}

static void finish(struct exchange *exchange) {
    struct transfer *transfer = exchange->transfer;
    pthread_mutex_lock(&transfer->lock);
    transfer->is_over = true;
    pthread_mutex_unlock(&transfer->lock);
    sample(exchange, true);
    show(exchange, true);
    transfer->udp_drops_end = transfer_is_udp(transfer) ? host_udp_drops() : -1;
    if (exchange->is_finishing)
        pthread_join(exchange->finisher, NULL);
    else if (transfer->content.is_used && !transfer->directions[DIRECTION_FORWARD].is_sending &&
             !exchange->has_finished)
        finish_content(exchange);
}

void exchange_run(struct transfer *transfer, const struct exchange_limits *limits,
                  const struct exchange_view *view) {
    struct exchange exchange = {.transfer = transfer, .limits = limits, .view = view};
    transfer->udp_drops_begin = transfer_is_udp(transfer) ? host_udp_drops() : -1;
    transfer->link_bps = host_link_bps(&transfer->own);
    transfer->max_bytes = limits->bytes;
    transfer->start_realtime_ns = realtime_ns();
    transfer->start_ns = monotonic_ns();
    exchange.last_heard_ns = exchange.last_sent_ns = exchange.sampled_ns = transfer->start_ns;
    for (unsigned name = 0; name < DIRECTIONS; name++)
        if (transfer->directions[name].is_active && !direction_start(&transfer->directions[name]))
            drop_peer(&exchange);
    while (!is_over(&exchange)) {
        wait_for_lines(&exchange);
        check_content(&exchange);
        handle_stop(&exchange);
        check_time_limit(&exchange);
        sample(&exchange, false);
        for (unsigned name = 0; name < DIRECTIONS; name++)
            finish_direction(&exchange, &transfer->directions[name]);
        keep_control_alive(&exchange);
        show(&exchange, false);
    }
    finish(&exchange);
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
    signal(SIGPIPE, SIG_IGN);
}
