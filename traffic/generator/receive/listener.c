/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of connections. All come to one port, so their first bytes decide: the header of a
 * block is a data connection of a transfer that this end receives; the line "data" one of a
 * transfer that it sends; "wiretale/1" is a control connection, which passes the stages hello,
 * proof (if the receiver has a key) and test. Nothing is waited for: poll() reports the sockets,
 * and each is read as far as its data reach. No more than a block's header is read before the kind
 * is known, because the bytes that follow belong to the stream's thread.
 *
 * Bounds against hostile peers: MAX_PENDING connections or half of this process's descriptors,
 * MAX_PENDING_NS for each, LINE_SIZE bytes of memory for each.
 *
 * The main thread alone runs this file; sessions run in others and announce their end through
 * `wake`. A control connection moves to its session as a copy of struct control, with the bytes
 * that were read after the line. */
#include "receive/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stream/block_fast.h"

#define RESERVED_FILES 64  /* descriptors for sessions, files and reports */
#define MAX_ACCEPTS    256 /* per poll, so that pending connections are served too */

enum pending_stage { STAGE_FIRST_BYTES, STAGE_HELLO, STAGE_PROOF, STAGE_TEST };
enum pending_result {
    KEEP,    /* more data are needed */
    CLOSE,   /* the listener must close the connection */
    ACCEPTED /* a session owns the connection */
};

struct pending_connection {
    struct listener *listener;
    struct connection connection;
    uint64_t accepted_ns; /* monotonic */
    enum pending_stage stage;
    char own_nonce[NONCE_HEX_SIZE], peer_nonce[NONCE_HEX_SIZE];
};

/* Sends the reason. The line fits into the socket's empty buffer, so the listener does not wait for
 * a peer that reads nothing. */
static enum pending_result refuse(struct pending_connection *pending, bool busy,
                                  const char *error) {
    handshake_refuse(&pending->connection.control, busy, error);
    return CLOSE;
}

/* Reads at most a header. If it begins with a magic, the rest of the header must be there before a
 * session can be found by run and stream; four bytes decide. */
static enum pending_result read_first_bytes(struct pending_connection *pending) {
    struct control *control = &pending->connection.control;
    const uint8_t *head = (const uint8_t *)control->in;
    struct block_header header;
    ssize_t got = recv(control->fd, control->in + control->have, BLOCK_HEADER_BYTES - control->have,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return KEEP;
    if (got <= 0)
        return CLOSE;
    control->have += (size_t)got;
    size_t compared = control->have < 4 ? control->have : 4;
    if (memcmp(head, "WTB1", compared) && memcmp(head, "WTC1", compared)) {
        pending->stage = STAGE_HELLO;
        return KEEP;
    }
    if (control->have < BLOCK_HEADER_BYTES)
        return KEEP;
    block_get_header(head, &header);
    return session_set_accept(pending->listener->sessions, DIRECTION_FORWARD, header.run,
                              header.stream, &pending->connection)
               ? ACCEPTED
               : CLOSE;
}

/* "data run=R stream=S": the receiver is to send on this connection, so nothing may follow. */
static enum pending_result accept_data(struct pending_connection *pending, const char *line) {
    struct {
        uint64_t run, stream;
    } data = {0};
    const struct line_field fields[] = {
        {"run", 0, FIELD_NUMBER, UINT32_MAX, NULL},
        {"stream", sizeof data.run, FIELD_NUMBER, MAX_STREAMS - 1, NULL},
    };
    if (line_read(line, fields, 2, &data) || pending->connection.control.have)
        return CLOSE;
    return session_set_accept(pending->listener->sessions, DIRECTION_REVERSE, data.run, data.stream,
                              &pending->connection)
               ? ACCEPTED
               : CLOSE;
}

/* Answers with the own nonce. If the receiver has no key, the test may follow at once. */
static enum pending_result take_hello(struct pending_connection *pending, const char *line) {
    struct handshake hello;
    bool has_key = pending->listener->key != NULL;
    const char *error = handshake_read(&hello, HANDSHAKE_HELLO, line);
    if (error)
        return refuse(pending, false, error);
    if (!allowed_networks_contain(&pending->listener->sessions->options->allowed,
                                  &pending->connection.peer))
        return refuse(pending, false, "the receiver allows no tests from this address");
    strcpy(pending->peer_nonce, hello.nonce);
    key_make_nonce(pending->own_nonce);
    strcpy(hello.nonce, pending->own_nonce);
    hello.has_key = has_key;
    pending->stage = has_key ? STAGE_PROOF : STAGE_TEST;
    return handshake_send(&pending->connection.control, HANDSHAKE_HELLO, &hello) ? KEEP : CLOSE;
}

/* The sender must prove the key first, so that a stranger learns no proof from the receiver. */
static enum pending_result take_proof(struct pending_connection *pending, const char *line) {
    const struct key *key = pending->listener->key;
    const char *sender = pending->peer_nonce, *receiver = pending->own_nonce;
    struct handshake proof;
    char expected[NONCE_HEX_SIZE];
    key_prove(key, KEY_OF_SENDER, sender, receiver, expected);
    if (handshake_read(&proof, HANDSHAKE_PROOF, line) || !key_proof_matches(proof.proof, expected))
        return refuse(pending, false, "wrong key, or none");
    key_prove(key, KEY_OF_RECEIVER, sender, receiver, proof.proof);
    key_derive(key, sender, receiver, &pending->connection.keys);
    pending->stage = STAGE_TEST;
    return handshake_send(&pending->connection.control, HANDSHAKE_PROOF, &proof) ? KEEP : CLOSE;
}

/* Checks the plan and starts a session, which then owns the connection. If the session refuses, the
 * plan still belongs to this function and is freed. */
static enum pending_result take_test(struct pending_connection *pending, const char *line) {
    struct connection *connection = &pending->connection;
    struct transfer_plan plan = {0};
    bool busy = false;
    const char *error = "expected a test";
    if (line_is(line, "test"))
        error = transfer_plan_from_line(&plan, line);
    if (!error)
        error = transfer_plan_complete(&plan, connection->peer.address.sa_family == AF_INET6);
    if (!error)
        error = session_set_start(pending->listener->sessions, connection, &plan, &busy);
    if (!error)
        return ACCEPTED;
    transfer_plan_free(&plan);
    return refuse(pending, busy, error);
}

/* Reads the line as one of the current stage only, so a sender that skips the proof cannot reach
 * take_test(). */
static enum pending_result take_line(struct pending_connection *pending, const char *line) {
    switch (pending->stage) {
    case STAGE_HELLO: return (line_is(line, "data") ? accept_data : take_hello)(pending, line);
    case STAGE_PROOF: return take_proof(pending, line);
    case STAGE_TEST: return take_test(pending, line);
    case STAGE_FIRST_BYTES: break;
    }
    return CLOSE;
}

/* Reads as much as has arrived. Several lines may have arrived at once, so it goes on until one is
 * incomplete. */
static enum pending_result read_pending(struct pending_connection *pending) {
    char line[LINE_SIZE];
    enum pending_result result = KEEP;
    if (pending->stage == STAGE_FIRST_BYTES)
        result = read_first_bytes(pending);
    while (result == KEEP && pending->stage != STAGE_FIRST_BYTES) {
        enum control_result got = control_read(&pending->connection.control, line);
        if (got != CONTROL_LINE)
            return got == CONTROL_INCOMPLETE ? KEEP : CLOSE;
        result = take_line(pending, line);
    }
    return result;
}

/* Raises the limit of open files, and reserves half of them for pending connections. The other half
 * is for streams. Returns 32 to MAX_PENDING. */
static size_t pending_capacity(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 128;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    size_t half =
        limit.rlim_cur > 2 * RESERVED_FILES ? (size_t)(limit.rlim_cur - RESERVED_FILES) / 2 : 32;
    return half < MAX_PENDING ? half : MAX_PENDING;
}

/* Opens a socket for each address of --bind, or for any address of IPv4 and of IPv6. This host may
 * lack some of them, such as those of IPv6, but not all. */
static bool open_sockets(struct listener *listener, const struct receive_options *options,
                         char error[ERROR_SIZE]) {
    union endpoint list[MOST_ADDRESSES];
    const struct local_plan *local = &options->local;
    int count = endpoint_find(list, local->bind, (uint16_t)options->port, (int)options->family,
                              AI_PASSIVE, error);
    bool has_socket = false;
    for (int i = 0; i < count; i++) {
        listener->sockets[i] = endpoint_listen(&list[i], local, error);
        has_socket |= listener->sockets[i] >= 0;
        if (listener->sockets[i] < 0 && !endpoint_is_absent())
            return false;
    }
    return has_socket;
}

bool listener_open(struct listener *listener, const struct receive_options *options,
                   char error[ERROR_SIZE]) {
    listener->capacity = pending_capacity();
    listener->pending = calloc(listener->capacity, sizeof *listener->pending);
    listener->polled = calloc(listener->capacity + LISTEN_SOCKETS + 1, sizeof *listener->polled);
    for (unsigned i = 0; i < LISTEN_SOCKETS; i++)
        listener->sockets[i] = -1;
    return listener->pending && listener->polled && open_sockets(listener, options, error);
}

/* Keeps the order by age, because add_pending() closes the first. `closes` is false if a session
 * has taken the connection over. */
static void remove_pending(struct listener *listener, size_t at, bool closes) {
    if (closes)
        close(listener->pending[at]->connection.control.fd);
    free(listener->pending[at]);
    listener->count--;
    memmove(&listener->pending[at], &listener->pending[at + 1],
            (listener->count - at) * sizeof *listener->pending);
}

/* If the list is full, the oldest connection is closed: the newest is the most likely to be a
 * sender. */
static void add_pending(struct listener *listener, int fd, const union endpoint *peer) {
    int one = 1;
    if (listener->count == listener->capacity)
        remove_pending(listener, 0, true);
    struct pending_connection *pending = calloc(1, sizeof *pending);
    if (!pending) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    control_begin(&pending->connection.control, fd);
    pending->connection.peer = *peer;
    pending->accepted_ns = monotonic_ns();
    pending->listener = listener;
    listener->pending[listener->count++] = pending;
}

/* Closes the oldest pending connection if descriptors or memory ran out, and returns true. If the
 * list is empty, pauses, because poll() would report the socket again at once. */
static bool free_resources(struct listener *listener) {
    struct timespec pause = to_timespec(10 * NS_PER_MS);
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
        return false;
    if (!listener->count) {
        nanosleep(&pause, NULL);
        return false;
    }
    remove_pending(listener, 0, true);
    return true;
}

/* A connection that its client reset before accept() is skipped. At most MAX_ACCEPTS are taken, so
 * that a flood of connections cannot keep the pending ones from being read. */
static void accept_all(struct listener *listener, int socket) {
    for (unsigned i = 0; i < MAX_ACCEPTS; i++) {
        union endpoint peer;
        socklen_t size = sizeof peer;
        int fd = accept4(socket, &peer.address, &size, SOCK_CLOEXEC);
        if (fd >= 0)
            add_pending(listener, fd, &peer);
        else if (errno != ECONNABORTED && errno != EINTR && !free_resources(listener))
            return;
    }
}

/* Pending connections are served before new ones are accepted, because `of_pending` and `pending`
 * must have the same indices. The same pass closes those that are too old, so `limit_ms` bounds by
 * how much they can exceed MAX_PENDING_NS. */
void listener_poll(struct listener *listener, int limit_ms) {
    uint64_t finished;
    size_t count = listener->count;
    struct pollfd *polled = listener->polled, *of_pending = polled + LISTEN_SOCKETS + 1;
    for (unsigned i = 0; i < LISTEN_SOCKETS; i++)
        polled[i] = (struct pollfd){.fd = listener->sockets[i], .events = POLLIN};
    polled[LISTEN_SOCKETS] = (struct pollfd){.fd = listener->sessions->wake, .events = POLLIN};
    for (size_t i = 0; i < count; i++)
        of_pending[i] =
            (struct pollfd){.fd = listener->pending[i]->connection.control.fd, .events = POLLIN};
    if (poll(polled, LISTEN_SOCKETS + 1 + count, limit_ms) < 0)
        return;
    if (read(listener->sessions->wake, &finished, sizeof finished) > 0)
        session_set_join_finished(listener->sessions);
    uint64_t now = monotonic_ns();
    for (size_t i = count; i-- > 0;) { /* from the end, because entries are removed */
        struct pending_connection *pending = listener->pending[i];
        enum pending_result result = KEEP;
        if (of_pending[i].revents)
            result = read_pending(pending);
        if (result == KEEP && now - pending->accepted_ns > MAX_PENDING_NS)
            result = CLOSE;
        if (result != KEEP)
            remove_pending(listener, i, result == CLOSE);
    }
    for (unsigned i = 0; i < LISTEN_SOCKETS; i++)
        if (polled[i].revents)
            accept_all(listener, listener->sockets[i]);
}

void listener_close(struct listener *listener) {
    while (listener->count)
        remove_pending(listener, listener->count - 1, true);
    for (unsigned i = 0; i < LISTEN_SOCKETS; i++)
        if (listener->sockets[i] >= 0)
            close(listener->sockets[i]);
    free(listener->pending);
    free(listener->polled);
}
