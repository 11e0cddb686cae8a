/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp -r: receives one transfer, one after the other (-c), or several at the same time (-R).
 *
 * A transfer over UDP begins with its first datagram; the sender's address identifies it. A mark
 * ends it if data arrived before; otherwise it starts the clock, or is left of the transfer before.
 * IPv4 and IPv6 have a socket each. One thread serves all sockets with poll(), so nothing is
 * locked.
 *
 * Bounds against hostile peers: MAX_INCOMING transfers, MAX_READS of a socket in a turn, and
 * --idle. If all slots are in use, TCP connections wait in the kernel's queue. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "session/exchange.h"
#include "ttcp/ttcp_transfer.h"

#define MAX_INCOMING 64
#define MAX_READS    64   /* of one socket, before the others have their turn */
#define POLL_MS      200u /* between two looks at exchange_interrupted */
#define SOCKETS      2

struct incoming {
    bool is_open;
    int fd; /* of a connection; -1: UDP */
    struct ttcp_transfer transfer;
};

struct receiver {
    const struct ttcp_options *options;
    int sockets[SOCKETS]; /* listening, or of datagrams; -1: unused */
    uint8_t *data;        /* room for two reads */
    size_t held;          /* bytes in `data` that wait for a full block (-B) */
    struct incoming incoming[MAX_INCOMING];
    unsigned max;
    uint64_t finished, open;
    bool cut_short, done, unwritten; /* a report is unwritten */
    volatile unsigned touched;       /* sum of bytes, so that -T is not optimized away */
};

/* Writes the data that is held to standard output: with -B in blocks of -l bytes, as tapes need
 * them, and the rest only if it is the `last`. A signal ends the wait for a slow reader. Returns
 * false if not all could be written; the data is then dropped. */
static bool write_output(struct receiver *receiver, bool last) {
    bool in_blocks = receiver->options->full_blocks && !last;
    size_t kept = in_blocks ? receiver->held % receiver->options->length : 0;
    const uint8_t *data = receiver->data, *end = data + receiver->held - kept;
    receiver->held = kept;
    while (data < end) {
        ssize_t written = write(STDOUT_FILENO, data, (size_t)(end - data));
        if (written < 0 && errno == EINTR && !exchange_interrupted)
            continue;
        if (written <= 0) {
            receiver->held = 0;
            return false;
        }
        data += written;
    }
    memmove(receiver->data, end, kept);
    return true;
}

/* Begins a transfer in a free slot. Returns NULL if all are in use. */
static struct incoming *open_incoming(struct receiver *receiver, int fd,
                                      const union endpoint *peer) {
    for (unsigned i = 0; i < receiver->max; i++) {
        struct incoming *incoming = &receiver->incoming[i];
        if (incoming->is_open)
            continue;
        *incoming = (struct incoming){.is_open = true, .fd = fd, .transfer.peer = *peer};
        ttcp_start_clock(&incoming->transfer);
        receiver->open++;
        return incoming;
    }
    return NULL;
}

/* Ends a transfer and reports it. With -c and -R over UDP, marks without data are not a transfer.
 */
static void close_incoming(struct receiver *receiver, struct incoming *incoming,
                           const char *ended_by, bool complete) {
    const struct ttcp_options *options = receiver->options;
    bool again = options->continuous || options->concurrent;
    if (incoming->fd >= 0)
        close(incoming->fd);
    incoming->is_open = false;
    receiver->open--;
    if (again && options->udp && !incoming->transfer.bytes)
        return; /* only marks, left of the transfer before */
    if (!write_output(receiver, true)) {
        ended_by = "output closed";
        complete = false;
    }
    receiver->unwritten |= !ttcp_report(options, &incoming->transfer, ended_by, complete);
    receiver->finished++;
    receiver->cut_short |= !complete;
    receiver->done |= !again;
}

/* Takes data that was read behind those that are held. -T reads each byte, as ttcp does to measure
 * the cost of touching memory. */
static void take_data(struct receiver *receiver, struct incoming *incoming, size_t count) {
    struct ttcp_transfer *transfer = &incoming->transfer;
    unsigned sum = 0;
    transfer->bytes += count;
    transfer->calls++;
    stream_times_note(&transfer->times, (uint64_t)monotonic_ns());
    for (size_t i = 0; receiver->options->touch && i < count; i++)
        sum += receiver->data[receiver->held + i];
    receiver->touched += sum;
    receiver->held += receiver->options->pattern ? 0 : count;
    if (!write_output(receiver, false))
        close_incoming(receiver, incoming, "output closed", false);
}

/* Non-blocking, because the thread must not wait for one of several senders. */
static void accept_connection(struct receiver *receiver, int socket) {
    union endpoint peer = {0};
    socklen_t size = sizeof peer;
    int fd = accept4(socket, &peer.address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !open_incoming(receiver, fd, &peer))
        close(fd);
}

/* Returns the transfer of a datagram's sender. If all slots are in use, a sender that has sent only
 * marks is replaced; if all have sent data, returns NULL. */
static struct incoming *incoming_of(struct receiver *receiver, const union endpoint *peer) {
    struct incoming *replaceable = NULL;
    for (unsigned i = 0; i < receiver->max; i++) {
        struct incoming *incoming = &receiver->incoming[i];
        if (incoming->is_open && endpoint_same_host(&incoming->transfer.peer, peer) &&
            endpoint_port(&incoming->transfer.peer) == endpoint_port(peer))
            return incoming;
        if (incoming->is_open && !incoming->transfer.bytes && !replaceable)
            replaceable = incoming;
    }
    if (receiver->open == receiver->max && replaceable) {
        replaceable->is_open = false;
        receiver->open--;
    }
    return open_incoming(receiver, -1, peer);
}

/* A further mark before data starts the clock anew. */
static void take_mark(struct receiver *receiver, struct incoming *incoming) {
    if (incoming->transfer.bytes) {
        close_incoming(receiver, incoming, "end mark", true);
        return;
    }
    ttcp_start_clock(&incoming->transfer);
}

/* Reads until the socket is empty, MAX_READS times, or until the `incoming` of a connection ends. A
 * datagram of another sender is ignored while a transfer runs, unless -R allows several. */
static void read_socket(struct receiver *receiver, int socket, struct incoming *incoming) {
    size_t length = receiver->options->length;
    bool udp = receiver->options->udp;
    for (unsigned i = 0; i < MAX_READS && (udp ? !receiver->done : incoming->is_open); i++) {
        union endpoint peer = {0};
        socklen_t size = sizeof peer;
        ssize_t got = recvfrom(socket, receiver->data + receiver->held, length,
                               udp ? MSG_TRUNC | MSG_DONTWAIT : 0, &peer.address, &size);
        if (got < 0 && (udp || errno == EAGAIN || errno == EINTR))
            return;
        size_t count = (size_t)got;
        if (udp && !(incoming = incoming_of(receiver, &peer)))
            continue;
        if (udp && count <= MARK_BYTES) {
            take_mark(receiver, incoming);
        } else if (got > 0) {
            incoming->transfer.cut_datagrams += count > length;
            take_data(receiver, incoming, count < length ? count : length);
        } else {
            close_incoming(receiver, incoming, got ? "peer gone" : "close", !got);
        }
    }
}

/* Ends the transfers that have been silent for --idle. */
static void close_idle(struct receiver *receiver) {
    uint64_t now = (uint64_t)monotonic_ns(), idle = receiver->options->idle_ns;
    for (unsigned i = 0; i < receiver->max && idle; i++) {
        struct incoming *incoming = &receiver->incoming[i];
        if (incoming->is_open && now - incoming->transfer.times.last_ns >= idle)
            close_incoming(receiver, incoming, "idle", false);
    }
}

/* A signal may come just before poll(), so the wait is short. */
static int poll_timeout_ms(const struct receiver *receiver) {
    uint64_t idle_ms = receiver->options->idle_ns / NS_PER_MS;
    return idle_ms && idle_ms < POLL_MS ? (int)idle_ms : (int)POLL_MS;
}

/* Waits for sockets and serves those that are ready; then ends silent transfers. */
static void serve_once(struct receiver *receiver) {
    struct pollfd polled[SOCKETS + MAX_INCOMING];
    bool udp = receiver->options->udp, has_slot = receiver->open < receiver->max;
    for (unsigned i = 0; i < SOCKETS; i++) /* poll() ignores a descriptor of -1 */
        polled[i] =
            (struct pollfd){.fd = udp || has_slot ? receiver->sockets[i] : -1, .events = POLLIN};
    for (unsigned i = 0; i < receiver->max; i++)
        polled[SOCKETS + i] = (struct pollfd){
            .fd = receiver->incoming[i].is_open ? receiver->incoming[i].fd : -1, .events = POLLIN};
    if (poll(polled, SOCKETS + receiver->max, poll_timeout_ms(receiver)) > 0) {
        for (unsigned i = 0; i < receiver->max; i++)
            if (polled[SOCKETS + i].revents)
                read_socket(receiver, receiver->incoming[i].fd, &receiver->incoming[i]);
        for (unsigned i = 0; i < SOCKETS && !receiver->done; i++)
            if (polled[i].revents && udp)
                read_socket(receiver, receiver->sockets[i], NULL);
            else if (polled[i].revents)
                accept_connection(receiver, receiver->sockets[i]);
    }
    if (!receiver->done)
        close_idle(receiver);
}

/* Returns 0, or the exit code after a message. A host without IPv6 receives over IPv4 alone. */
static int open_sockets(struct receiver *receiver) {
    const struct ttcp_options *options = receiver->options;
    uint16_t port = (uint16_t)options->port;
    struct local_plan local = {.port_first = port, .port_last = port};
    char error[ERROR_SIZE];
    bool both = options->family == AF_UNSPEC;
    receiver->sockets[1] = -1;
    for (unsigned i = 0; i < (both ? SOCKETS : 1); i++) {
        int family = !both ? (int)options->family : i ? AF_INET : AF_INET6;
        union endpoint any = {.storage.ss_family = (sa_family_t)family};
        endpoint_set_port(&any, port);
        int fd = options->udp ? endpoint_bind_udp(&any, &local, NULL, error)
                              : endpoint_listen(&any, &local, error);
        int code = fd < 0 ? 0 : ttcp_set_socket(fd, options);
        receiver->sockets[i] = fd;
        if (code)
            return code;
        if (fd >= 0 || (family == AF_INET6 && both && errno != EADDRINUSE && errno != EACCES))
            continue;
        code = errno == EACCES ? EXIT_MISSING : EXIT_IO;
        ttcp_log(options, "cannot receive at port %u: %s", port, strerror(errno));
        return code;
    }
    return 0;
}

/* Ends open transfers. With -c and -R a signal is the normal end. */
static int exit_code(struct receiver *receiver) {
    const struct ttcp_options *options = receiver->options;
    int stopped_by = exchange_interrupted;
    bool stopped = receiver->open > 0 || (stopped_by && !receiver->finished);
    for (unsigned i = 0; i < receiver->max; i++)
        if (receiver->incoming[i].is_open)
            close_incoming(receiver, &receiver->incoming[i], "signal", false);
    if (receiver->unwritten)
        return EXIT_IO;
    bool until_stopped = options->continuous || options->concurrent;
    if (stopped && !(until_stopped && !receiver->cut_short))
        return stopped_by == SIGTERM ? EXIT_TERMINATED : EXIT_INTERRUPTED;
    return receiver->cut_short ? EXIT_TRUNCATED : EXIT_DONE;
}

int ttcp_receive(const struct ttcp_options *options, uint8_t *data) {
    static struct receiver receiver; /* too large for a stack */
    receiver.options = options;
    receiver.data = data;
    receiver.max = options->concurrent ? MAX_INCOMING : 1;
    int code = open_sockets(&receiver);
    if (code)
        return code;
    ttcp_print_settings(options, data);
    while (!exchange_interrupted && !receiver.done)
        serve_once(&receiver);
    return exit_code(&receiver);
}
