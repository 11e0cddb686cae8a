/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp -r: one transfer, one after the other (-c), or several at the same time (-R).
 *
 * A transfer over UDP begins with its first datagram and is told by its sender's address. A mark
 * ends it once data have come; before, it is a start, or the rest of the marks of the last one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4, ppoll */
#endif
#include "ttcp/ttcp_transfer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS_MOST 64
#define READS_AT_ONCE 64 /* of one socket before the others' turn */

struct session {
    bool open;
    int socket; /* of TCP */
    uint64_t heard_ns;
    struct ttcp_transfer transfer;
};

struct receiver {
    const struct ttcp_options *options;
    int socket; /* where connections, or datagrams, come */
    uint8_t *data;
    struct ttcp_output output;
    struct session sessions[SESSIONS_MOST];
    unsigned most;
    uint64_t finished, open;
    bool cut_short, done;
    volatile unsigned touched; /* so that -T really reads */
};

static struct session *open_session(struct receiver *receiver, const struct sockaddr_storage *peer,
                                    socklen_t length) {
    for (unsigned i = 0; i < receiver->most; i++) {
        struct session *session = &receiver->sessions[i];
        if (session->open)
            continue;
        *session = (struct session){.open = true, .socket = -1};
        session->transfer.peer = *peer;
        session->transfer.peer_length = length;
        session->heard_ns = ttcp_now(CLOCK_MONOTONIC);
        ttcp_start_clock(&session->transfer);
        receiver->open++;
        return session;
    }
    return NULL;
}

static void close_session(struct receiver *receiver, struct session *session, const char *ended_by,
                          bool complete) {
    bool again = receiver->options->continuous || receiver->options->concurrent;
    if (session->socket >= 0)
        close(session->socket);
    session->open = false;
    receiver->open--;
    /* Marks alone, left of the transfer before. */
    if (again && receiver->options->udp && !session->transfer.bytes)
        return;
    if (!ttcp_output_flush(&receiver->output))
        ended_by = "output closed", complete = false;
    ttcp_end(&session->transfer, ended_by, complete);
    ttcp_report(receiver->options, &session->transfer);
    receiver->finished++;
    receiver->cut_short |= !complete;
    receiver->done |= !again;
}

static void touch_all(struct receiver *receiver, const uint8_t *data, size_t count) {
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += data[i];
    receiver->touched += sum;
}

/* Bytes that came. False when they have nowhere to go. */
static bool take_data(struct receiver *receiver, struct session *session, size_t count) {
    struct ttcp_transfer *transfer = &session->transfer;
    transfer->bytes += count;
    transfer->calls++;
    ttcp_mark_time(transfer);
    session->heard_ns = transfer->end_ns;
    if (receiver->options->touch)
        touch_all(receiver, receiver->data, count);
    return receiver->options->pattern ||
           ttcp_output_write(&receiver->output, receiver->data, count);
}

/* --- TCP */

static void accept_connection(struct receiver *receiver) {
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    int made = accept4(receiver->socket, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
    if (made < 0)
        return;
    struct session *session = open_session(receiver, &peer, length);
    if (!session || !ttcp_set_connection(made, receiver->options)) {
        close(made);
        return;
    }
    session->socket = made;
}

static void read_stream(struct receiver *receiver, struct session *session) {
    for (unsigned i = 0; i < READS_AT_ONCE && session->open; i++) {
        ssize_t got = recv(session->socket, receiver->data, receiver->options->length, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got < 0)
            close_session(receiver, session, "peer gone", false);
        else if (got == 0)
            close_session(receiver, session, "close", true);
        else if (!take_data(receiver, session, (size_t)got))
            close_session(receiver, session, "output closed", false);
    }
}

/* --- UDP */

static bool same_peer(const struct ttcp_transfer *transfer, const struct sockaddr_storage *peer,
                      socklen_t length) {
    return transfer->peer_length == length && !memcmp(&transfer->peer, peer, length);
}

/* A sender that has sent marks alone gives way to another one. */
static struct session *take_over(struct receiver *receiver, const struct sockaddr_storage *peer,
                                 socklen_t length) {
    for (unsigned i = 0; i < receiver->most; i++) {
        struct session *session = &receiver->sessions[i];
        if (session->transfer.bytes)
            continue;
        receiver->open -= session->open;
        session->open = false;
        return open_session(receiver, peer, length);
    }
    return NULL;
}

static struct session *session_of(struct receiver *receiver, const struct sockaddr_storage *peer,
                                  socklen_t length) {
    for (unsigned i = 0; i < receiver->most; i++)
        if (receiver->sessions[i].open && same_peer(&receiver->sessions[i].transfer, peer, length))
            return &receiver->sessions[i];
    struct session *made = open_session(receiver, peer, length);
    return made ? made : take_over(receiver, peer, length);
}

static void take_mark(struct receiver *receiver, struct session *session) {
    session->heard_ns = ttcp_now(CLOCK_MONOTONIC);
    if (session->transfer.bytes)
        close_session(receiver, session, "end mark", true);
    else
        ttcp_start_clock(&session->transfer);
}

static void take_datagram(struct receiver *receiver, struct session *session, size_t size) {
    size_t held = size;
    if (size > receiver->options->length) {
        session->transfer.cut_datagrams++;
        held = receiver->options->length;
    }
    if (!take_data(receiver, session, held))
        close_session(receiver, session, "output closed", false);
}

static void read_datagrams(struct receiver *receiver) {
    for (unsigned i = 0; i < READS_AT_ONCE && !receiver->done; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t length = sizeof peer;
        ssize_t got = recvfrom(receiver->socket, receiver->data, receiver->options->length,
                               MSG_TRUNC, (struct sockaddr *)&peer, &length);
        if (got < 0)
            return;
        struct session *session = session_of(receiver, &peer, length);
        if (!session) /* a stranger, while another one's transfer goes on */
            continue;
        if (got <= (ssize_t)TTCP_MARK_BYTES)
            take_mark(receiver, session);
        else
            take_datagram(receiver, session, (size_t)got);
    }
}

/* --- the loop */

static void end_silent(struct receiver *receiver) {
    uint64_t now = ttcp_now(CLOCK_MONOTONIC), idle = receiver->options->idle_ns;
    for (unsigned i = 0; i < receiver->most && idle; i++) {
        struct session *session = &receiver->sessions[i];
        if (session->open && now - session->heard_ns >= idle)
            close_session(receiver, session, "idle", false);
    }
}

/* How long until the first transfer may have been silent for too long. */
static const struct timespec *until_silent(const struct receiver *receiver,
                                           struct timespec *timeout) {
    uint64_t now = ttcp_now(CLOCK_MONOTONIC), least = UINT64_MAX;
    for (unsigned i = 0; i < receiver->most; i++) {
        const struct session *session = &receiver->sessions[i];
        uint64_t end = session->heard_ns + receiver->options->idle_ns;
        if (session->open && end < least)
            least = end;
    }
    if (!receiver->options->idle_ns || least == UINT64_MAX)
        return NULL;
    uint64_t left = least > now ? least - now : 0;
    *timeout = (struct timespec){(time_t)(left / TTCP_NS), (long)(left % TTCP_NS)};
    return timeout;
}

/* What poll() is to look at, and whose it is; the receiver's own socket is nobody's. */
static nfds_t list_sockets(struct receiver *receiver, struct pollfd *waiting,
                           struct session **whose) {
    nfds_t count = 0;
    if (receiver->options->udp || receiver->open < receiver->most) {
        whose[count] = NULL;
        waiting[count++] = (struct pollfd){.fd = receiver->socket, .events = POLLIN};
    }
    for (unsigned i = 0; i < receiver->most; i++) {
        struct session *session = &receiver->sessions[i];
        if (!session->open || session->socket < 0)
            continue;
        whose[count] = session;
        waiting[count++] = (struct pollfd){.fd = session->socket, .events = POLLIN};
    }
    return count;
}

static void serve(struct receiver *receiver, struct session *session) {
    if (session)
        read_stream(receiver, session);
    else if (receiver->options->udp)
        read_datagrams(receiver);
    else
        accept_connection(receiver);
}

static void serve_once(struct receiver *receiver, const sigset_t *while_waiting) {
    struct pollfd waiting[SESSIONS_MOST + 1];
    struct session *whose[SESSIONS_MOST + 1];
    struct timespec timeout;
    nfds_t count = list_sockets(receiver, waiting, whose);
    if (ppoll(waiting, count, until_silent(receiver, &timeout), while_waiting) > 0)
        for (nfds_t i = 0; i < count && !receiver->done; i++)
            if (waiting[i].revents)
                serve(receiver, whose[i]);
    end_silent(receiver);
}

static int exit_code(struct receiver *receiver) {
    bool stopped = receiver->open > 0 || (ttcp_stopped && !receiver->finished);
    for (unsigned i = 0; i < receiver->most; i++)
        if (receiver->sessions[i].open)
            close_session(receiver, &receiver->sessions[i], "signal", false);
    bool until_stopped = receiver->options->continuous || receiver->options->concurrent;
    if (stopped && !(until_stopped && !receiver->cut_short))
        return TTCP_INTERRUPTED;
    return receiver->cut_short ? TTCP_CUT_SHORT : TTCP_DONE;
}

/* Signals come while it waits, and then only. */
static void serve_until_done(struct receiver *receiver) {
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    while (!ttcp_stopped && !receiver->done)
        serve_once(receiver, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int ttcp_receive(const struct ttcp_options *options, uint8_t *data) {
    static struct receiver receiver; /* large for a stack */
    receiver = (struct receiver){.options = options, .data = data};
    receiver.most = options->concurrent ? SESSIONS_MOST : 1;
    receiver.output.length = options->length;
    receiver.socket = ttcp_open_at(options);
    if (receiver.socket < 0)
        return -1 - receiver.socket;
    if (options->full_blocks && !options->pattern &&
        !(receiver.output.block = malloc(options->length))) {
        ttcp_say(options, "no memory for a block of -l bytes");
        close(receiver.socket);
        return TTCP_UNREACHABLE;
    }
    ttcp_print_settings(options, data);
    serve_until_done(&receiver);
    close(receiver.socket);
    int code = exit_code(&receiver);
    free(receiver.output.block);
    return code;
}
