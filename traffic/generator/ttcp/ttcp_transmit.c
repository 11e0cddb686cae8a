/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp -t: sends a pattern or standard input. The socket is blocking with a short timeout, so that
 * a signal is noticed within WAIT_PIECE_NS.
 *
 * ttcp has no control connection, so the figures are those of this end alone: over UDP they count
 * datagrams that were handed to the kernel, not those that arrived. */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "session/exchange.h"
#include "ttcp/ttcp_transfer.h"

#define CONNECT_NS       (130 * NS_PER_S) /* longer than six retransmitted SYNs take */
#define ADDRESS_NS       (5 * NS_PER_S)   /* the same, if another address can be tried */
#define END_MARKS        5
#define MARK_INTERVAL_NS (20 * NS_PER_MS) /* lets a full queue drain between two marks */
#define RETRY_NS         NS_PER_MS        /* after a send that found no buffer */
#define MAX_RETRIES      10000            /* in a row */

struct source {
    uint8_t *data;
    size_t held;    /* bytes of standard input in `data` */
    uint64_t left;  /* buffers of a pattern */
    bool has_ended; /* standard input */
};

static void wait_ns(uint64_t ns) {
    struct timespec time = to_timespec((int64_t)ns);
    while (!exchange_interrupted && nanosleep(&time, &time) && errno == EINTR)
        ;
}

/* Sends all of a buffer, or a datagram. Returns false if a send failed for good. A send that timed
 * out or was interrupted is repeated unless a signal asks for the end. ENOBUFS may occur
 * MAX_RETRIES times for a buffer. */
static bool send_buffer(struct ttcp_transfer *transfer, int fd, const uint8_t *data, size_t count) {
    unsigned retries = 0;
    while (count && !exchange_interrupted) {
        ssize_t sent = send(fd, data, count, MSG_NOSIGNAL);
        if (sent >= 0) {
            transfer->bytes += (uint64_t)sent;
            transfer->calls++;
            data += sent;
            count -= (size_t)sent;
        } else if (errno ==
                   ECONNREFUSED) { /* the answer to an earlier datagram (RFC 1122 4.1.3.3) */
            transfer->refused++;
        } else if (errno == ENOBUFS && ++retries < MAX_RETRIES) {
            transfer->retries++;
            wait_ns(RETRY_NS);
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Marks may be lost like any datagram; several with a pause between them reach the receiver unless
 * the path is down. */
static void send_marks(int fd, unsigned count) {
    struct ttcp_transfer ignored = {0};
    for (unsigned i = 0; i < count; i++) {
        if (i)
            wait_ns(MARK_INTERVAL_NS);
        send_buffer(&ignored, fd, (const uint8_t[MARK_BYTES]){0}, MARK_BYTES);
    }
}

/* Returns the bytes of the next buffer in `source->data`; 0 if all was sent. A stream carries
 * standard input on as it comes; a datagram is filled. If the rest after a datagram could be taken
 * for a mark, the datagram is shorter, so that both are data. */
static size_t next_buffer(const struct ttcp_options *options, struct source *source) {
    size_t length = options->length, ahead = options->udp ? MARK_BYTES + 1 : 0;
    size_t wanted = options->udp ? length + ahead : 1;
    if (options->pattern)
        return options->continuous || source->left-- ? length : 0;
    while (source->held < wanted && !source->has_ended && !exchange_interrupted) {
        ssize_t got =
            read(STDIN_FILENO, source->data + source->held, length + ahead - source->held);
        source->has_ended = !got || (got < 0 && errno != EINTR);
        source->held += got > 0 ? (size_t)got : 0;
    }
    if (source->held <= length)
        return source->held;
    size_t rest = source->held - length;
    return rest <= MARK_BYTES ? length - (MARK_BYTES + 1 - rest) : length;
}

/* Returns NULL if all was sent, else the reason for the end. */
static const char *send_all(const struct ttcp_options *options, struct ttcp_transfer *transfer,
                            int fd, struct source *source) {
    size_t count;
    while (!exchange_interrupted && (count = next_buffer(options, source))) {
        if (options->udp && count <= MARK_BYTES)
            return "an input too short for a datagram";
        if (!send_buffer(transfer, fd, source->data, count))
            return errno == EPIPE || errno == ECONNRESET ? "peer gone" : "send error";
        source->held -= options->pattern ? 0 : count;
        memmove(source->data, source->data + count, source->held);
    }
    return exchange_interrupted ? "signal" : NULL;
}

/* Tries the host's addresses in order. Returns a socket, or -1 after a message. */
static int connect_to(const struct ttcp_options *options, union endpoint *peer) {
    union endpoint list[MOST_ADDRESSES];
    struct local_plan local = {0};
    char error[ERROR_SIZE], reasons[REASONS_SIZE] = "";
    int fd = -1, count = endpoint_find(list, options->host, (uint16_t)options->port,
                                       (int)options->family, AI_ADDRCONFIG, error);
    if (count < 0) {
        ttcp_log(options, "%s", error);
        return -1;
    }
    for (int i = 0; i < count && fd < 0 && !exchange_interrupted; i++) {
        uint64_t limit_ns = i + 1 < count ? ADDRESS_NS : CONNECT_NS;
        *peer = list[i];
        fd = options->udp ? endpoint_connect_udp(peer, &local, NULL, error)
                          : endpoint_connect(peer, &local, NULL, limit_ns, error);
        if (fd < 0)
            endpoint_add_reason(reasons, peer, strerror(errno));
    }
    if (fd < 0)
        ttcp_log(options, "%s port %u: cannot connect: %s", options->host, (unsigned)options->port,
                 count > 1 ? reasons : strerror(errno));
    return fd;
}

/* With -c a signal is the normal end. */
static int exit_code(const struct ttcp_options *options, const char *ended_by, int stopped_by) {
    if (!ended_by || (stopped_by && options->continuous))
        return EXIT_DONE;
    if (stopped_by)
        return stopped_by == SIGTERM ? EXIT_TERMINATED : EXIT_INTERRUPTED;
    return EXIT_TRUNCATED;
}

int ttcp_transmit(const struct ttcp_options *options, uint8_t *data) {
    struct ttcp_transfer transfer = {0};
    struct source source = {.data = data, .left = options->count};
    int fd = connect_to(options, &transfer.peer);
    int code = fd < 0 ? EXIT_IO : ttcp_set_socket(fd, options);
    if (code)
        return code;
    endpoint_limit_waits(fd, WAIT_PIECE_NS);
    for (size_t i = 0; options->pattern && i < options->length; i++)
        data[i] = (uint8_t)(' ' + i % 95); /* printable characters, as ttcp sends them */
    ttcp_print_settings(options, data);
    if (options->udp)
        send_marks(fd, 1);
    ttcp_start_clock(&transfer);
    const char *ended_by = send_all(options, &transfer, fd, &source);
    int reason = errno, stopped_by = exchange_interrupted;
    stream_times_note(&transfer.times, (uint64_t)monotonic_ns());
    if (options->udp) {
        exchange_interrupted = 0; /* a receiver must get the marks after a signal too */
        wait_ns(options->pause_ns);
        send_marks(fd, END_MARKS);
    }
    close(fd);
    bool written = ttcp_report(options, &transfer, ended_by ? ended_by : "count", !ended_by);
    if (ended_by && (!strcmp(ended_by, "peer gone") || !strcmp(ended_by, "send error")))
        ttcp_log(options, "%s: %s", ended_by, strerror(reason));
    return written ? exit_code(options, ended_by, stopped_by) : EXIT_IO;
}
