/* SPDX-License-Identifier: Apache-2.0 */
/* ttcp -t: a pattern or standard input to a receiver. */
#include "ttcp/ttcp_transfer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END_MARKS    5
#define MARK_GAP_NS  20000000 /* a full queue on the way empties between two marks */
#define RETRY_NS     1000000  /* after a send that found no buffer */
#define RETRIES_MOST 10000    /* in a row */

enum after { AGAIN, GIVE_UP };

struct source {
    uint8_t *data;
    size_t held, length; /* held: read ahead */
    uint64_t left;       /* buffers of a pattern */
    bool ended;
};

static void wait_ns(uint64_t ns) {
    struct timespec time = {(time_t)(ns / TTCP_NS), (long)(ns % TTCP_NS)};
    while (!ttcp_stopped && nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

static void wait_writable(int socket) {
    struct pollfd waiting = {.fd = socket, .events = POLLOUT};
    poll(&waiting, 1, 200); /* looks up now and then: a signal may come just before */
}

/* What a failed send means. */
static enum after after_error(struct ttcp_transfer *transfer, int socket, unsigned *tries) {
    switch (errno) {
    case EAGAIN: wait_writable(socket); return AGAIN;
    case EINTR: return AGAIN;
    case ENOBUFS:
        transfer->retries++;
        wait_ns(RETRY_NS);
        return ++*tries < RETRIES_MOST ? AGAIN : GIVE_UP;
    case ECONNREFUSED: /* an answer to a datagram before: this one was not sent */
        transfer->refused++;
        return AGAIN;
    default: return GIVE_UP;
    }
}

/* A buffer into a stream, or a datagram. */
static bool send_buffer(struct ttcp_transfer *transfer, int socket, const uint8_t *data,
                        size_t count) {
    unsigned tries = 0;
    while (count && !ttcp_stopped) {
        ssize_t sent = send(socket, data, count, MSG_NOSIGNAL);
        if (sent < 0 && after_error(transfer, socket, &tries) == GIVE_UP)
            return false;
        if (sent < 0)
            continue;
        transfer->bytes += (uint64_t)sent;
        transfer->calls++;
        data += sent;
        count -= (size_t)sent;
    }
    return true;
}

static void send_marks(int socket, unsigned count) {
    struct ttcp_transfer ignored = {0};
    for (unsigned i = 0; i < count; i++) {
        if (i)
            wait_ns(MARK_GAP_NS);
        send_buffer(&ignored, socket, (const uint8_t *)"\0\0\0", TTCP_MARK_BYTES);
    }
}

/* Reads standard input until `wanted` bytes are held or it ends. */
static void fill(struct source *source, size_t wanted) {
    while (source->held < wanted && !source->ended && !ttcp_stopped) {
        ssize_t got = read(STDIN_FILENO, source->data + source->held, wanted - source->held);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            source->ended = true;
        else
            source->held += (size_t)got;
    }
}

/* The size of the next datagram of standard input. The last one must not be so short that it is
 * taken for a mark: then it shares what is left with the one before. */
static size_t next_datagram(struct source *source) {
    fill(source,
         source->length + TTCP_MARK_BYTES + 1); /* so that a short rest is known as the end */
    if (source->held <= source->length)
        return source->held;
    size_t rest = source->held - source->length;
    return rest <= TTCP_MARK_BYTES ? source->length - (TTCP_MARK_BYTES + 1 - rest) : source->length;
}

/* What is read goes on at once. */
static size_t next_read(struct source *source) {
    ssize_t got;
    do
        got = read(STDIN_FILENO, source->data, source->length);
    while (got < 0 && errno == EINTR && !ttcp_stopped);
    source->held = got > 0 ? (size_t)got : 0;
    return source->held;
}

static size_t next_buffer(const struct ttcp_options *options, struct source *source) {
    if (!options->pattern)
        return options->udp ? next_datagram(source) : next_read(source);
    if (!options->continuous && !source->left--)
        return 0;
    return source->length;
}

/* Returns why it ended; NULL for: all is sent. */
static const char *send_all(const struct ttcp_options *options, struct ttcp_transfer *transfer,
                            int socket, struct source *source) {
    size_t count;
    while (!ttcp_stopped && (count = next_buffer(options, source))) {
        if (options->udp && count <= TTCP_MARK_BYTES)
            return "an input too short for a datagram that is no mark";
        if (!send_buffer(transfer, socket, source->data, count))
            return errno == EPIPE || errno == ECONNRESET ? "peer gone" : "send error";
        if (!options->pattern && options->udp) {
            source->held -= count;
            memmove(source->data, source->data + count, source->held);
        }
    }
    return ttcp_stopped ? "signal" : NULL;
}

/* Printable characters, one after the other, as ttcp sends them. */
static void fill_pattern(uint8_t *data, size_t count) {
    for (size_t i = 0; i < count; i++)
        data[i] = (uint8_t)(' ' + i % 95);
}

int ttcp_transmit(const struct ttcp_options *options, uint8_t *data) {
    struct ttcp_transfer transfer = {0};
    struct source source = {.data = data, .length = options->length, .left = options->count};
    int socket = ttcp_open_to(options, &transfer);
    if (socket < 0)
        return -1 - socket;
    if (options->pattern)
        fill_pattern(data, options->length);
    ttcp_print_settings(options, data);
    if (options->udp)
        send_marks(socket, 1);
    ttcp_start_clock(&transfer);
    const char *why = send_all(options, &transfer, socket, &source);
    int reason = errno;
    ttcp_mark_time(&transfer);
    ttcp_end(&transfer, why ? why : "count", !why);
    if (options->udp) {
        ttcp_stopped = 0; /* the receiver should know the end also of what was stopped */
        wait_ns(options->pause_ns);
        send_marks(socket, END_MARKS);
    }
    close(socket);
    ttcp_report(options, &transfer);
    if (why && (!strcmp(why, "peer gone") || !strcmp(why, "send error")))
        ttcp_say(options, "%s: %s", why, strerror(reason));
    if (why && !strcmp(why, "signal"))
        return options->continuous ? TTCP_DONE : TTCP_INTERRUPTED;
    return why ? TTCP_CUT_SHORT : TTCP_DONE;
}
