/* SPDX-License-Identifier: Apache-2.0 */
#include "session/exchange.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "session/exchange_lines.h"
#include "session/kernel_drops.h"
#include "session/link_rate.h"
#include "stream/stream.h"
#include "transfer/clock.h"

#define TICK_NS     (100 * NS_PER_MS)
#define PROGRESS_NS NS_PER_S
#define SETTLE_NS   (5 * NS_PER_S) /* after a stop, for the other end to say what it sent */

_Atomic int exchange_interrupted;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler writes it");

struct exchange {
    struct test *test;
    const struct exchange_limits *limits;
    const struct exchange_view *view;
    uint64_t heard_ns, said_ns, stopped_ns;
    uint64_t heard_bytes; /* of blocks */
    uint64_t sampled_ns, shown_ns;
    bool is_gone, has_said_stop;
    pthread_t finisher; /* of the file that was received */
    bool is_finishing;
    atomic_bool has_finished;
};

static bool way_is_over(const struct exchange *exchange, const struct way *way) {
    if (!way->is_active)
        return true;
    if (exchange->is_gone)
        return way->has_joined;
    return way->has_said && (!way->is_sending || way->peer_is_done);
}

static bool is_over(const struct exchange *exchange) {
    struct way *ways = exchange->test->ways;
    return way_is_over(exchange, &ways[WAY_FORWARD]) && way_is_over(exchange, &ways[WAY_REVERSE]);
}

/* Nobody to talk to: what is here is all there will be. */
static void lose_peer(struct exchange *exchange) {
    struct test *test = exchange->test;
    exchange->is_gone = true;
    test_stop(test, "peer gone", false);
    for (unsigned name = 0; name < WAYS; name++)
        test->ways[name].stop = true;
    pthread_mutex_lock(&test->lock);
    pthread_cond_broadcast(&test->arrived);
    pthread_mutex_unlock(&test->lock);
}

static void hear(struct exchange *exchange) {
    struct test *test = exchange->test;
    char line[LINE_MOST];
    enum control_answer answer;
    /* When all is said, the other end may hang up. */
    while (!exchange->is_gone && !is_over(exchange) &&
           (answer = control_take(&test->control, line)) != CONTROL_NOTHING) {
        const char *why = answer == CONTROL_LINE ? exchange_take_line(test, line) : NULL;
        exchange->heard_ns = monotonic_ns();
        if (why)
            test_fail(test, "the other end said something wrong: %s", why);
        if (answer != CONTROL_LINE || why)
            lose_peer(exchange);
    }
}

static void wait_and_hear(struct exchange *exchange) {
    struct test *test = exchange->test;
    struct pollfd two[] = {{.fd = test->wake, .events = POLLIN},
                           {.fd = exchange->is_gone ? -1 : test->control.fd, .events = POLLIN}};
    uint64_t count;
    uint64_t interval = exchange->view->interval_ns;
    poll(two, 2, (int)((interval && interval < TICK_NS ? interval : TICK_NS) / NS_PER_MS));
    if (read(test->wake, &count, sizeof count) < 0)
        count = 0; /* no thread has ended */
    hear(exchange);
}

/* Summing up a large file and flushing it to the disk may take minutes, in which the other end
 * must hear that this one is alive: so in a thread. */
static void *finish_content(void *context) {
    struct exchange *exchange = context;
    struct test *test = exchange->test;
    uint64_t one = 1;
    content_finish_sum(&test->content);
    pthread_mutex_lock(&test->lock);
    bool complete = !test->stopped_by;
    pthread_mutex_unlock(&test->lock);
    content_settle(&test->content, complete);
    exchange->has_finished = true;
    if (write(test->wake, &one, sizeof one) < 0)
        return NULL; /* the other thread looks from time to time, too */
    return NULL;
}

/* Whether the received file has its name, or never will. */
static bool has_finished_content(struct exchange *exchange) {
    if (!exchange->test->content.is_used)
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
static void tend_content(struct exchange *exchange) {
    struct test *test = exchange->test;
    int error = test->content.is_used ? test->content.error : 0;
    if (error && !test->stopped_by)
        test_fail(test, "%.100s: %s", test->content.name, strerror(error));
}

/* The sending threads stop by themselves; the receiving ones when the other end says what it sent,
 * or after a while. */
static void tend_stop(struct exchange *exchange) {
    struct test *test = exchange->test;
    if (exchange_interrupted)
        test_stop(test, "signal", true);
    if (!test->stopped_by)
        return;
    if (!exchange->has_said_stop && !exchange->is_gone) {
        exchange->stopped_ns = monotonic_ns();
        exchange->has_said_stop = true;
        if (!exchange_say_stop(test, test->stopped_by))
            lose_peer(exchange);
    }
    if (monotonic_ns() - exchange->stopped_ns > SETTLE_NS)
        for (unsigned name = 0; name < WAYS; name++)
            test->ways[name].stop = true;
}

/* A receiver reports once it knows how much was sent, or never will, and the file is finished. */
static bool may_report(struct exchange *exchange, const struct way *way) {
    bool gives_up = exchange->stopped_ns && monotonic_ns() - exchange->stopped_ns > SETTLE_NS;
    if (way->has_said || exchange->is_gone)
        return false;
    return way->is_sending || ((way->ended || gives_up) && has_finished_content(exchange));
}

static bool has_said_all(const struct test *test) {
    for (unsigned name = 0; name < WAYS; name++)
        if (test->ways[name].is_active && !test->ways[name].has_said)
            return false;
    return true;
}

/* A way whose threads have ended says so. */
static void tend_way(struct exchange *exchange, struct way *way) {
    struct test *test = exchange->test;
    if (!way->is_active || way->running)
        return;
    if (!way->has_joined) {
        way_join(way);
        if (test->content.is_used && way->is_sending)
            content_finish_sum(&test->content);
    }
    if (!may_report(exchange, way))
        return;
    tend_content(exchange);
    tend_stop(exchange);
    way->has_said = true;
    test->has_reported = has_said_all(test);
    if (!exchange->is_gone && !exchange_say_reports(test, way))
        lose_peer(exchange);
}

static void tend_time_limit(struct exchange *exchange) {
    struct test *test = exchange->test;
    const struct test_plan *plan = &test->plan;
    uint64_t most_ns = exchange->limits->time_ns + plan->start_offset_ns +
                       plan->stagger_ns * plan->streams + SETTLE_NS;
    if (!exchange->limits->time_ns || monotonic_ns() - test->start_ns <= most_ns)
        return;
    test_stop(test, "limit", true);
    for (unsigned name = 0; name < WAYS; name++)
        test->ways[name].stop = true;
}

/* Blocks are a sign of life as good as lines, which may be stuck behind them. */
static void hear_blocks(struct exchange *exchange) {
    struct test *test = exchange->test;
    uint64_t bytes = 0;
    for (unsigned name = 0; name < WAYS; name++)
        for (uint32_t i = 0; !test->ways[name].is_sending && i < test->ways[name].count; i++)
            bytes += test->ways[name].streams[i].live.bytes;
    if (bytes != exchange->heard_bytes)
        exchange->heard_ns = monotonic_ns();
    exchange->heard_bytes = bytes;
}

static void tend_control(struct exchange *exchange) {
    if (exchange->is_gone)
        return;
    hear_blocks(exchange);
    uint64_t now = monotonic_ns();
    if (now - exchange->heard_ns > CONTROL_SILENCE_NS) {
        lose_peer(exchange);
    } else if (now - exchange->said_ns > PROGRESS_NS) {
        exchange->said_ns = now;
        if (!control_say(&exchange->test->control, "progress"))
            lose_peer(exchange);
    }
}

static void sample(struct exchange *exchange, bool last) {
    struct test *test = exchange->test;
    uint64_t now = monotonic_ns(),
             every = test->plan.interval_ns ? test->plan.interval_ns : NS_PER_S;
    if (test_is_udp(test) || (!last && now - exchange->sampled_ns < every))
        return;
    exchange->sampled_ns = now;
    tcp_samples_begin_round(&test->samples);
    for (unsigned name = 0; name < WAYS; name++)
        for (uint32_t i = 0; test->ways[name].is_sending && i < test->ways[name].count; i++)
            if (test->ways[name].streams[i].fd >= 0)
                tcp_samples_take(&test->samples, test->ways[name].streams[i].fd, i,
                                 now - test->start_ns, last);
}

static void show(struct exchange *exchange, bool last) {
    const struct exchange_view *view = exchange->view;
    uint64_t since = monotonic_ns() - exchange->test->start_ns;
    if (!view->interval_ns)
        return;
    while (since - exchange->shown_ns >= view->interval_ns) {
        uint64_t to = exchange->shown_ns + view->interval_ns;
        if (since - to >= view->interval_ns)
            to = since - since % view->interval_ns; /* held up: one line for all */
        view->show(exchange->test, exchange->shown_ns, to, view->context);
        exchange->shown_ns = to;
    }
    if (last && since > exchange->shown_ns)
        view->show(exchange->test, exchange->shown_ns, since, view->context);
}

static void finish(struct exchange *exchange) {
    struct test *test = exchange->test;
    pthread_mutex_lock(&test->lock);
    test->is_over = true;
    pthread_mutex_unlock(&test->lock);
    sample(exchange, true);
    show(exchange, true);
    test->udp_drops_end = test_is_udp(test) ? kernel_udp_drops() : -1;
    if (exchange->is_finishing)
        pthread_join(exchange->finisher, NULL);
    else if (test->content.is_used && !test->ways[WAY_FORWARD].is_sending &&
             !exchange->has_finished)
        finish_content(exchange);
}

void exchange_run(struct test *test, const struct exchange_limits *limits,
                  const struct exchange_view *view) {
    struct exchange exchange = {.test = test, .limits = limits, .view = view};
    test->udp_drops_begin = test_is_udp(test) ? kernel_udp_drops() : -1;
    test->link_bps = link_rate_bps(&test->own);
    test->bytes_most = limits->bytes;
    test->start_realtime_ns = realtime_ns();
    test->start_ns = monotonic_ns();
    exchange.heard_ns = exchange.said_ns = exchange.sampled_ns = test->start_ns;
    for (unsigned name = 0; name < WAYS; name++)
        if (test->ways[name].is_active && !way_start(&test->ways[name]))
            lose_peer(&exchange);
    while (!is_over(&exchange)) {
        wait_and_hear(&exchange);
        tend_content(&exchange);
        tend_stop(&exchange);
        tend_time_limit(&exchange);
        sample(&exchange, false);
        for (unsigned name = 0; name < WAYS; name++)
            tend_way(&exchange, &test->ways[name]);
        tend_control(&exchange);
        show(&exchange, false);
    }
    finish(&exchange);
}
