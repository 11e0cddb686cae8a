/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the transfers that senders ask for. Each session has a thread: it prepares sockets and the
 * output file, answers "ready", waits START_NS for "start", runs the exchange and prints the
 * report. There are twice as many slots as --parallel allows, because a sender may ask for its next
 * transfer while the report of the last one is still printed. A session's own thread is the only
 * one that uses its transfer, except for stream_accept(), which takes the transfer's lock.
 *
 * The listener's thread owns the set and its counters. It changes states from FREE to RUNNING, and
 * from FINISHED to FREE after the join; a session's thread changes its own from RUNNING to FINISHED
 * and nothing else. Bounds against senders are --parallel, --tests, --max-streams, --max-bytes,
 * --max-time, --min-rate, --per-address, --quota and START_NS; a plan is checked before a thread is
 * started for it. */
#include "receive/session_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/log.h"
#include "session/exchange_lines.h"
#include "stream/stream.h"

#define START_NS (5 * NS_PER_S)    /* from "ready" to the sender's "start" */
#define PIECE_NS (100 * NS_PER_MS) /* of that wait, until is_late is read again */
#define NO_TEST  "the receiver ends: no test began in time (--accept-timeout)"

bool session_set_begin(struct session_set *set, const struct receive_options *options) {
    set->options = options;
    set->quota = options->quota;
    set->count = 2 * options->parallel;
    set->list = calloc(set->count, sizeof *set->list);
    set->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return set->list && set->wake >= 0;
}

void session_set_end(struct session_set *set) {
    close(set->wake);
    free(set->list);
    free(set->quota.list);
}

/* Opens the output file, and binds and announces the UDP ports. If it returns false, the sender
 * gets `error` as a refusal instead of "ready". */
static bool prepare(struct session *session, char error[ERROR_SIZE]) {
    struct transfer *transfer = &session->transfer;
    const struct content_target *target = &session->set->options->target;
    if (transfer->plan.content &&
        !content_receive(&transfer->content, target, transfer->plan.file_name,
                         (uint32_t)transfer->plan.run, error, ERROR_SIZE))
        return false;
    return exchange_bind_udp(transfer, DIRECTION_FORWARD, error);
}

/* Waits for a line. Returns CONTROL_INCOMPLETE if there is none before the deadline, or if this
 * receiver ends. */
static enum control_result await_line(struct session *session, char line[LINE_SIZE],
                                      uint64_t deadline) {
    enum control_result result = CONTROL_INCOMPLETE;
    uint64_t now = monotonic_ns();
    for (; result == CONTROL_INCOMPLETE && now < deadline && !exchange_interrupted &&
           !session->set->is_late;
         now = monotonic_ns())
        result = control_wait(&session->transfer.control, line,
                              deadline - now < PIECE_NS ? deadline : now + PIECE_NS);
    return result;
}

/* Reads lines until "start"; before it, the sender may announce its own UDP ports and the lines of
 * a pattern, each of which renews the deadline, because the path may be slow. START_NS bounds a
 * sender that takes a slot and stays silent, LINES_NS one that is too slow. */
static bool await_start(struct session *session, char error[ERROR_SIZE]) {
    struct transfer *transfer = &session->transfer;
    uint64_t deadline = monotonic_ns() + START_NS, last = deadline + LINES_NS;
    char line[LINE_SIZE];
    while (await_line(session, line, deadline < last ? deadline : last) == CONTROL_LINE) {
        const char *wrong = "expected a start";
        if (line_is(line, "port") || line_is(line, "lines") || line_is(line, "clock") ||
            line_is(line, "offset"))
            wrong = exchange_take_line(transfer, line);
        else if (!strcmp(line, "start") && transfer_plan_has_lines(&transfer->plan))
            return true;
        else if (!strcmp(line, "start"))
            wrong = "expected all lines of the pattern before the start";
        if (wrong) {
            snprintf(error, ERROR_SIZE, "%s", wrong);
            return false;
        }
        if (line_is(line, "lines"))
            deadline = (uint64_t)monotonic_ns() + START_NS;
    }
    snprintf(error, ERROR_SIZE, "%s",
             session->set->is_late ? NO_TEST : "the sender asked for a test and did not start it");
    return false;
}

/* Reports go to the sender over the control connection, and to this end's output, one at a time. If
 * a transfer fails before "start", it is refused and has no report; after it, there is always one.
 */
static void run(struct session *session) {
    struct transfer *transfer = &session->transfer;
    const struct exchange_options *options = &session->set->options->exchange;
    char error[ERROR_SIZE] = "the sender is gone";
    if (!prepare(session, error)) {
        handshake_refuse(&transfer->control, false, error);
    } else if (!control_send(&transfer->control, "ready") || !await_start(session, error) ||
               !exchange_connect_udp(transfer, DIRECTION_REVERSE, error)) {
        handshake_refuse(&transfer->control, false, error);
        log_warning("a test did not begin: %s", error);
    } else {
        session->has_begun = true;
        exchange_run(transfer, options);
        session->is_unwritten = !report_transfer(transfer, &options->style);
    }
}

/* Wakes the listener, which joins this thread. */
static void *session_main(void *context) {
    struct session *session = context;
    uint64_t one = 1;
    run(session);
    session->state = SESSION_FINISHED;
    if (write(session->set->wake, &one, sizeof one) < 0)
        return NULL; /* the counter is at its maximum, so poll() reports it already */
    return NULL;
}

bool session_set_is_busy(const struct session_set *set) {
    for (uint64_t i = 0; i < set->count; i++)
        if (set->list[i].state != SESSION_FREE && set->list[i].has_begun)
            return true;
    return false;
}

void session_set_join_finished(struct session_set *set) {
    for (uint64_t i = 0; i < set->count; i++) {
        struct session *session = &set->list[i];
        struct transfer *transfer = &session->transfer;
        if (session->state != SESSION_FINISHED)
            continue;
        pthread_join(session->thread, NULL);
        bool has_run = session->has_begun;
        set->begun += has_run;
        set->is_stopped |= has_run && transfer->plan.stop_receiver;
        set->unwritten += session->is_unwritten;
        set->cut_short += has_run && !transfer_is_complete(transfer);
        set->running--;
        quota_return(&set->quota, &transfer->peer, session->granted, transfer->bytes_moved);
        close(transfer->control.fd);
        transfer_end(transfer);
        session->state = SESSION_FREE;
    }
}

/* For its sender, a transfer ends with the last report line, before this end prints its report. */
static bool is_under_way(const struct session *session) {
    return session->state == SESSION_RUNNING && !session->transfer.has_reported;
}

/* Returns the running session with this run number whose sender is at the address `peer`. The
 * address must match too, so that another host cannot join a transfer by guessing its number. */
static struct session *find(struct session_set *set, uint64_t run, const union endpoint *peer) {
    for (uint64_t i = 0; i < set->count; i++)
        if (is_under_way(&set->list[i]) && set->list[i].transfer.plan.run == run &&
            endpoint_same_host(&set->list[i].transfer.peer, peer))
            return &set->list[i];
    return NULL;
}

/* Returns a free slot, or NULL if --parallel transfers are under way. */
static struct session *find_free(struct session_set *set) {
    struct session *free_slot = NULL;
    uint64_t under_way = 0;
    for (uint64_t i = 0; i < set->count; i++) {
        under_way += is_under_way(&set->list[i]);
        if (set->list[i].state == SESSION_FREE)
            free_slot = &set->list[i];
    }
    return under_way < set->options->parallel ? free_slot : NULL;
}

/* Returns the running transfers of the peer's address: of IPv6, of the network of 64 bits, because
 * a host has that many addresses. */
static uint64_t count_of_address(const struct session_set *set, const union endpoint *peer) {
    uint64_t found = 0;
    for (uint64_t i = 0; i < set->count; i++) {
        const union endpoint *of = &set->list[i].transfer.peer;
        if (is_under_way(&set->list[i]) && of->address.sa_family == peer->address.sa_family)
            found += peer->address.sa_family == AF_INET6
                         ? !memcmp(&of->ipv6.sin6_addr, &peer->ipv6.sin6_addr, 8)
                         : endpoint_same_host(of, peer);
    }
    return found;
}

/* Refuses a plan that exceeds --max-streams, --max-bytes or --max-time. Returns NULL, or text that
 * is valid until the next call. Limits are divided instead of multiplying figures of
 * the plan, because a product could wrap. */
static const char *check_limits(const struct receive_options *options,
                                const struct transfer_plan *plan) {
    static char error[160];
    uint64_t max_bytes = options->exchange.max_bytes, max_ns = options->exchange.max_ns;
    uint64_t bytes = transfer_plan_bytes(plan), ns = transfer_plan_duration_ns(plan);
    double rate = transfer_plan_rate_bps(plan), max_rate = options->exchange.max_bps;
    if (max_rate > 0 && (rate <= 0 || rate > max_rate))
        snprintf(error, sizeof error, "expected a --rate of at most %.12g bit/s (--max-rate)",
                 max_rate / (double)plan->streams);
    else if (options->exchange.min_bps > 0 && ((rate > 0 && rate < options->exchange.min_bps) ||
                                               plan->start_offset_ns > RATE_FLOOR_NS))
        snprintf(error, sizeof error,
                 "expected at least %.12g bit/s from the first minute on "
                 "(--min-rate)",
                 options->exchange.min_bps);
    else if (plan->streams > options->max_streams)
        snprintf(error, sizeof error, "at most %llu streams (--max-streams)",
                 (unsigned long long)options->max_streams);
    else if (bytes > max_bytes / plan->streams || (!plan->content && plan->max_size > max_bytes))
        snprintf(error, sizeof error, "at most %llu bytes in a test (--max-bytes)",
                 (unsigned long long)max_bytes);
    else if (ns > max_ns || plan->start_offset_ns > max_ns ||
             plan->stagger_ns > max_ns / plan->streams)
        snprintf(error, sizeof error, "at most %.12g s (--max-time)", (double)max_ns / 1e9);
    else
        return NULL;
    return error;
}

/* Returns the bytes after which a test is stopped. A path may duplicate datagrams: they count, but
 * a few must not stop a test that keeps its plan. */
static uint64_t most_bytes(const struct session *session, const struct transfer_plan *plan) {
    uint64_t most = session->set->options->exchange.max_bytes, granted = session->granted;
    if (plan->protocol == PROTOCOL_UDP)
        granted += granted / 8;
    return granted && granted < most ? granted : most;
}

/* Starts the session's thread. If that fails, the caller keeps the plan. The receiver's --idle
 * takes precedence over the sender's; its --buffer applies only if the sender asks for no size. */
static const char *start_thread(struct session *session, const struct connection *connection,
                                struct transfer_plan *plan) {
    struct transfer *transfer = &session->transfer;
    const struct receive_options *options = session->set->options;
    socklen_t size = sizeof transfer->own;
    memset(transfer, 0, sizeof *transfer);
    session->has_begun = false;
    transfer->control = connection->control;
    transfer->keys = connection->keys;
    transfer->plan = *plan;
    transfer->local = options->local;
    transfer->peer = connection->peer;
    transfer->max_bytes = most_bytes(session, plan);
    getsockname(transfer->control.fd, &transfer->own.address, &size);
    if (options->idle_ns)
        transfer->plan.idle_ns = options->idle_ns;
    if (!transfer->plan.socket.buffer)
        transfer->plan.socket.buffer = options->buffer;
    if (transfer_begin(transfer)) {
        session->state = SESSION_RUNNING;
        if (!pthread_create(&session->thread, NULL, session_main, session))
            return NULL;
        session->state = SESSION_FREE;
    }
    transfer->plan.sizes = NULL;
    transfer_end(transfer);
    return "the receiver is out of memory or threads";
}

/* Returns the bytes of all streams in all directions; 0 if the plan does not bound them: a rate
 * does only if gaps are constant, and turns have responses of any size. */
static uint64_t plan_bytes(const struct transfer_plan *plan) {
    double each = (double)transfer_plan_bytes(plan), rate = transfer_plan_rate_bps(plan);
    double seconds = (double)plan->time_ns / 1e9, all = each * (double)plan->streams;
    if (plan->turns)
        return 0;
    if (each > 0)
        all += plan->bytes ? (double)plan->max_size * (double)plan->streams : 0;
    else if (seconds > 0 && plan->pacing <= PACING_CONSTANT)
        all = rate / 8 * seconds + (rate > 0 ? (double)plan->max_size * (double)plan->streams : 0);
    all *= plan->direction == DIRECTION_BOTH ? 2 : 1;
    return all < (double)INT64_MAX ? (uint64_t)all : INT64_MAX;
}

/* Takes the bytes of the plan out of the quota of the sender's address, if there is one. Returns
 * NULL, or the reason for a refusal, which is valid until the next call. */
static const char *grant(struct session *session, const struct connection *connection,
                         const struct transfer_plan *plan) {
    static char error[ERROR_SIZE];
    struct quota *quota = &session->set->quota;
    session->granted = 0;
    if (!quota->bytes)
        return NULL;
    session->granted =
        quota_grant(quota, &connection->peer, plan_bytes(plan), monotonic_ns(), error);
    return session->granted ? NULL : error;
}

const char *session_set_start(struct session_set *set, const struct connection *connection,
                              struct transfer_plan *plan, bool *busy) {
    const char *error = plan->authentic && !connection->keys.is_known
                            ? "authenticated blocks need a --key at both ends"
                        : plan->stop_receiver && !set->options->lets_stop
                            ? "senders may not stop this receiver, which has no --let-stop"
                            : check_limits(set->options, plan);
    struct session *session = find_free(set);
    *busy = !error;
    if (error)
        return error;
    if (set->is_stopped)
        return "the receiver ends: a sender has stopped it";
    if (set->is_late)
        return NO_TEST;
    if (set->options->tests && set->begun + set->running >= set->options->tests)
        return "the receiver has run its last test";
    if (!session)
        return "another test is running";
    if (count_of_address(set, &connection->peer) >= set->options->per_address)
        return "another test of this address is running (--per-address)";
    if (find(set, plan->run, &connection->peer))
        return "a test with this run number is running";
    session->set = set;
    error = grant(session, connection, plan);
    if (error)
        *busy = false;
    if (!error && (error = start_thread(session, connection, plan)))
        quota_return(&set->quota, &connection->peer, session->granted, 0);
    set->running += !error;
    return error;
}

/* A session that finishes meanwhile refuses the connection (stream_accept()); its slot stays in use
 * until this thread has joined it. */
bool session_set_accept(struct session_set *set, enum direction_name name, uint64_t run,
                        uint64_t stream, const struct connection *connection) {
    struct session *session = find(set, run, &connection->peer);
    struct direction *direction = session ? &session->transfer.directions[name] : NULL;
    return direction && direction->is_active && stream < direction->count &&
           !transfer_is_udp(&session->transfer) &&
           stream_accept(&direction->streams[stream], &connection->control);
}
