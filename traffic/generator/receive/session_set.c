/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/session_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "control/handshake.h"
#include "report/report.h"
#include "report/totals.h"
#include "session/exchange.h"
#include "session/exchange_lines.h"
#include "stream/stream.h"
#include "transfer/clock.h"
#include "transfer/program_name.h"

#define START_NS (5 * NS_PER_S) /* that the sender has to start after the ready */

bool session_set_begin(struct session_set *set, const struct receive_options *options) {
    set->options = options;
    set->count = 2 * options->parallel; /* half of them may still print their reports */
    set->list = calloc(set->count, sizeof *set->list);
    set->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&set->lock, NULL);
    pthread_mutex_init(&set->print, NULL);
    return set->list && set->wake >= 0;
}

static void refuse(struct control *control, bool busy, const char *why) {
    struct refusal refusal = {.is_busy = busy};
    char line[LINE_MOST];
    snprintf(refusal.text, sizeof refusal.text, "%.199s", why);
    refusal_write(&refusal, line);
    control_say(control, "%s", line);
}

static bool prepare(struct session *session, char why[WHY_ROOM]) {
    struct test *test = &session->test;
    const struct receive_options *options = session->set->options;
    struct content_target target = {options->output_dir, options->to_stdout, options->overwrite};
    struct way *way = &test->ways[WAY_FORWARD];
    int ports[STREAMS_MOST];
    if (test->plan.content && !content_receive(&test->content, &target, test->plan.file_name,
                                               (uint32_t)test->plan.run, why, WHY_ROOM))
        return false;
    for (uint32_t i = 0; test_is_udp(test) && i < way->count; i++)
        if ((ports[i] = stream_bind(&way->streams[i], why)) < 0)
            return false;
    return !test_is_udp(test) || exchange_say_ports(test, way, ports);
}

/* Until the sender says so; it may tell its own ports before. */
static bool await_start(struct test *test, char why[WHY_ROOM]) {
    uint64_t deadline = monotonic_ns() + START_NS;
    char line[LINE_MOST];
    while (control_wait(&test->control, line, deadline) == CONTROL_LINE) {
        if (!strcmp(line, "start"))
            return true;
        const char *wrong = line_is(line, "port") ? exchange_take_line(test, line) : "no start";
        if (wrong) {
            snprintf(why, WHY_ROOM, "%s", wrong);
            return false;
        }
    }
    snprintf(why, WHY_ROOM, "the sender asked for a test and did not start it");
    return false;
}

static bool aim(struct test *test, char why[WHY_ROOM]) {
    struct way *way = &test->ways[WAY_REVERSE];
    for (uint32_t i = 0; test_is_udp(test) && i < way->count; i++)
        if (stream_aim(&way->streams[i], why))
            return false;
    return true;
}

static void show_interval(struct test *test, uint64_t from_ns, uint64_t to_ns, void *context) {
    struct session *session = context;
    const struct receive_options *options = session->set->options;
    struct report_style style = {.role = "receive",
                                 .json = options->json,
                                 .format = options->format,
                                 .out = options->to_stdout ? stderr : stdout};
    pthread_mutex_lock(&session->set->print);
    report_interval(test, from_ns, to_ns, &style);
    pthread_mutex_unlock(&session->set->print);
}

static void report(struct session *session) {
    const struct receive_options *options = session->set->options;
    struct report_style style = {.role = "receive",
                                 .json = options->json,
                                 .quiet = options->quiet,
                                 .format = options->format,
                                 .out = options->to_stdout ? stderr : stdout};
    pthread_mutex_lock(&session->set->print);
    session->set->untold += !report_test(&session->test, &style);
    pthread_mutex_unlock(&session->set->print);
}

static void run(struct session *session) {
    struct test *test = &session->test;
    const struct receive_options *options = session->set->options;
    struct exchange_limits limits = {options->max_bytes, options->max_ns};
    struct exchange_view view = {options->interval_ns, show_interval, session};
    char why[WHY_ROOM] = "the sender is gone";
    if (!prepare(session, why)) {
        refuse(&test->control, false, why);
    } else if (!control_say(&test->control, "ready") || !await_start(test, why) ||
               !aim(test, why)) {
        refuse(&test->control, false, why);
        program_say("a test did not begin: %s", why);
    } else {
        exchange_run(test, &limits, &view);
        report(session);
    }
}

static void *session_main(void *context) {
    struct session *session = context;
    struct session_set *set = session->set;
    uint64_t one = 1;
    run(session);
    pthread_mutex_lock(&set->lock);
    bool has_run = session->test.start_ns > 0;
    set->begun += has_run;
    set->cut_short += has_run && !test_is_complete(&session->test);
    session->state = SESSION_FINISHED;
    pthread_mutex_unlock(&set->lock);
    if (write(set->wake, &one, sizeof one) < 0)
        return NULL; /* the counter is full: it wakes already */
    return NULL;
}

void session_set_tidy(struct session_set *set) {
    for (uint64_t i = 0; i < set->count; i++) {
        struct session *session = &set->list[i];
        pthread_mutex_lock(&set->lock);
        bool finished = session->state == SESSION_FINISHED;
        pthread_mutex_unlock(&set->lock);
        if (!finished)
            continue;
        pthread_join(session->thread, NULL);
        pthread_mutex_lock(&set->lock);
        close(session->test.control.fd);
        test_end(&session->test);
        session->state = SESSION_FREE;
        set->running--;
        pthread_mutex_unlock(&set->lock);
    }
}

void session_set_end(struct session_set *set) {
    close(set->wake);
    free(set->list);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->print);
}

/* A test is over for its sender before its report is printed here. */
static bool is_under_way(const struct session *session) {
    return session->state == SESSION_RUNNING && !session->test.has_reported;
}

static struct session *find(struct session_set *set, uint64_t run, const union endpoint *peer) {
    for (uint64_t i = 0; i < set->count; i++)
        if (is_under_way(&set->list[i]) && set->list[i].test.plan.run == run &&
            endpoint_same_host(&set->list[i].test.peer, peer))
            return &set->list[i];
    return NULL;
}

/* A free slot, unless as many tests are under way as may be. */
static struct session *find_free(struct session_set *set) {
    struct session *free_one = NULL;
    uint64_t under_way = 0;
    for (uint64_t i = 0; i < set->count; i++) {
        under_way += is_under_way(&set->list[i]);
        if (set->list[i].state == SESSION_FREE)
            free_one = &set->list[i];
    }
    return under_way < set->options->parallel ? free_one : NULL;
}

static const char *check_limits(const struct receive_options *options,
                                const struct test_plan *plan) {
    static _Thread_local char why[160];
    uint64_t bytes = test_plan_bytes(plan), ns = test_plan_duration_ns(plan);
    if (plan->streams > options->streams_most)
        snprintf(why, sizeof why, "at most %llu streams (--max-streams)",
                 (unsigned long long)options->streams_most);
    else if (bytes > options->max_bytes / plan->streams)
        snprintf(why, sizeof why, "at most %llu bytes in a test (--max-bytes)",
                 (unsigned long long)options->max_bytes);
    else if (ns > options->max_ns || plan->start_offset_ns > options->max_ns ||
             plan->stagger_ns > options->max_ns / plan->streams)
        snprintf(why, sizeof why, "at most %.12g s (--max-time)", (double)options->max_ns / 1e9);
    else
        return NULL;
    return why;
}

static const char *fill_slot(struct session *session, const struct control *control,
                             struct test_plan *plan, const union endpoint *peer) {
    struct test *test = &session->test;
    const struct receive_options *options = session->set->options;
    socklen_t size = sizeof test->own;
    memset(test, 0, sizeof *test);
    test->control = *control;
    test->plan = *plan;
    test->local = options->local;
    test->peer = *peer;
    getsockname(control->fd, &test->own.address, &size);
    if (options->idle_ns)
        test->plan.idle_ns = options->idle_ns;
    if (!test->plan.socket.buffer)
        test->plan.socket.buffer = options->buffer;
    if (test_begin(test)) {
        session->state = SESSION_RUNNING;
        if (!pthread_create(&session->thread, NULL, session_main, session))
            return NULL;
        session->state = SESSION_FREE;
    }
    test->plan.sizes = NULL; /* stays with the caller */
    test_end(test);
    return "the receiver is out of memory or threads";
}

const char *session_begin(struct session_set *set, const struct control *control,
                          struct test_plan *plan, const union endpoint *peer, bool *busy) {
    const char *why = check_limits(set->options, plan);
    *busy = !why;
    if (why)
        return why;
    pthread_mutex_lock(&set->lock);
    struct session *session = find_free(set);
    if (set->options->tests && set->begun + set->running >= set->options->tests)
        why = "the receiver has run its tests, and ends";
    else if (!session)
        why = "another test is running";
    else if (find(set, plan->run, peer))
        why = "a test with this run number is running";
    if (!why) {
        session->set = set;
        why = fill_slot(session, control, plan, peer);
        set->running += !why;
    }
    pthread_mutex_unlock(&set->lock);
    return why;
}

bool session_hand_over(struct session_set *set, enum way_name name, uint64_t run, uint64_t stream,
                       const union endpoint *peer, int fd, const uint8_t *head, size_t count) {
    pthread_mutex_lock(&set->lock);
    struct session *session = find(set, run, peer);
    struct way *way = session ? &session->test.ways[name] : NULL;
    bool wanted = way && way->is_active && stream < way->count && !test_is_udp(&session->test) &&
                  stream_hand_over(&way->streams[stream], fd, head, count);
    pthread_mutex_unlock(&set->lock);
    return wanted;
}
